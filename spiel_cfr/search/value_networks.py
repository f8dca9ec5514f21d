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
from spiel_cfr.search.search_step import Step, solve_subgame, write
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
    widths: how many such numbers each player has at most.
  """

  def __init__(self, states: Sequence[PublicState]) -> None:
    """Numbers what there is."""
    self.states, self.tree = states, states[0].tree
    found = self.tree.histories
    self.leaves = np.concatenate([state.histories for state in states])
    self.row = np.repeat(np.arange(len(states)), [len(state.histories) for state in states])
    self.place = np.stack(
      [
        np.concatenate(
          [
            np.unique(found.known_to(player, state.histories), return_inverse=True)[1]
            for state in states
          ]
        )
        for player in (0, 1)
      ]
    )
    self.widths: list[int] = (self.place.max(axis=1) + 1).tolist()

  def _table(self, player: int, numbers: Float64s) -> Float64s:
    """Returns numbers of the leaves, equal where a player knows the same, as shape (public states, its width)."""
    result = np.zeros((len(self.states), self.widths[player]))
    result[self.row, self.place[player]] = numbers
    return result

  def _sums(self, player: int, numbers: Float64s) -> Float64s:
    """Returns sums of numbers of the leaves over those that a player can't tell apart, at each leaf."""
    width = self.widths[player]
    known = self.row * width + self.place[player]
    result: Float64s = np.bincount(known, numbers, len(self.states) * width)[known]
    return result

  @abc.abstractmethod
  def values(self, reaches: Sequence[Float64s]) -> tuple[Float64s, Float64s]:
    """Returns what each player expects at each leaf of the cut, by its own knowledge.

    Args:
      reaches: of each player, its probability of playing to the leaves, shape (leaves,).

    Returns:
      Each player's, shape (leaves,), less half of what the returns sum to.
    """


class SolvedValues(PublicStateValues):
  """What public states are worth by a linear program of all of them: exact, and slow beside a network."""

  def __init__(self, states: Sequence[PublicState]) -> None:
    """Prepares the programs.

    Args:
      states: of one tree, none below another.

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
    mass = self._sums(player, weights)
    result: Float64s = self._sums(player, weights * worth) / np.where(mass > 0, mass, 1.0)
    return result


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
    """Takes a network that has been fitted."""
    super().__init__(solved.states)
    self._network, self._parameters, self._scale = network, parameters, scale
    self.error = error

  def values(self, reaches: Sequence[Float64s]) -> tuple[Float64s, Float64s]:
    """Returns what the network says."""
    found = self._scale * self._network.outputs(
      self._parameters, _features(self, reaches), sum(self.widths)
    )
    first, second = np.split(found, self.widths[:1], axis=1)
    return first[self.row, self.place[0]], second[self.row, self.place[1]]


def _features(values: PublicStateValues, reaches: Sequence[Float64s]) -> Array:
  """Returns what a network sees of public states: which it is, and each player's range, which sums to 1."""
  parts = [np.eye(len(values.states))]
  for player, reach in enumerate(reaches):
    ranges = values._table(player, reach)
    totals = ranges.sum(axis=1, keepdims=True)
    parts.append(ranges / np.where(totals > 0, totals, 1.0))
  result: Array = np.concatenate(parts, axis=1).astype(np.float32)
  return result


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
  num_outputs = sum(solved.widths)
  fresh = network.fresh((seed, 0), len(solved.states) + num_outputs, num_outputs)
  rng = np.random.default_rng(seed)
  seen, targets = [], []
  for _ in range(rounds + max(1, rounds // 10)):
    reaches = [_drawn_reach(solved, player, rng) for player in (0, 1)]
    seen.append(_features(solved, reaches))
    worth = solved.values(reaches)
    targets.append(np.concatenate([solved._table(p, worth[p]) for p in (0, 1)], axis=1))
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
  shape = len(values.states), values.widths[player]
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
    opponent = 1 - searcher
    mass = values._sums(opponent, likely[opponent])
    bounds = values._sums(opponent, got[opponent]) / np.where(mass > 0, mass, 1.0)
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
  standing.values[values.leaves] = bounds
  solved = []
  for state in values.states:
    roots = standing.bounds(state.histories, gadget)
    if roots is not None:
      subgame = cut_out(standing, roots, gadget)
      write(tree.histories, subgame, solve_subgame(subgame, "lp", 1), result)
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
