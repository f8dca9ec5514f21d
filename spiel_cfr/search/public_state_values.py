"""Values of public states: the expectations of private states by the ranges of both players, where a search stops.

What a private state is worth at a public state depends on the ranges of both players there and on nothing else above,
if both play well from there on (DeepStack, Moravčík et al. 2017; ReBeL, Brown et al. 2020). Above, CFR asks for these
values in each iteration, with the ranges of that iteration: CFR-D of Burch, Johanson and Bowling, "Solving Imperfect
Information Games Using Decomposition" (2014).
"""

import abc
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr._util.doors import typed
from spiel_cfr.evaluation.linear_program import solve_lp
from spiel_cfr.search.cut_outs import Pair
from spiel_cfr.search.forest_tree import ForestTree
from spiel_cfr.search.gadgets import GADGETS
from spiel_cfr.search.public_states import check_cut
from spiel_cfr.search.search_tree import PublicState


class PublicStateValues(abc.ABC):
  """A function from ranges at the public states of a cut to values of private states.

  Attributes:
    states: the public states, none below another.
    tree: all public states of their game.
  """

  @typed
  def __init__(self, states: Sequence[PublicState]) -> None:
    """Takes the public states of a cut.

    Raises:
      ArgumentError: there are none, or one is below another.
    """
    if not states:
      raise errors.ArgumentError("states must be at least one public state.")
    tree = states[0].tree
    self.states = check_cut(tree.game, states)
    self.tree = tree

  @abc.abstractmethod
  def values(self, ranges: Sequence[Pair]) -> list[Pair]:
    """Returns both players' counterfactual values at each public state.

    Args:
      ranges: at each public state, both players' ranges, float64 (private states,) each, in the order of
        `private_states`.

    Returns:
      At each public state, by player, float64 (private states,): what each private state expects, times the probability
      that chance and the other player's range come there; less half of what the players' returns sum to. `solve_above`
      refuses other shapes, and numbers that are not finite.
    """


def cut_reach(values: PublicStateValues, ranges: Sequence[Pair], player: int) -> list[Float64s]:
  """Returns the probability that chance and the other player's ranges come to each private state of a player."""
  return [
    values.tree.counterfactual_reach(state.number, player, own[1 - player])
    for state, own in zip(values.states, ranges, strict=True)
  ]


class SolvedValues(PublicStateValues):
  """Values of public states by a linear program of all of them: exact, and slow beside a network."""

  def values(self, ranges: Sequence[Pair]) -> list[Pair]:
    """Returns values of best responses to the solution, which private states have that their player never plays to."""
    tree, unsafe = self.tree, GADGETS["unsafe"]
    numbers = [state.number for state in self.states]
    starts = [
      tree.start(number, own, 0, unsafe, np.zeros(len(own[1])))
      for number, own in zip(numbers, ranges, strict=True)
    ]
    played, possible = tree.uniform(), [start for start in starts if start is not None]
    if possible:
      cut = tree.cut_out(possible, unsafe)
      solution = solve_lp(cut.game).sequence_form
      for player in (0, 1):
        cut.write(solution, played, player)
    begins = dict(zip(numbers, ranges, strict=True))
    first, second = (tree.blueprint(played, 1 - player, begins) for player in (0, 1))
    return [(first.values(number), second.values(number)) for number in numbers]


class Above(NamedTuple):
  """The solution of what is between a public state and the public states of a cut below.

  Attributes:
    entries: float64 (entries,). The average policy of both players; NaN elsewhere.
    values: by player, float64 (private states,). The average counterfactual values at the public state.
    expectations: at each public state of the cut, by player, float64 (private states,). The average expectations.
  """

  entries: Float64s
  values: Pair
  expectations: list[Pair]


