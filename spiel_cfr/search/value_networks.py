"""A network that says what public states are worth, learned from public states that were solved; and search with it.

Below a limit of depth nothing is chosen then: what a private state of a player is worth there depends on what both
players may hold, and on nothing else (DeepStack, Moravčík et al. 2017; ReBeL, Brown et al. 2020). CFR asks again in
each iteration, with the ranges that both come with.
"""

from collections.abc import Sequence

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._util import arguments
from spiel_cfr.deep_cfr.network import MLP, Approximator, Rows, Training
from spiel_cfr.evaluation.best_responses import take_best
from spiel_cfr.evaluation.counterfactual_values import backward_pass, gradients
from spiel_cfr.evaluation.linear_program import solve_lp
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.policies import forms, open_spiel
from spiel_cfr.search.gadgets import GADGETS
from spiel_cfr.search.public_states import PublicState, PublicTree, public_states
from spiel_cfr.search.resolve import Resolved, resolved
from spiel_cfr.search.standing import Roots, Standing
from spiel_cfr.search.subgames import Limit, cut_out


class Cut:
  """Public states none of which is below another, as rows of a table: what is at each, and what each player may know.

  Attributes:
    leaves: int64 (leaves,), their histories.
    row: int64 (leaves,), the public state of each.
    place: int64 (2, leaves), what each player knows there, as a number from 0 in each public state.
    widths: how many such numbers each player has at most.
    chance: float64 (leaves,), chance's probability.
  """

  def __init__(self, tree: PublicTree, states: Sequence[PublicState]) -> None:
    """Numbers what there is."""
    found = tree.histories
    self.leaves = np.concatenate([state.histories for state in states])
    self.row = np.repeat(np.arange(len(states)), [len(state.histories) for state in states])
    self.chance = found.chance[self.leaves]
    self.size = len(states)
    places = []
    for player in (0, 1):
      own = [
        np.unique(found.known_to(player, state.histories), return_inverse=True)[1]
        for state in states
      ]
      places.append(np.concatenate(own))
    self.place = np.stack(places)
    self.widths = (self.place.max(axis=1) + 1).tolist()

  def ranges(self, player: int, reach: Float64s) -> Float64s:
    """Returns a player's reach of what it may know, by its reach of the leaves; shape (public states, width)."""
    result = np.zeros((self.size, self.widths[player]))
    result[self.row, self.place[player]] = reach
    return result


class ValueNetwork:
  """What each player may expect at the public states of a cut, by what it knows; made by `learn_values`.

  Attributes:
    tree: the public states of the game.
    states: those of the cut.
    error: the root of the mean square error on public states that it has not learned from, in the game's units.
  """

  def __init__(
    self,
    tree: PublicTree,
    states: Sequence[PublicState],
    network: Approximator,
    parameters: Float64s,
    scale: float,
    error: float,
  ) -> None:
    """Takes a network that has been fitted."""
    self.tree, self.states, self.error = tree, states, error
    self.cut = Cut(tree, states)
    self._network, self._parameters, self._scale = network, parameters, scale

  def values(self, reaches: Sequence[Float64s]) -> tuple[Float64s, Float64s]:
    """Returns what each player expects at each leaf of the cut, by its own knowledge.

    Args:
      reaches: of each player, its probability of playing to the leaves, shape (leaves,).

    Returns:
      Each player's, shape (leaves,), less half of what the returns sum to.
    """
    cut = self.cut
    ranges = [cut.ranges(player, reach) for player, reach in enumerate(reaches)]
    found = self._scale * self._network.outputs(self._parameters, features(ranges), sum(cut.widths))
    first, second = found[:, : cut.widths[0]], found[:, cut.widths[0] :]
    return first[cut.row, cut.place[0]], second[cut.row, cut.place[1]]


def features(ranges: Sequence[Float64s]) -> Float64s:
  """Returns what the network sees of public states: which it is, and each player's range, which sums to 1."""
  totals = [each.sum(axis=1, keepdims=True) for each in ranges]
  own = [each / np.where(total > 0, total, 1.0) for each, total in zip(ranges, totals, strict=True)]
  result: Float64s = np.concatenate([np.eye(len(own[0])), *own], axis=1).astype(np.float32)
  return result


