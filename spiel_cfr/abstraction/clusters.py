"""Buckets that clusters of infosets make, without any knowledge of the game.

Infosets of a player that the others can't tell apart, such as hands after the same betting, are clustered by what a few
iterations on the full game say of them:

- "values": the counterfactual utility of each action (after Li and Huang, "WEVA", 2026, who weigh the values of hands
  at all nodes);
- "strategies": how often each action is played, on average.

Where clusters do not follow from those before, players forget: the infosets are shared. k-means++ is that of Arthur and
Vassilvitskii (2007), by SciPy.
"""

import warnings
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import scipy  # its `cluster` is imported when it is used

from spiel_cfr import catalogue, errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._util import arguments
from spiel_cfr.abstraction.buckets import Buckets, identity
from spiel_cfr.abstraction.earth_mover import earth_movers_distances
from spiel_cfr.evaluation.counterfactual_values import backward_pass, expect, gradients
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame
from spiel_cfr.games.payoffs.build_payoff import merged_leaves
from spiel_cfr.games.payoffs.private_types import public_states
from spiel_cfr.policies import forms

Feature: TypeAlias = Literal["values", "strategies"]
# Of k-means over histograms, as SciPy's.
_ROUNDS = 10


def cluster(
  game: CompiledGame,
  size: int,
  *,
  feature: Feature = "strategies",
  iterations: int = 100,
  solver: str = "cfr+",
  seed: int = 0,
) -> Buckets:
  """Puts infosets into buckets by what a solver has learned of them.

      small = abstract(game, cluster(game, 4))

  Args:
    game: a compiled game that lists its leaves.
    size: how many buckets a public state has at most.
    feature: see the module's docstring.
    iterations: how many to look at the full game for.
    solver: a name in the catalogue.
    seed: of k-means++; the same seed gives the same buckets.

  Raises:
    ArgumentError: an argument makes no sense.
    UnsupportedGameError: the game is in vector form, or an abstraction itself.
  """
  size = arguments.positive_integer(size, "size")
  seed = arguments.integer(seed, "seed", 0)
  arguments.one_of(feature, "feature", get_args(Feature))
  states = _public_states(game)
  learned = catalogue.make(solver, game, iterations)
  learned.run(arguments.positive_integer(iterations, "iterations"))
  probabilities = learned.average_probabilities()
  numbers = probabilities if feature == "strategies" else _values(game, probabilities)
  entries, begin = numbers[game.all_action_sequences], 0
  rng = np.random.default_rng(seed)
  labels = []
  for own, public in zip(game.infosets, states, strict=True):
    starts = begin + np.cumsum(own.num_actions) - own.num_actions
    begin += len(own.actions)
    found, count = np.zeros(len(public), np.int64), 0
    for members in _groups(own.num_actions, own.actions, public):
      width = int(own.num_actions[members[0]])
      points = entries[starts[members][:, None] + np.arange(width)]
      number = k_means(points, size, rng)
      found[members] = count + number
      count += int(number.max()) + 1
    labels.append(found)
  return Buckets(tuple(labels), identity(game).slots)


def _public_states(game: CompiledGame) -> list[Int64s]:
  """Returns, per player, the first infoset that the others can't tell from each; in order of discovery."""
  if not isinstance(game, EnumeratedGame) or game.original is not game:
    raise errors.UnsupportedGameError(
      f"{game} lists no leaves of its own. Give compile_game(game, vector_form=False), without symmetries."
    )
  number, begin = np.zeros(game.end, np.uint32), 0
  for own in game.infosets:
    cells = game.all_action_sequences[begin : begin + len(own.actions)]
    number[cells] = 1 + np.arange(len(cells))
    begin += len(cells)
  leaves, _ = merged_leaves(game.payoff, game.num_players, number, np.ones(game.end))
  owners = [np.repeat(np.arange(len(own.num_actions)), own.num_actions) for own in game.infosets]
  return [
    public_states(leaves, player, np.append(-1, owner), len(own.num_actions))
    for player, (owner, own) in enumerate(zip(owners, game.infosets, strict=True))
  ]


def _groups(num_actions: Int64s, actions: Int64s, public: Int64s) -> list[Int64s]:
  """Returns the infosets that may be in one bucket: of one public state, with the same actions."""
  groups: dict[tuple[int, ...], list[int]] = {}
  pieces = np.split(actions, np.cumsum(num_actions)[:-1]) if len(num_actions) else []
  for index, (state, legal) in enumerate(zip(public.tolist(), pieces, strict=True)):
    groups.setdefault((state, *legal.tolist()), []).append(index)
  return [np.array(members) for members in groups.values()]


def _values(game: CompiledGame, probabilities: Float64s) -> Float64s:
  """Returns the counterfactual utility of each sequence."""
  utility = gradients(game, forms.sequence_form(game, probabilities))
  backward_pass(game, expect, utility, strategy=probabilities)
  return utility


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
    ground: None for Euclidean distances. Or the distances between the columns: then points are histograms, compared by
      `earth_movers_distances`, with means for centres (Ganzfried and Sandholm 2014).

  Returns:
    The number of each point's cluster, from 0 without gaps; shape (points,).

  Raises:
    ArgumentError: the points are not a table of finite numbers, or the size is not positive, or the seed is none; or
      see `earth_movers_distances`.
  """
  size = arguments.positive_integer(size, "size")
  if not isinstance(seed, np.random.Generator):
    seed = arguments.integer(seed, "seed", 0)
  table = np.asarray(points, np.float64)
  if table.ndim != 2 or not len(table) or not np.isfinite(table).all():
    raise errors.ArgumentError("points must be a table of finite numbers, a row each.")
  distinct, which, counts = np.unique(table, axis=0, return_inverse=True, return_counts=True)
  which = which.reshape(-1)
  if ground is not None:
    # Says what is wrong, however few points there are.
    earth_movers_distances(distinct[:1], distinct[:1], ground)
  if len(distinct) > size:
    rng = np.random.default_rng(seed)
    if ground is None:
      with warnings.catch_warnings():
        # An empty cluster is one cluster less.
        warnings.simplefilter("ignore", UserWarning)
        centres, _ = scipy.cluster.vq.kmeans2(table, size, minit="++", seed=rng)
      nearest = ((distinct[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    else:
      nearest = _histogram_clusters(distinct, counts, size, rng, np.asarray(ground, np.float64))
    which = nearest[which]
  result: Int64s = np.unique(which, return_inverse=True)[1]
  return result


def _histogram_clusters(
  points: Float64s, counts: Int64s, size: int, rng: np.random.Generator, ground: Float64s
) -> Int64s:
  """Lloyd's algorithm, from the centres of k-means++, which SciPy has for Euclidean distances alone."""
  centres = points[rng.choice(len(points), 1, p=counts / counts.sum())]
  distances = earth_movers_distances(points, centres, ground)
  while len(centres) < size:
    weights = counts * distances.min(axis=1) ** 2
    centres = np.vstack([centres, points[rng.choice(len(points), p=weights / weights.sum())]])
    distances = np.hstack([distances, earth_movers_distances(points, centres[-1:], ground)])
  nearest = distances.argmin(axis=1)
  for _ in range(_ROUNDS):
    # What no point is nearest to stays where it is.
    used = np.unique(nearest)
    for cluster_number in used.tolist():
      own = nearest == cluster_number
      centres[cluster_number] = np.average(points[own], axis=0, weights=counts[own])
    before, nearest = nearest, earth_movers_distances(points, centres, ground).argmin(axis=1)
    if (before == nearest).all():
      break
  return np.asarray(nearest)
