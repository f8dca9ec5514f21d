"""One step of a search: it re-solves public states and keeps the new strategies that are safe."""

import dataclasses
import itertools
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
from spiel_cfr.search.subgame_starts import start_from_blueprint

AnyBlueprint = TypeVar("AnyBlueprint", bound=Blueprint)


@dataclasses.dataclass(frozen=True)
class SearchStep:
  """The result of re-solving some public states together, for one player.

  Attributes:
    player: int. The searcher.
    length: int. The smallest number of moves before one of the public states.
    max_length: int. The largest number of moves before one of the public states. It differs from `length` only in cuts.
    solved: int. The number of public states that have a new strategy.
    unreached: int. The number of public states that the searcher never plays to. They keep their old strategy.
    refused: int. The number of public states that keep their old strategy because a margin was negative or a linear
      program could not be solved.
    smallest_margin: float. The smallest of all margins, see `gadgets`; NaN without bounds.
    before: float. The value of the opponent's best response in the whole game, before the step.
    after: float. The value of the opponent's best response in the whole game, after the step.
    seconds: float. The duration of the step.
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


class _SolvedSubgame(NamedTuple):
  """A subgame that has a new solution.

  Attributes:
    start: `Start`. The beginning of the subgame.
    entries: int64 (actions,). The searcher's entries in the subgame.
  """

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
      start = start_from_blueprint(before, state.number, gadget)
      if start is None:
        unreached += 1
      else:
        yield start

  solved: list[_SolvedSubgame] = []
  policy, unsolved = before.entries.copy(), 0
  for batch in tree.batches(starts(), alone=solver.is_linear_program):
    cut = tree.cut_out(batch, gadget, program=solver.is_linear_program)
    try:
      cut.write(solver.solve(cut), policy, before.searcher)
    except errors.NoSolutionError:
      unsolved += len(batch)
    else:
      solved += map(_SolvedSubgame, batch, cut.entries_by_subgame(len(batch)))
  # If the blueprint has no answer to an action of the opponent, the opponent's value may exceed the bounds. Margins may
  # then be negative, and the step refuses no strategy.
  has_unanswered = any(before.has_unanswered(state.number) for state in states)
  after = before.with_policy(policy, answered=has_unanswered)
  num_solved, margins = len(solved), list[Float64s]()
  if gadget.is_safe:
    margins = [after.margins(subgame.start) for subgame in solved]
    if not has_unanswered:
      after, margins = _accepted(before, after, solved, margins, keeps_gains)
    num_solved = len(margins)
  lengths = [state.length for state in states]
  return after, SearchStep(
    player=before.searcher,
    length=min(lengths),
    max_length=max(lengths),
    solved=num_solved,
    unreached=unreached,
    refused=unsolved + len(solved) - num_solved,
    smallest_margin=min((float(margin.min()) for margin in margins), default=math.nan),
    before=before.opponent_value,
    after=after.opponent_value,
    seconds=time.perf_counter() - begin,
  )


def _accepted(
  before: AnyBlueprint,
  after: AnyBlueprint,
  solved: Sequence[_SolvedSubgame],
  margins: list[Float64s],
  keeps_gains: bool,
) -> tuple[AnyBlueprint, list[Float64s]]:
  """Returns the blueprint without harmful new strategies, and the margins of the subgames that keep their new one."""
  tree, pairs = before.tree, list(zip(solved, margins, strict=True))
  harmful = [tree.is_harmful(subgame.start, margin) for subgame, margin in pairs]
  if any(harmful):
    entries = after.entries.copy()
    for subgame in itertools.compress(solved, harmful):
      entries[subgame.entries] = before.entries[subgame.entries]
    safe = before.with_policy(entries)
    if not (keeps_gains and after.opponent_value < safe.opponent_value):
      after = safe
      margins = [margin for margin, harms in zip(margins, harmful, strict=True) if not harms]
  if after.opponent_value > before.opponent_value + TOLERANCE * tree.largest_payoff:
    # This has not happened in any game so far. The check makes search harmless even if a game misstates its players'
    # information.
    return before, []
  return after, margins