def learn_values(
  game: AnyGame,
  *,
  cut: Sequence[PublicState] | None = None,
  rounds: int = 100,
  network: Approximator | None = None,
  steps: int = 20_000,
  seed: int = 0,
) -> ValueNetwork:
  """Solves the public states of a cut with random ranges, and fits a network to what they are worth.

  Args:
    game: a compiled game, or what `compile_game` takes.
    cut: public states, none below another; by default `PublicTree.natural_cut`.
    rounds: how many times each public state is solved.
    network: `deep_cfr.MLP((128, 128))` by default.
    steps: of its fit.
    seed: of ranges, network and fit.

  Raises:
    MissingPackageError: JAX and optax are not installed.
    UnsupportedGameError: see `public_states`.
    ArgumentError: a number is not a positive integer.
    GameError: see `compile_game`.
  """
  arguments.positive_integer(rounds, "rounds")
  arguments.positive_integer(steps, "steps")
  rng = np.random.default_rng(arguments.integer(seed, "seed", 0))
  network = network or MLP((128, 128))
  tree = cut[0].tree if cut else public_states(game)
  states = list(cut or tree.natural_cut())
  table = Cut(tree, states)
  entries = tree.game.to_actions(forms.uniform(tree.game))
  standings = [Standing(tree.histories, entries, player) for player in (0, 1)]
  seen, targets = [], []
  for _ in range(rounds + max(1, rounds // 10)):
    ranges = [_drawn_ranges(table, player, rng) for player in (0, 1)]
    seen.append(features(ranges))
    targets.append(np.concatenate(_solved(standings, table, ranges), axis=1))
  learned = rounds * len(states)
  rows, wanted = np.concatenate(seen), np.concatenate(targets)
  scale = float(np.sqrt((wanted[:learned] ** 2).mean())) or 1.0
  training = Training(steps, 1e-3, min(256, learned), (seed & 0xFFFF_FFFF, 1))
  fresh = network.fresh((seed & 0xFFFF_FFFF, 0), rows.shape[1], wanted.shape[1])
  every = np.ones(wanted[:learned].shape, bool)
  fitted = network.fitted(
    fresh, Rows(rows[:learned], wanted[:learned] / scale, every, np.ones(learned)), training
  )
  missed = scale * network.outputs(fitted, rows[learned:], wanted.shape[1]) - wanted[learned:]
  return ValueNetwork(tree, states, network, fitted, scale, float(np.sqrt((missed**2).mean())))


def _drawn_ranges(table: Cut, player: int, rng: np.random.Generator) -> Float64s:
  """Returns random ranges, some nearly pure; shape (public states, width)."""
  shape = table.size, table.widths[player]
  powers = np.exp(rng.uniform(-2.0, 2.0, (table.size, 1)))
  # What a player never does is still worth something.
  drawn = np.maximum(rng.random(shape) ** powers * (rng.random(shape) < 0.85), 1e-3)
  result = np.zeros(shape)
  result[table.row, table.place[player]] = drawn[table.row, table.place[player]]
  return result


def _solved(
  standings: Sequence[Standing], table: Cut, ranges: Sequence[Float64s]
) -> list[Float64s]:
  """Returns what each player expects of what it knows when both come with ranges and play equilibria from there."""
  reach = [ranges[player][table.row, table.place[player]] for player in (0, 1)]
  result = [np.zeros_like(each) for each in ranges]
  for row in range(table.size):
    here = np.flatnonzero(table.row == row)
    dealt = _roots(table, here, reach[0][here] * reach[1][here], 1)
    both = cut_out(standings[0], dealt, GADGETS["unsafe"]).game
    played = both.to_actions(solve_lp(both).probabilities)
    own, other = np.split(played, [len(both.actions[0])])
    for standing in standings:
      opponent = 1 - standing.searcher
      roots = _roots(table, here, reach[standing.searcher][here], opponent)
      picked = cut_out(standing, roots, GADGETS["max_margin"]).game
      pick = np.full(len(roots.mass), 1.0 / len(roots.mass))
      entries = np.concatenate([own, pick, other] if opponent else [pick, own, other])
      strategies = forms.sequence_form(picked, picked.from_actions(entries))
      utility = gradients(picked, strategies)
      backward_pass(picked, take_best, utility)
      first = sum(map(len, picked.actions[:opponent]))
      at = picked.all_action_sequences[first : first + len(pick)]
      result[opponent][row, np.unique(table.place[opponent][here])] = utility[at]
  return result


def _roots(table: Cut, here: Int64s, reach: Float64s, opponent: int) -> Roots:
  """Returns histories of a public state, weighted by chance and some reach, by what the opponent knows."""
  weights = table.chance[here] * reach
  weights /= weights.sum()
  names, place = np.unique(table.place[opponent][here], return_inverse=True)
  mass = np.bincount(place, weights).astype(np.float64)
  return Roots(table.leaves[here], weights, place, names, mass, np.zeros_like(mass), mass)


def solve_trunk_by_values(
  blueprint: open_spiel.AnyPolicy, values: ValueNetwork, *, iterations: int = 1000
) -> Resolved:
  """Solves a game from its first move to a cut by CFR+, with a network for what is below.

  Args:
    blueprint: a policy of both players, which is played below the cut; solve that again by `resolve(game,
      result.policy, cut=values.states)`.
    values: what `learn_values` returns.
    iterations: how many.

  Raises:
    PolicyError: the blueprint does not know the game's infosets.
    ArgumentError: `iterations` is not a positive integer.
  """
  arguments.positive_integer(iterations, "iterations")
  tree = values.tree
  found, start = tree.histories, tree.entries(blueprint)
  leaves = values.cut.leaves
  reached = Limit(leaves, np.zeros((1, 0))).reached(found)
  moved = [
    np.flatnonzero(reached & (found.parent >= 0) & (found.mover[found.parent] == player))
    for player in (0, 1)
  ]
  uniform = 1.0 / found.num_actions[found.infoset_of_entry]
  regrets, sums = np.zeros((2, found.num_entries))
  played = uniform
  for iteration in range(1, iterations + 1):
    for player in (0, 1):
      reach = [found.reach(played, each) for each in (0, 1)]
      worth = (1 - 2 * player) * found.payoff * reached
      worth[leaves] = values.values([each[leaves] for each in reach])[player]
      worth = found.carried(played, worth)
      above, entry = found.parent[moved[player]], found.entry[moved[player]]
      gained = worth[moved[player]] - worth[above]
      weight = found.chance[above] * reach[1 - player][above]
      regrets += np.bincount(entry, weight * gained, len(regrets))
      np.maximum(regrets, 0.0, out=regrets)
      played = found.normalized(regrets, uniform)
      # An infoset's histories have the same reach of its owner's: their mean is that.
      own = found.reach(played, player)[moved[player]]
      counts = np.bincount(entry, minlength=len(sums))
      sums += iteration * np.bincount(entry, own, len(sums)) / np.maximum(counts, 1)
  return resolved(tree, start, found.normalized(sums, start), [])
