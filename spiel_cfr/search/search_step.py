"""One step of a search: it re-solves public states and keeps the new strategies that are safe."""

import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.search.cut_outs import Start
from spiel_cfr.search.gadgets import Gadget
from spiel_cfr.search.search_tree import TOLERANCE, Blueprint, PublicState
from spiel_cfr.search.subgame_solver import SubgameSolver

AnyBlueprint = TypeVar("AnyBlueprint", bound=Blueprint)


@dataclasses.dataclass(frozen=True)
class SearchStep:
  """The result of re-solving some public states together, for one player.

  Attributes:
    player: the searcher.
    length: the smallest number of moves before one of the public states.
    max_length: the largest number of moves before one of the public states; the states of a cut may differ in length.
    solved: the number of public states that have a new strategy.
    unreached: the number of public states that the searcher never plays to. They keep their old strategy.
    refused: the number of public states that keep their old strategy because a margin was negative or a linear program
      could not be solved.
    smallest_margin: the smallest amount, per unit of w, by which the opponent stays below its bound, over all its
      private states; NaN without bounds.
    before: the value of the opponent's best response in the whole game, before the step.
    after: the value of the opponent's best response in the whole game, after the step.
    seconds: the duration of the step.
  """

  player: int
  length: int
  max_length: int
  solved: int
  unreached: int
  refused: int
  smallest_margin: float
  before: float
  after: float
  seconds: float


class _Solved(NamedTuple):
  """The beginning of a subgame that has a new solution, and the searcher's entries in the subgame."""

  start: Start
  entries: Int64s


def search_step(
  before: AnyBlueprint,
  states: Sequence[PublicState],
  gadget: Gadget,
  solver: SubgameSolver,
  *,
  keeps_gains: bool = False,
  stop: Callable[[], bool] = lambda: False,
) -> tuple[AnyBlueprint, SearchStep]:
  """Re-solves public states, none of which is below another, and keeps the new strategies that are safe.

  Args:
    before: the blueprint.
    states: the public states.
    gadget: the gadget in front of the subgames.
    solver: the solver of the subgames.
    keeps_gains: whether a step may keep strategies with negative margins if the opponent gets less in the whole game
      with them than without. It requires that the step re-solves all public states that are re-solved at that time.
    stop: called before each public state. If it returns True, the remaining public states keep their strategy.

  Returns:
    The blueprint that plays the new strategies, and a summary of the step.
  """
  begin, tree, unreached = time.perf_counter(), before.tree, 0

  def starts() -> Iterator[Start]:
    nonlocal unreached
    for state in states:
      if stop():
        return
      start = before.start(state.number, gadget)
      if start is None:
        unreached += 1
      else:
        yield start

  solved: list[_Solved] = []
  played, unsolved = before.entries.copy(), 0
  for batch in tree.batches(starts(), alone=solver.is_linear_program):
    cut = tree.cut_out(batch, gadget, program=solver.is_linear_program)
    try:
      cut.write(solver.solve(cut), played, before.searcher)
    except errors.NoSolutionError:
      unsolved += len(batch)
    else:
      solved += map(_Solved, batch, cut.entries_by_subgame(len(batch)))
  # If the blueprint has no answer to an action of the opponent, the opponent's value may exceed the bounds. Margins may
  # then be negative, and the step refuses no strategy.
  is_open = any(before.is_open(state.number) for state in states)
  after = before.playing(played, answered=is_open)
  num_solved, margins = len(solved), list[Float64s]()
  if gadget.is_safe:
    margins = [after.margins(each.start) for each in solved]
    if not is_open:
      after, margins = _accepted(before, after, solved, margins, keeps_gains)
    num_solved = len(margins)
  return after, step_between(
    before,
    after,
    states,
    begin,
    solved=num_solved,
    unreached=unreached,
    refused=unsolved + len(solved) - num_solved,
    margins=margins,
  )


def step_between(
  before: Blueprint,
  after: Blueprint,
  states: Sequence[PublicState],
  begin: float,
  *,
  solved: int,
  unreached: int = 0,
  refused: int = 0,
  margins: Sequence[Float64s] = (),
) -> SearchStep:
  """Returns the summary of a step that leads from one blueprint to another; `begin` is by `time.perf_counter`."""
  lengths = [state.length for state in states]
  return SearchStep(
    player=before.searcher,
    length=min(lengths),
    max_length=max(lengths),
    solved=solved,
    unreached=unreached,
    refused=refused,
    smallest_margin=min((float(each.min()) for each in margins), default=math.nan),
    before=before.opponent_gets,
    after=after.opponent_gets,
    seconds=time.perf_counter() - begin,
  )


def _accepted(
  before: AnyBlueprint,
  after: AnyBlueprint,
  solved: Sequence[_Solved],
  margins: list[Float64s],
  keeps_gains: bool,
) -> tuple[AnyBlueprint, list[Float64s]]:
  """Returns the blueprint without harmful new strategies, and the margins of the public states that have a new one."""
  tree = before.tree
  harms = [tree.is_harmful(each.start, own) for each, own in zip(solved, margins, strict=True)]
  if any(harms):
    cautious = after.entries.copy()
    for each, harm in zip(solved, harms, strict=True):
      if harm:
        cautious[each.entries] = before.entries[each.entries]
    safest = before.playing(cautious)
    if not (keeps_gains and after.opponent_gets < safest.opponent_gets):
      after, margins = safest, [own for own, harm in zip(margins, harms, strict=True) if not harm]
  if after.opponent_gets > before.opponent_gets + TOLERANCE * tree.largest_payoff:
    # This has not happened in any game so far. The check makes search harmless even if a game misstates its players'
    # information.
    return before, []
  return after, margins
