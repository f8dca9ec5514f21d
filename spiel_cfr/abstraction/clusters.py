"""Clusters of infosets as buckets, found without knowledge of the game.

A few iterations on the full game give a strategy. Infosets that the other players can't tell apart, such as hands after
the same betting, are clustered by it. Clusters that do not follow from earlier ones make players forget: their infosets
are shared. k-means++ is by Arthur and Vassilvitskii (2007), in SciPy's implementation.
"""

import warnings

import numpy as np
import numpy.typing as npt
import scipy  # its `cluster` is imported when it is used

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._util import arguments
from spiel_cfr._util.doors import typed
from spiel_cfr.abstraction.buckets import Buckets, identity
from spiel_cfr.cfr import CFRPlusSolver
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame
from spiel_cfr.games.payoffs.build_payoff import merged_leaves
from spiel_cfr.games.payoffs.private_types import public_states


@typed
def cluster(game: CompiledGame, size: int, *, iterations: int = 100, seed: int = 0) -> Buckets:
  """Puts infosets into buckets by the average strategy of CFR+.

      small = abstract(game, cluster(game, 4))

  Args:
    game: a compiled game that lists its leaves.
    size: largest number of buckets of a public state.
    iterations: number of iterations of CFR+ on the full game.
    seed: seed of k-means++; the same seed gives the same buckets.

  Raises:
    ArgumentError: an argument is out of its range.
    UnsupportedGameError: the game is in vector form, or an abstraction itself.
  """
  size = arguments.positive_integer(size, "size")
  iterations = arguments.positive_integer(iterations, "iterations")
  rng = np.random.default_rng(arguments.integer(seed, "seed", 0))
  if not isinstance(game, EnumeratedGame) or game.original is not game:
    raise errors.UnsupportedGameError(
      f"{game} lists no leaves of its own. Pass compile_game(game, vector_form=False), without symmetries."
    )
  learned = CFRPlusSolver(game)
  learned.run(iterations)
  played, owner = learned.average_probabilities(), np.full(game.end, -1)
  sequences = np.split(
    game.all_action_sequences, np.cumsum([len(own.actions) for own in game.infosets])[:-1]
  )
  for cells, own in zip(sequences, game.infosets, strict=True):
    owner[cells] = np.repeat(np.arange(len(own.num_actions)), own.num_actions)
  leaves, _ = merged_leaves(
    game.payoff, game.num_players, np.arange(game.end, dtype=np.uint32), np.ones(game.end)
  )
  labels = []
  for player, (cells, own) in enumerate(zip(sequences, game.infosets, strict=True)):
    public = public_states(leaves, player, owner, len(own.num_actions))
    starts = np.cumsum(own.num_actions) - own.num_actions
    found, count = np.zeros(len(public), np.int64), 0
    for members in _groups(own.num_actions, own.actions, public):
      width = int(own.num_actions[members[0]])
      points = played[cells[starts[members][:, None] + np.arange(width)]]
      found[members] = count + k_means(points, size, rng)
      count += size
    labels.append(found)
  return Buckets(tuple(labels), identity(game).slots)


def _groups(num_actions: Int64s, actions: Int64s, public: Int64s) -> list[Int64s]:
  """Returns the infosets that may be in one bucket: those of one public state with the same actions."""
  groups: dict[tuple[int, ...], list[int]] = {}
  pieces = np.split(actions, np.cumsum(num_actions)[:-1]) if len(num_actions) else []
  for index, (state, legal) in enumerate(zip(public.tolist(), pieces, strict=True)):
    groups.setdefault((state, *legal.tolist()), []).append(index)
  return [np.array(members) for members in groups.values()]


@typed
def k_means(
  points: npt.ArrayLike,
  size: int,
  seed: int | np.random.Generator = 0,
  *,
  ground: npt.ArrayLike | None = None,
) -> Int64s:
  """Clusters points by k-means++; equal points are in one cluster.

  Args:
    points: float64 (points, numbers).
    size: largest number of clusters.
    seed: the seed of the first centres, or a generator.
    ground: None for Euclidean distances between points. Otherwise the Euclidean distances between the meanings of the
      columns. Points p, q are then histograms of the same sum, compared by the energy distance (Székely and Rizzo,
      "Energy Statistics", 2013), in which neighbouring bins hardly differ:

        distance^2 = -(p - q)' ground (p - q)

  Returns:
    int64 (points,). The number of each point's cluster, from 0 without gaps.

  Raises:
    ArgumentError: the points are not a table of finite numbers, the size is not positive, the seed is invalid, or
      `ground` is not a symmetric table.
  """
  size = arguments.positive_integer(size, "size")
  if not isinstance(seed, np.random.Generator):
    seed = arguments.integer(seed, "seed", 0)
  table = _numbers(points, "points")
  if table.ndim != 2 or not len(table) or not np.isfinite(table).all():
    raise errors.ArgumentError("points must be a table of finite numbers, one row for each point.")
  distinct, which = np.unique(table, axis=0, return_inverse=True)
  if ground is not None:
    embedding = _embed(_numbers(ground, "ground"), table.shape[1])
    distinct, table = distinct @ embedding, table @ embedding
  if len(distinct) > size:
    with warnings.catch_warnings():
      # An empty cluster is dropped.
      warnings.simplefilter("ignore", UserWarning)
      centres, _ = scipy.cluster.vq.kmeans2(
        table, size, minit="++", seed=np.random.default_rng(seed)
      )
    nearest = ((distinct[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    which = nearest[which.reshape(-1)]
  result: Int64s = np.unique(which, return_inverse=True)[1].reshape(-1)
  return result


def _numbers(value: npt.ArrayLike, name: str) -> Float64s:
  try:
    return np.asarray(value, np.float64)
  except (OverflowError, TypeError, ValueError):
    raise errors.ArgumentError(
      f"{name} must be a table of numbers, not {arguments.shortened(value)}."
    ) from None


def _embed(ground: Float64s, columns: int) -> Float64s:
  """Returns A with |p A - q A|^2 = -(p - q)' ground (p - q) for p and q of the same sum: classical scaling."""
  if ground.shape != (columns, columns) or not (
    np.isfinite(ground).all() and np.array_equal(ground, ground.T)
  ):
    raise errors.ArgumentError(
      f"ground must be a symmetric table of {columns} x {columns} distances, not of shape {ground.shape}."
    )
  centring = np.eye(columns) - 1 / columns
  values, vectors = np.linalg.eigh(-centring @ ground @ centring)
  return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))
