"""One step of a search: it re-solves public states and keeps the new strategies that are safe.

A strategy is safe if all its *margins* are at least 0. A margin is a bound on the opponent's expected payoff minus the
opponent's best response payoff; `gadgets` has the formulas.
"""

import dataclasses
import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.search.gadget_games import SubgameStart
from spiel_cfr.search.gadgets import Gadget
from spiel_cfr.search.subgames.subgame_solver import SubgameSolver, start_from_policy
from spiel_cfr.search.trees.search_tree import TOLERANCE, EvaluatedPolicy, PublicState

AnyEvaluated = TypeVar("AnyEvaluated", bound=EvaluatedPolicy)


@dataclasses.dataclass(frozen=True)
class SearchStep:
  """The result of re-solving some public states together, for one player.

  Attributes:
    player: int. The searcher.
    min_depth: int. The smallest depth of the public states: the number of moves before them, chance's included.
    max_depth: int. The largest depth of the public states. It is above `min_depth` only in the step of a cut whose
      public states have different depths.
    solved: int. The number of public states that have a new strategy.
    unreached: int. The number of public states that the searcher never plays to. They keep their old strategy.
    refused: int. The number of public states that keep their old strategy because a margin was negative or a linear
      program could not be solved.
    smallest_margin: float. The smallest margin of the strategies kept; NaN if the gadget sets no bounds, or no new
      strategy is kept.
    value_before: float. The value of the opponent's best response in the whole game, before the step.
    value_after: float. The value of the opponent's best response in the whole game, after the step.
    seconds: float. The duration of the step.
  """

  player: int
  min_depth: int
  max_depth: int
  solved: int
  unreached: int
  refused: int
  smallest_margin: float
  value_before: float
  value_after: float
  seconds: float


class _SolvedSubgame(NamedTuple):
  """A subgame with a new solution.

  Attributes:
    start: `SubgameStart`. The public state at the root of the subgame, with its ranges and bounds.
    actions: int64 (actions,). The searcher's actions in the subgame, as indices of slots of the policy.
  """

  start: SubgameStart
  actions: Int64s


def search_step(
  before: AnyEvaluated,
  states: Sequence[PublicState],
  gadget: Gadget,
  solver: SubgameSolver,
  *,
  keeps_gains: bool = False,
  stop: Callable[[], bool] = lambda: False,
) -> tuple[AnyEvaluated, SearchStep]:
  """Re-solves public states and keeps the new strategies that are safe.

  Args:
    before: the policy before the step.
    states: the public states. None of them is below another.
    gadget: the gadget in front of the subgames.
    solver: the solver of the subgames.
    keeps_gains: whether the step may keep strategies with negative margins, provided that the value of the opponent's
      best response in the whole game is smaller with them than without. Pass True only if no other public state gets a
      new strategy between `before` and the caller's next evaluation.
    stop: called before each public state. If it returns True, the remaining public states keep their strategy.

  Returns:
    The policy with the new strategies, and a summary of the step.
  """
  begin, tree, unreached = time.perf_counter(), before.tree, 0

  def starts() -> Iterator[SubgameStart]:
    nonlocal unreached
    for state in states:
      if stop():
        return
      start = start_from_policy(before, state.index, gadget)
      if start is None:
        unreached += 1
      else:
        yield start

  solved: list[_SolvedSubgame] = []
  policy, unsolved = before.policy.copy(), 0
  for batch in tree.builder.batches(starts(), is_linear_program=solver.is_linear_program):
    gadget_game = tree.builder.build(batch, gadget, is_linear_program=solver.is_linear_program)
    try:
      gadget_game.write(solver.solve(gadget_game), policy, before.searcher)
    except errors.NoSolutionError:
      unsolved += len(batch)
    else:
      solved += map(_SolvedSubgame, batch, gadget_game.slots_by_subgame(len(batch)))
  # The policy may have no answer to an action of the opponent that leads to a public state or follows it. The new
  # strategies answer it. But then the opponent's value may exceed the bounds, so margins may be negative, and the step
  # refuses no strategy.
  adds_answers = any(before.has_unanswered(state.index) for state in states)
  after = before.with_policy(policy, answers_all=adds_answers)
  num_solved, margins = len(solved), list[Float64s]()
  if gadget.has_bounds:
    margins = [after.margins(subgame.start) for subgame in solved]
    if not adds_answers:
      after, margins = _accepted(before, after, solved, margins, keeps_gains)
    num_solved = len(margins)
  depths = [state.depth for state in states]
  return after, SearchStep(
    player=before.searcher,
    min_depth=min(depths),
    max_depth=max(depths),
    solved=num_solved,
    unreached=unreached,
    refused=unsolved + len(solved) - num_solved,
    smallest_margin=min((float(margin.min()) for margin in margins), default=math.nan),
    value_before=before.opponent_value,
    value_after=after.opponent_value,
    seconds=time.perf_counter() - begin,
  )


def _accepted(
  before: AnyEvaluated,
  after: AnyEvaluated,
  solved: Sequence[_SolvedSubgame],
  margins: list[Float64s],
  keeps_gains: bool,
) -> tuple[AnyEvaluated, list[Float64s]]:
  """Returns the new policy without harmful strategies, and the margins of the subgames that keep their new strategy.

  Args:
    before: the policy before the step.
    after: the policy with all new strategies.
    solved: the subgames with a new strategy.
    margins: by subgame, its margins, float64 (J,).
    keeps_gains: see `search_step`.
  """
  pairs = list(zip(solved, margins, strict=True))
  harmful = [after.is_harmful(subgame.start, margin) for subgame, margin in pairs]
  if any(harmful):
    policy = after.policy.copy()
    for subgame in itertools.compress(solved, harmful):
      policy[subgame.actions] = before.policy[subgame.actions]
    safe = before.with_policy(policy)
    if not (keeps_gains and after.opponent_value < safe.opponent_value):
      after = safe
      margins = [margin for margin, harms in zip(margins, harmful, strict=True) if not harms]
  # The margins of strategies that are not harmful bound the opponent's gain in the whole game. This check has never
  # failed. It makes search harmless even if the information state strings of a game are wrong.
  bound = before.opponent_value + TOLERANCE * before.tree.largest_payoff
  for (subgame, margin), harms in zip(pairs, harmful, strict=True):
    bound += 0.0 if harms else subgame.start.probability * subgame.start.mean_excess(margin)
  if after.opponent_value > bound:
    return before, []
  return after, margins
