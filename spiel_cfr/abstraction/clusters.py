"""Clusters of infosets as buckets, by k-means on the strategies that a few iterations give.

The method needs no knowledge of the game. It clusters infosets that the other players can't distinguish, such as hands
after the same betting. If a cluster merges infosets of different earlier clusters, the abstraction has imperfect
recall, and its infosets are shared. k-means++ is by Arthur and Vassilvitskii (2007), in SciPy's implementation.
"""

import warnings

import numpy as np
import numpy.typing as npt
import scipy  # Python imports `scipy.cluster` at its first use.

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s, range_starts
from spiel_cfr._util import arguments
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.abstraction.buckets import Buckets, identity
from spiel_cfr.cfr import CFRPlusSolver
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.enumerated_game import listed_game
from spiel_cfr.games.payoffs.build_payoff import merged_leaves
from spiel_cfr.games.payoffs.private_types import group_public_states


@typed
def cluster(game: CompiledGame, size: int, *, iterations: int = 100, seed: int = 0) -> Buckets:
  """Returns buckets of infosets at which the average strategy of CFR+ is similar.

      small = abstract(game, cluster(game, 4))

  Args:
    game: a compiled game that lists its leaves.
    size: the largest number of buckets at a public state.
    iterations: the number of iterations of CFR+ on the full game.
    seed: the seed of k-means++; the same seed gives the same buckets.

  Raises:
    ArgumentError: an argument is out of its range.
    UnsupportedGameError: the game is in vector form, or is an abstraction.
  """
  size = arguments.positive_integer(size, "size")
  iterations = arguments.positive_integer(iterations, "iterations")
  rng = np.random.default_rng(arguments.integer(seed, "seed", 0))
  game = listed_game(game)
  solver = CFRPlusSolver(game)
  solver.run(iterations)
  strategy, infoset_of = solver.average_probabilities(), np.full(game.end, -1)
  for infosets in game.infosets:
    infoset_of[infosets.action_sequences] = np.repeat(
      np.arange(len(infosets.num_actions)), infosets.num_actions
    )
  leaves, _ = merged_leaves(
    game.payoff, game.num_players, np.arange(game.end, dtype=np.uint32), np.ones(game.end)
  )
  labels = []
  for player, infosets in enumerate(game.infosets):
    sequences, starts = infosets.action_sequences, range_starts(infosets.num_actions)
    public = group_public_states(leaves, player, infoset_of, len(infosets.num_actions))
    label, num_labels = np.zeros(len(public), np.int64), 0
    for members in _groups(infosets.num_actions, infosets.actions, public):
      num_actions = int(infosets.num_actions[members[0]])
      points = strategy[sequences[starts[members][:, None] + np.arange(num_actions)]]
      label[members] = num_labels + k_means(points, size, rng)
      num_labels += size
    labels.append(label)
  return Buckets(tuple(labels), identity(game).action_labels)


def _groups(num_actions: Int64s, actions: Int64s, public: Int64s) -> list[Int64s]:
  """Returns the groups of infosets that may share buckets: infosets at one public state with the same actions.

  Args:
    num_actions: shape (infosets,). The number of actions of each infoset.
    actions: shape (actions,). The actions of all infosets.
    public: shape (infosets,). The public state of each infoset.
  """
  groups: dict[tuple[int, ...], list[int]] = {}
  legal_actions = np.split(actions, np.cumsum(num_actions)[:-1]) if len(num_actions) else []
  for index, (state, legal) in enumerate(zip(public.tolist(), legal_actions, strict=True)):
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
  """Returns clusters of points by k-means++. Equal points are in one cluster.

  Args:
    points: float64 (points, columns).
    size: the largest number of clusters.
    seed: the seed of the first centers, or a generator.
    ground: None for Euclidean distances between points. For points that are histograms of the same sum: float64
      (columns, columns), the Euclidean distances between bins. Histograms p and q are then compared by the energy
      distance (Székely and Rizzo, "Energy Statistics", 2013), in which shifts between neighboring bins count little:

        distance^2 = -(p - q)' ground (p - q)

  Returns:
    int64 (points,). The cluster of each point, numbered from 0 without gaps.

  Raises:
    ArgumentError: the points are not a table of finite numbers, the size is not positive, the seed is invalid, or
      `ground` is not a symmetric table.
  """
  size = arguments.positive_integer(size, "size")
  if not isinstance(seed, np.random.Generator):
    seed = arguments.integer(seed, "seed", 0)
  table = _as_table(points, "points")
  if table.ndim != 2 or not len(table) or not np.isfinite(table).all():
    raise errors.ArgumentError("points must be a table of finite numbers, one row for each point.")
  distinct, cluster_of = np.unique(table, axis=0, return_inverse=True)
  if ground is not None:
    embedding = _embed(_as_table(ground, "ground"), table.shape[1])
    distinct, table = distinct @ embedding, table @ embedding
  if len(distinct) > size:
    with warnings.catch_warnings():
      # SciPy warns of empty clusters, which are dropped below.
      warnings.simplefilter("ignore", UserWarning)
      centers, _ = scipy.cluster.vq.kmeans2(
        table, size, minit="++", seed=np.random.default_rng(seed)
      )
    nearest = ((distinct[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    cluster_of = nearest[cluster_of.reshape(-1)]
  result: Int64s = np.unique(cluster_of, return_inverse=True)[1].reshape(-1)
  return result


def _as_table(value: npt.ArrayLike, name: str) -> Float64s:
  try:
    return np.asarray(value, np.float64)
  except (OverflowError, TypeError, ValueError):
    raise errors.ArgumentError(
      f"{name} must be a table of numbers, not {arguments.shortened(value)}."
    ) from None


def _embed(ground: Float64s, columns: int) -> Float64s:
  """Returns a matrix A with |p A - q A|^2 = -(p - q)' ground (p - q) for all p and q of the same sum.

  This is classical multidimensional scaling, by which k-means uses the energy distance.
  """
  if ground.shape != (columns, columns) or not (
    np.isfinite(ground).all() and np.array_equal(ground, ground.T)
  ):
    raise errors.ArgumentError(
      f"ground must be a symmetric table of {columns} x {columns} distances, not of shape {ground.shape}."
    )
  centring = np.eye(columns) - 1 / columns
  values, vectors = np.linalg.eigh(-centring @ ground @ centring)
  return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))
