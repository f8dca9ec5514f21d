"""Search that stops where something says what public states are worth: linear programs, or a network that learned it.

Below a limit of depth nothing is chosen then. What a private state of a player is worth there depends on what both
players may hold, and on nothing else, if what follows is played well (DeepStack, Moravčík et al. 2017; ReBeL, Brown et
al. 2020). CFR asks again in each iteration, with the ranges that both come with: CFR-D of Burch, Johanson and Bowling,
"Solving Imperfect Information Games Using Decomposition" (2014).
"""

import abc
import time
from collections.abc import Sequence

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr.deep_cfr.network import MLP, Approximator, Array, Rows, Training
from spiel_cfr.evaluation.linear_program import solve_lp
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.policies import forms, open_spiel
from spiel_cfr.search.gadgets import GADGETS
from spiel_cfr.search.public_states import PublicState, cut_of
from spiel_cfr.search.resolve import Resolved, resolved
from spiel_cfr.search.search_step import Step, solve_subgame
from spiel_cfr.search.standing import Roots, Standing
from spiel_cfr.search.subgames import Limit, cut_out

# The least that a drawn range has beside its most: what a player hardly ever has is still worth something.
_RAREST = 1e-3


class PublicStateValues(abc.ABC):
  """What each player may expect at the public states of a cut, by what it knows there.

  Attributes:
    tree: the public states of the game.
    states: those of the cut, none below another.
    leaves: int64 (leaves,), their histories.
    row: int64 (leaves,), the public state of each, as a place in `states`.
    place: int64 (2, leaves), what each player knows there, as a number from 0 in each public state.
    width: how many such numbers there are at most.
  """

  def __init__(self, states: Sequence[PublicState]) -> None:
    self.states, self.tree = states, states[0].tree
    self.leaves = np.concatenate([state.histories for state in states])
    self.row = np.repeat(np.arange(len(states)), [len(state.histories) for state in states])
    known_to = self.tree.histories.known_to
    self.place = np.array(
      [
        np.concatenate(
          [np.unique(known_to(player, each.histories), return_inverse=True)[1] for each in states]
        )
        for player in (0, 1)
      ]
    )
    self.width = int(self.place.max()) + 1

  @abc.abstractmethod
  def values(self, reaches: Sequence[Float64s]) -> tuple[Float64s, Float64s]:
    """Returns what each player expects at each leaf of the cut, by its own knowledge.

    Args:
      reaches: of each player, its probability of playing to the leaves, shape (leaves,).

    Returns:
      Each player's, shape (leaves,), less half of what the returns sum to.
    """


def _table(values: PublicStateValues, player: int, numbers: Float64s) -> Float64s:
  """Returns numbers of the leaves, equal where a player knows the same, as shape (public states, width)."""
  result = np.zeros((len(values.states), values.width))
  result[values.row, values.place[player]] = numbers
  return result


def _ratios(
  values: PublicStateValues, player: int, numbers: Float64s, weights: Float64s
) -> Float64s:
  """Returns sums of numbers over sums of weights, where a player knows the same as at a leaf; shape (leaves,)."""
  known = values.row * values.width + values.place[player]
  above, below = np.bincount(known, numbers)[known], np.bincount(known, weights)[known]
  result: Float64s = above / np.where(below > 0, below, 1.0)
  return result


def _features(values: PublicStateValues, reaches: Sequence[Float64s]) -> Array:
  """Returns what a network sees of public states: which it is, and each player's range, which sums to 1."""
  parts = [np.eye(len(values.states))]
  for player, reach in enumerate(reaches):
    ranges = _table(values, player, reach)
    totals = ranges.sum(axis=1, keepdims=True)
    parts.append(ranges / np.where(totals > 0, totals, 1.0))
  return np.concatenate(parts, axis=1).astype(np.float32)


