"""Buckets that clusters of infosets make, without any knowledge of the game.

Infosets of a player that the others can't tell apart, such as hands after the same betting, are clustered by the
strategy that a few iterations on the full game find at them. Where clusters do not follow from those before, players
forget: the infosets are shared. k-means++ is that of Arthur and Vassilvitskii (2007), by SciPy.
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
    size: how many buckets a public state has at most.
    iterations: of CFR+ on the full game.
    seed: of k-means++; the same seed gives the same buckets.

  Raises:
    ArgumentError: an argument makes no sense.
    UnsupportedGameError: the game is in vector form, or an abstraction itself.
  """
  size = arguments.positive_integer(size, "size")
  iterations = arguments.positive_integer(iterations, "iterations")
  rng = np.random.default_rng(arguments.integer(seed, "seed", 0))
  if not isinstance(game, EnumeratedGame) or game.original is not game:
    raise errors.UnsupportedGameError(
      f"{game} lists no leaves of its own. Give compile_game(game, vector_form=False), without symmetries."
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
  """Returns the infosets that may be in one bucket: of one public state, with the same actions."""
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
    points: shape (points, numbers).
    size: how many clusters there are at most.
    seed: of the first centres, or a generator to draw them from.
    ground: None for Euclidean distances between points. Or the Euclidean distances between what the columns stand for:
      then points p, q are histograms of the same sum, and compared by the energy distance (Székely and Rizzo, "Energy
      Statistics", 2013), in which bins that are close to each other hardly differ:

          distance^2 = -(p - q)' ground (p - q)

  Returns:
    The number of each point's cluster, from 0 without gaps; shape (points,).

  Raises:
    ArgumentError: the points are not a table of finite numbers, or the size is not positive, or the seed is none, or
      `ground` is no symmetric table.
  """
  size = arguments.positive_integer(size, "size")
  if not isinstance(seed, np.random.Generator):
    seed = arguments.integer(seed, "seed", 0)
  table = np.asarray(points, np.float64)
  if table.ndim != 2 or not len(table) or not np.isfinite(table).all():
    raise errors.ArgumentError("points must be a table of finite numbers, a row each.")
  distinct, which = np.unique(table, axis=0, return_inverse=True)
  if ground is not None:
    embedding = _embed(np.asarray(ground, np.float64), table.shape[1])
    distinct, table = distinct @ embedding, table @ embedding
  if len(distinct) > size:
    with warnings.catch_warnings():
      # An empty cluster is one cluster less.
      warnings.simplefilter("ignore", UserWarning)
      centres, _ = scipy.cluster.vq.kmeans2(
        table, size, minit="++", seed=np.random.default_rng(seed)
      )
    nearest = ((distinct[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    which = nearest[which.reshape(-1)]
  result: Int64s = np.unique(which, return_inverse=True)[1].reshape(-1)
  return result


def _embed(ground: Float64s, columns: int) -> Float64s:
  """Returns A with |p A - q A|^2 = -(p - q)' ground (p - q) where p and q have the same sum: classical scaling."""
  if ground.shape != (columns, columns) or not (
    np.isfinite(ground).all() and np.array_equal(ground, ground.T)
  ):
    raise errors.ArgumentError(
      f"ground must be a symmetric table of {columns} x {columns} distances, not of shape {ground.shape}."
    )
  centring = np.eye(columns) - 1 / columns
  values, vectors = np.linalg.eigh(-centring @ ground @ centring)
  return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))
