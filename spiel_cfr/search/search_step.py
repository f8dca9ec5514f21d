"""One step of a search: public states are solved again, and what is not safe is not played."""

import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy as np

from spiel_cfr import catalogue, errors
from spiel_cfr._numba.arrays import Float64s, Int64s, spread
from spiel_cfr.evaluation.linear_program import maximin_strategy
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.search.gadgets import Gadget
from spiel_cfr.search.history_tree import HistoryTree
from spiel_cfr.search.standing import Roots, Standing
from spiel_cfr.search.subgames import Subgame, cut_out

# (subgame, deadline=) -> strategy; see `solve_subgame`.
SolveUntil: TypeAlias = Callable[..., Float64s]
# By how much of the largest payoff a margin may be below 0: what linear programs are off.
_TOLERANCE = 1e-9


@dataclasses.dataclass(frozen=True)
class Step:
  """The public states that one player has solved again after one number of moves.

  Attributes:
    player: the searcher.
    length: the number of moves.
    solved: how many public states it has solved.
    unreached: how many it never comes to, where it keeps what it had.
    refused: how many it keeps too, since a margin was negative or a program was not solved.
    smallest_margin: the least that the opponent has lost at any place, per unit of w; NaN where nothing was solved.
    before: what the opponent got from a best response before this step.
    after: what it gets now.
    seconds: how long it took.
  """

  player: int
  length: int
  solved: int
  unreached: int
  refused: int
  smallest_margin: float
  before: float
  after: float
  seconds: float


def search_step(
  before: Standing,
  public_states: Sequence[Int64s],
  gadget: Gadget,
  solve: Callable[[Subgame], Float64s],
) -> tuple[Standing, Step]:
  """Solves public states again, none of which is below another, and keeps what is safe.

  Where there is no answer yet to an action of the opponent's, no margin is asked for: it can do more than the bounds
  know of. Afterwards there is one.

  Args:
    before: where the players stand.
    public_states: the histories of each.
    gadget: what is in front of subgames.
    solve: solves one, see `solve_subgame`.

  Returns:
    Where they stand then, and what was done.
  """
  start, found = time.perf_counter(), before.histories
  solved: list[tuple[Roots, Int64s]] = []
  unreached = refused = 0
  played = before.entries.copy()
  for histories in public_states:
    roots = before.bounds(histories, gadget)
    if roots is None:
      unreached += 1
      continue
    try:
      changed = [
        write(found, subgame, solve(subgame), played)
        for subgame in _subgames(before, roots, gadget)
      ]
      solved.append((roots, np.concatenate([np.zeros(0, np.int64), *changed])))
    except errors.NoSolutionError:
      refused += 1
  is_open = any(before.is_open(histories) for histories in public_states)
  after = Standing(found, played, before.searcher) if is_open else before.playing(played)
  margins = [smallest_margin(roots, after) for roots, _ in solved]
  if gadget.is_safe and not gadget.knowledge_limited and not is_open:
    largest = float(np.abs(found.payoff).max())
    wrong = [margin < -_TOLERANCE * largest for margin in margins]
    for (_, entries), bad in zip(solved, wrong, strict=True):
      if bad:
        played[entries] = before.entries[entries]
    if any(wrong):
      after = before.playing(played)
      refused += sum(wrong)
      margins = [margin for margin, bad in zip(margins, wrong, strict=True) if not bad]
    if after.opponent_gets > before.opponent_gets + _TOLERANCE * largest:
      # Nothing that was met does so; whatever a game says of its players' knowledge, no harm is done.
      after, refused, margins = before, refused + len(margins), []
  return after, Step(
    before.searcher,
    int(found.length[public_states[0][0]]),
    len(margins),
    unreached,
    refused,
    min(margins, default=float("nan")),
    before.opponent_gets,
    after.opponent_gets,
    time.perf_counter() - start,
  )


def _subgames(standing: Standing, roots: Roots, gadget: Gadget) -> Iterable[Subgame]:
  if not gadget.knowledge_limited:
    yield cut_out(standing, roots, gadget)
    return
  mine = standing.histories.known_to(standing.searcher, roots.histories)
  for name in np.unique(mine).tolist():
    met = np.isin(roots.place, roots.place[mine == name])
    yield cut_out(standing, roots.only(met), gadget, free=mine[met] == name)


def smallest_margin(roots: Roots, after: Standing) -> float:
  """Returns the least by which the opponent's bounds are above what it gets now."""
  values = np.bincount(roots.place, roots.weights * after.values[roots.histories]) / roots.mass
  return float((roots.bound - values).min())


def solve_subgame(
  subgame: Subgame, solver: str, iterations: int, deadline: float = math.inf
) -> Float64s:
  """Returns the searcher's strategy in sequence form, by its own sequences, end to end in the order of its infosets.

  Args:
    subgame: what is solved.
    solver: "lp" for a linear program, or a name in `catalogue.SOLVERS`.
    iterations: how many a solver that is no program does at most.
    deadline: when it stops before that, by `time.perf_counter`.

  Raises:
    NoSolutionError: a linear program was not solved.
  """
  game, player = subgame.game, subgame.searcher
  if solver == "lp":
    found = maximin_strategy(game, player, subgame.dealt)
  else:
    found = run_until(game, solver, iterations, deadline)
  first = len(game.actions[0])
  entries = game.to_actions(found)
  return entries[first:] if player else entries[:first]


def run_until(game: CompiledGame, solver: str, iterations: int, deadline: float) -> Float64s:
  """Returns average strategies in sequence form after so many iterations, or what is done until the deadline."""
  solving = catalogue.make(solver, game, iterations)
  for count in _slices(iterations, deadline):
    solving.run(count)
  return solving.average_sequence_form()


def _slices(iterations: int, deadline: float) -> Iterable[int]:
  """Yields numbers of iterations, each to be done in a tenth of the time that is left; one at least."""
  count = 1 if deadline < math.inf else iterations
  while iterations > 0:
    start = time.perf_counter()
    yield count
    iterations -= count
    now = time.perf_counter()
    if now >= deadline:
      return
    fits = min(1e9, (deadline - now) / 10 * count / max(now - start, 1e-9))
    count = max(1, min(2 * count, int(fits), iterations))


def write(found: HistoryTree, subgame: Subgame, solution: Float64s, played: Float64s) -> Int64s:
  """Writes a searcher's solution into what is played, where it plays to; returns the entries of its infosets."""
  counts = found.num_actions[subgame.infosets]
  entries = spread(found.first_entry[subgame.infosets], counts)
  if len(entries):
    totals = np.repeat(np.add.reduceat(solution, np.cumsum(counts) - counts), counts)
    # What rounding leaves of a strategy that is not played is none.
    plays = totals > 1e-9
    played[entries[plays]] = solution[plays] / totals[plays]
  return entries