class SolvedValues(PublicStateValues):
  """What public states are worth by a linear program of all of them: exact, and slow beside a network."""

  def __init__(self, states: Sequence[PublicState]) -> None:
    """Prepares the programs of public states of one tree, none below another.

    Raises:
      ArgumentError: they are not.
    """
    if not states:
      raise errors.ArgumentError("states must be at least one public state.")
    tree = states[0].tree
    super().__init__(cut_of(tree.game, states))
    found = tree.histories
    uniform = tree.game.to_actions(forms.uniform(tree.game))
    self._standing = Standing(found, uniform, 0)
    below = found.below(self.leaves)
    self._leaf_of = np.full(len(found.parent), -1)
    self._leaf_of[below] = np.repeat(
      np.arange(len(self.leaves)), found.end[self.leaves] - self.leaves
    )
    infosets = np.unique(found.infoset[below[found.mover[below] >= 0]])
    self._solved = np.isin(found.infoset_of_entry, infosets)

  def values(self, reaches: Sequence[Float64s]) -> tuple[Float64s, Float64s]:
    """Returns what a best response gets from the solution: what it is worth too to be where a player never comes."""
    found = self.tree.histories
    weights = found.chance[self.leaves] * reaches[0] * reaches[1]
    totals = np.bincount(self.row, weights)[self.row]
    weights = np.divide(weights, totals, out=weights, where=totals > 0)
    # The opponent's places do not matter where chance deals.
    mass = np.bincount(self.row, weights).astype(np.float64)
    roots = Roots(self.leaves, weights, self.row, np.arange(len(mass)), mass, mass, mass)
    game = cut_out(self._standing, roots, GADGETS["unsafe"]).game
    entries = self._standing.entries.copy()
    entries[self._solved] = game.to_actions(solve_lp(game).probabilities)
    first, second = (self._response(entries, player, reaches[1 - player]) for player in (0, 1))
    return first, second

  def _response(self, entries: Float64s, player: int, reach: Float64s) -> Float64s:
    """Returns what a player gets at each leaf against entries, to which the other comes with some reach."""
    found = self.tree.histories
    others = found.chance * found.reach(entries, 1 - player)
    # The last number is that of histories which are not below the cut.
    weights = others * np.append(reach / others[self.leaves], 0.0)[self._leaf_of]
    worth = found.response_values(weights, entries, player)[self.leaves]
    weights = found.chance[self.leaves] * reach
    return _ratios(self, player, weights * worth, weights)


class ValueNetwork(PublicStateValues):
  """What public states are worth by a network. Make one with `learn_values`.

  Attributes:
    error: the root of the mean square error on public states that it has not learned from, in the game's units.
  """

  def __init__(
    self,
    solved: SolvedValues,
    network: Approximator,
    parameters: Array,
    scale: float,
    error: float,
  ) -> None:
    super().__init__(solved.states)
    self._network, self._parameters, self._scale = network, parameters, scale
    self.error = error

  def values(self, reaches: Sequence[Float64s]) -> tuple[Float64s, Float64s]:
    seen = _features(self, reaches)
    found = self._scale * self._network.outputs(self._parameters, seen, 2 * self.width)
    found = found.reshape(-1, 2, self.width)
    return found[self.row, 0, self.place[0]], found[self.row, 1, self.place[1]]