def solve_above(
  state: PublicState, ranges: Pair, values: PublicStateValues, iterations: int
) -> Above:
  """Solves what is above a cut by CFR+, with values for what is below.

  Players are updated at the same time: the proof asks for values of what both play.

  Raises:
    ArgumentError: `values` returns other shapes than its `values` promises, or numbers that are not finite.
  """
  tree: ForestTree = state.tree.as_forest()
  uniform = tree.uniform()
  numbers, begins = [each.number for each in values.states], {state.number: ranges}
  regrets, sums = np.zeros((2, len(uniform)))
  # Only what is between the public state and the cut is played to.
  between = {number: _filled(tree.num_private_states(number), 0.0) for number in (0, *numbers)} | {
    state.number: _filled(tree.num_private_states(state.number), 1.0)
  }
  total: list[Float64s] = [np.zeros_like(own) for own in ranges]
  counts = [tree.num_private_states(number) for number in numbers]
  got, likely = ([[np.zeros(count) for count in own] for own in counts] for _ in range(2))
  for iteration in range(1, iterations + 1):
    played = tree.normalized(regrets, uniform)
    blueprint = tree.blueprint(played, 0, begins)
    at_leaves = [blueprint.ranges(number) for number in numbers]
    leaf_values = _checked(values, values.values(at_leaves), counts)
    for player in (0, 1):
      leaves = {number: each[player] for number, each in zip(numbers, leaf_values, strict=True)}
      expected = blueprint.expected(player, leaves)
      utilities = expected.action_values()
      regrets += utilities - tree.per_infoset(played * utilities, np.add) * tree.owned(player)
      total[player] += iteration * expected.values(state.number)
      for place, reach in enumerate(cut_reach(values, at_leaves, player)):
        likely[place][player] += iteration * reach
        got[place][player] += iteration * leaf_values[place][player]
    sums += iteration * tree.sequence_form(played, between)
    np.maximum(regrets, 0.0, out=regrets)
  weight = iterations * (iterations + 1) / 2
  expectations = [
    (_ratio(own[0], reach[0]), _ratio(own[1], reach[1]))
    for own, reach in zip(got, likely, strict=True)
  ]
  inside = tree.sequence_form(uniform, between) > 0
  average = np.where(inside, tree.normalized(sums, uniform), np.nan)
  return Above(average, (total[0] / weight, total[1] / weight), expectations)


def _checked(values: PublicStateValues, found: Any, counts: list[tuple[int, int]]) -> list[Pair]:
  """Returns the values of both players' private states at each public state as float64 arrays.

  Args:
    values: the function that returned them.
    found: its result.
    counts: at each public state, how many private states each player has.

  Raises:
    ArgumentError: the result has another shape, or a value is no finite number.
  """
  name = f"{type(values).__name__}.values"
  if not isinstance(found, list | tuple) or len(found) != len(counts):
    raise errors.ArgumentError(
      f"{name} must return a list of {len(counts)} pairs of arrays, one for each public state of the cut, not "
      f"{arguments.shortened(found)}."
    )
  result = []
  for place, (own, wanted) in enumerate(zip(found, counts, strict=True)):
    try:
      arrays = [np.asarray(each) for each in own]
    except (TypeError, ValueError):
      arrays = []
    right = [each.shape for each in arrays] == [(count,) for count in wanted]
    if not right or not all(_is_finite(each) for each in arrays):
      raise errors.ArgumentError(
        f"{name} must return, for public state {place} of the cut, {wanted[0]} and {wanted[1]} finite numbers, an "
        f"array for each player, not {arguments.shortened(own)}."
      )
    first, second = (each.astype(np.float64, copy=False) for each in arrays)
    result.append((first, second))
  return result


def _is_finite(array: npt.NDArray[Any]) -> bool:
  return array.dtype.kind in "fiu" and bool(np.isfinite(array).all())


def _filled(counts: tuple[int, int], number: float) -> Pair:
  return np.full(counts[0], number), np.full(counts[1], number)


def _ratio(sums: Float64s, reach: Float64s) -> Float64s:
  return np.divide(sums, reach, out=np.zeros_like(sums), where=reach > 0)
