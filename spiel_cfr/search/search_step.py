"""One step of a search: public states are solved again, and only what is safe is kept."""

import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.search.cut_outs import Start, SubgameSolver
from spiel_cfr.search.gadgets import Gadget
from spiel_cfr.search.search_tree import TOLERANCE, Blueprint, PublicState

AnyBlueprint = TypeVar("AnyBlueprint", bound=Blueprint)


@dataclasses.dataclass(frozen=True)
class Step:
  """Public states that one player has solved again together.

  Attributes:
    player: the searcher.
    length: the smallest number of moves before one of the public states.
    max_length: the largest number of moves before one of them; cuts may have several lengths.
    solved: the number of public states with a new strategy.
    unreached: the number of public states that the searcher never plays to, which keep their strategy.
    refused: the number of public states that keep it because a margin was negative or a program was not solved.
    smallest_margin: the least loss of the opponent at any of its private states, per unit of w; NaN without bounds.
    before: the opponent's value of a best response before this step.
    after: the same after it.
    seconds: the time it took.
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
  """A subgame that has a solution: its beginning, and the searcher's entries in it."""

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
) -> tuple[AnyBlueprint, Step]:
  """Solves public states again, none of which is below another, and keeps what is safe.

  Args:
    before: the blueprint.
    states: the public states.
    gadget: the gadget in front of subgames.
    solver: the solver of subgames.
    keeps_gains: whether these are all the public states that are solved again now, so that solutions with negative
      margins may stay if the opponent gets less of the whole game with them than without.
    stop: asked before each public state; if it says so, the rest keep their strategy.

  Returns:
    The blueprint that plays the new strategies, and what was done.
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
  for batch in tree.batches(starts(), alone=solver.is_program):
    cut = tree.cut_out(batch, gadget, program=solver.is_program)
    try:
      cut.write(solver.solve(cut), played, before.searcher)
    except errors.NoSolutionError:
      unsolved += len(batch)
    else:
      solved += map(_Solved, batch, cut.entries_by_subgame(len(batch)))
  # Where an action of the opponent has no answer yet, its value may exceed the bounds: margins may be negative, and
  # nothing is refused.
  is_open = any(before.is_open(state.number) for state in states)
  after = before.playing(played, answered=is_open)
  kept, margins = len(solved), list[Float64s]()
  if gadget.is_safe:
    margins = [after.margins(each.start) for each in solved]
    if not is_open:
      after, margins = _accepted(before, after, solved, margins, keeps_gains)
    kept = len(margins)
  return after, step_between(
    before,
    after,
    states,
    begin,
    solved=kept,
    unreached=unreached,
    refused=unsolved + len(solved) - kept,
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
) -> Step:
  """Returns the step from one blueprint to another, which began at a time of `time.perf_counter`."""
  lengths = [state.length for state in states]
  return Step(
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
  """Returns the blueprint that keeps what is safe, and the margins of the public states that have a new strategy."""
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
    # Not seen in any game so far; whatever a game says of its players' information, search does no harm.
    return before, []
  return after, margins