def learn_values(
  game: AnyGame,
  *,
  cut: Sequence[PublicState] | None = None,
  rounds: int = 400,
  network: Approximator | None = None,
  steps: int = 20_000,
  seed: int = 0,
) -> ValueNetwork:
  """Solves the public states of a cut with random ranges, and fits a network to what they are worth.

  Args:
    game: a compiled game, or what `compile_game` takes.
    cut: public states, none below another; by default `PublicTree.natural_cut`.
    rounds: how many times each public state is solved; a tenth as often again to measure `ValueNetwork.error`.
    network: `deep_cfr.MLP((128, 128))` by default.
    steps: of its fit.
    seed: of ranges, network and fit.

  Raises:
    MissingPackageError: JAX and optax are not installed.
    UnsupportedGameError: see `public_states`.
    ArgumentError: a number is not a positive integer, or the cut is none of this game.
    GameError: see `compile_game`.
  """
  arguments.positive_integer(rounds, "rounds")
  arguments.positive_integer(steps, "steps")
  seed = arguments.integer(seed, "seed", 0, 0xFFFF_FFFF)
  network = network or MLP((128, 128))
  solved = SolvedValues(cut_of(game, cut))
  num_outputs = 2 * solved.width
  fresh = network.fresh((seed, 0), len(solved.states) + num_outputs, num_outputs)
  rng = np.random.default_rng(seed)
  seen, targets = [], []
  for _ in range(rounds + max(1, rounds // 10)):
    reaches = [_drawn_reach(solved, player, rng) for player in (0, 1)]
    seen.append(_features(solved, reaches))
    worth = solved.values(reaches)
    targets.append(np.hstack([_table(solved, player, worth[player]) for player in (0, 1)]))
  learned = rounds * len(solved.states)
  rows, wanted = np.concatenate(seen), np.concatenate(targets)
  scale = float(np.sqrt((wanted[:learned] ** 2).mean())) or 1.0
  every = np.ones(wanted[:learned].shape, bool)
  fitted = network.fitted(
    fresh,
    Rows(rows[:learned], wanted[:learned] / scale, every, np.ones(learned)),
    Training(steps, 1e-3, min(256, learned), (seed, 1)),
  )
  missed = scale * network.outputs(fitted, rows[learned:], num_outputs) - wanted[learned:]
  return ValueNetwork(solved, network, fitted, scale, float(np.sqrt((missed**2).mean())))


def _drawn_reach(values: PublicStateValues, player: int, rng: np.random.Generator) -> Float64s:
  """Returns a random reach of the leaves by what a player knows: even, or as good as pure."""
  shape = len(values.states), values.width
  drawn = rng.random(shape) ** np.exp(rng.uniform(-2.0, 2.0, (shape[0], 1)))
  drawn = np.maximum(drawn * (rng.random(shape) < 0.85), _RAREST)
  result: Float64s = drawn[values.row, values.place[player]]
  return result


def solve_by_values(
  blueprint: open_spiel.AnyPolicy, values: PublicStateValues, *, iterations: int = 1000
) -> Resolved:
  """Solves a game from its first move to a cut by CFR+, with values for what is below; then what is below, once.

  What is below is solved by the gadget of `"follow"`, whose bounds are what the opponent got there on average while CFR
  ran. With exact values the policy comes as close to an equilibrium as one likes; a network's errors promise nothing,
  and what came of it is measured. Players are updated at the same time: the proof asks for values of what both play.

  Args:
    blueprint: a policy of both players, which is played where nobody comes.
    values: what `learn_values` returns, or `SolvedValues`.
    iterations: how many.

  Raises:
    PolicyError: the blueprint does not know the game's infosets.
    ArgumentError: `iterations` is not a positive integer.
    NoSolutionError: a linear program was not solved.
  """
  arguments.positive_integer(iterations, "iterations")
  if not isinstance(values, PublicStateValues):
    raise errors.ArgumentError(
      f"values must be what learn_values returns, or SolvedValues, not {arguments.shortened(values)}."
    )
  found, start, leaves = values.tree.histories, values.tree.entries(blueprint), values.leaves
  reached = Limit(leaves, np.zeros((1, 0))).reached(found)
  moved = [
    np.flatnonzero(reached & (found.parent >= 0) & (found.mover[found.parent] == player))
    for player in (0, 1)
  ]
  histories = np.bincount(found.entry[np.concatenate(moved)], minlength=found.num_entries)
  uniform = 1.0 / found.num_actions[found.infoset_of_entry]
  regrets, sums = np.zeros((2, found.num_entries))
  # What each player got at the leaves in all iterations, and how likely the other came there with chance.
  got, likely = np.zeros((2, 2, len(leaves)))
  for iteration in range(1, iterations + 1):
    played = found.normalized(regrets, uniform)
    reach = [found.reach(played, player) for player in (0, 1)]
    at_leaves = values.values([each[leaves] for each in reach])
    for player, own in enumerate(moved):
      worth = np.where(reached, (1 - 2 * player) * found.payoff, 0.0)
      worth[leaves] = at_leaves[player]
      worth = found.carried(played, worth)
      above, entry = found.parent[own], found.entry[own]
      others = found.chance * reach[1 - player]
      regrets += np.bincount(entry, others[own] * (worth[own] - worth[above]), len(regrets))
      # An infoset's histories have the same reach of its owner's: their mean is that.
      sums += (
        iteration * np.bincount(entry, reach[player][own], len(sums)) / np.maximum(histories, 1)
      )
      likely[player] += iteration * others[leaves]
      got[player] += iteration * others[leaves] * at_leaves[player]
    np.maximum(regrets, 0.0, out=regrets)
  trunk = found.normalized(sums, start)
  result, steps = trunk.copy(), []
  for searcher in (0, 1):
    bounds = _ratios(values, 1 - searcher, got[1 - searcher], likely[1 - searcher])
    steps.append(_solve_below(values, trunk, bounds, searcher, result))
  return resolved(values.tree, start, result, steps)


def _solve_below(
  values: PublicStateValues, trunk: Float64s, bounds: Float64s, searcher: int, result: Float64s
) -> Step:
  """Solves the public states of a cut for one player, by bounds at the leaves; writes what is played into `result`."""
  begin, tree, gadget = time.perf_counter(), values.tree, GADGETS["follow"]
  standing = Standing(tree.histories, trunk, searcher)
  before = standing.opponent_gets
  # Not what it gets from a best response: the policy says nothing yet of what is below.
  expected = standing.values.copy()
  expected[values.leaves] = bounds
  standing = standing.judged(values=expected)
  solved = []
  for state in values.states:
    roots = standing.bounds(state.histories, gadget)
    if roots is not None:
      subgame = cut_out(standing, roots, gadget)
      subgame.write(solve_subgame(subgame, "lp", 1), result)
      solved.append(roots)
  after = Standing(tree.histories, result, searcher)
  margin = min(map(after.smallest_margin, solved), default=float("nan"))
  return Step(
    searcher,
    min(state.length for state in values.states),
    len(solved),
    len(values.states) - len(solved),
    0,
    margin,
    before,
    after.opponent_gets,
    time.perf_counter() - begin,
  )
