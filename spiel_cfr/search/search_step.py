"""One step of a search: public states are solved again, and what is not safe is not played."""

import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np

from spiel_cfr import catalogue, errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.evaluation.linear_program import maximin_strategy
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.search import vector_subgames
from spiel_cfr.search.gadgets import Gadget
from spiel_cfr.search.standing import Roots, Standing
from spiel_cfr.search.subgames import Subgame, cut_out
from spiel_cfr.search.vector_states import VectorPublicTree, VectorRoots, VectorStanding

# (subgame, deadline=) -> strategy; see `solve_subgame`.
SolveUntil: TypeAlias = Callable[..., Float64s]
AnyStanding = TypeVar("AnyStanding", Standing, VectorStanding)
# Numbers in the matrices of subgames in vector form that are solved as one game.
_MOST_NUMBERS = 4_000_000
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
  *,
  jointly: bool = False,
) -> tuple[Standing, Step]:
  """Solves public states again, none of which is below another, and keeps what is safe.

  Args:
    before: where the players stand.
    public_states: the histories of each.
    gadget: what is in front of subgames.
    solve: solves one, see `solve_subgame`.
    jointly: see `_checked_step`.

  Returns:
    Where they stand then, and what was done.
  """

  def solve_each(places: Sequence[Roots], played: Float64s) -> list[Int64s | None]:
    result: list[Int64s | None] = []
    for roots in places:
      try:
        changed = [
          subgame.write(solve(subgame), played) for subgame in _subgames(before, roots, gadget)
        ]
        result.append(np.concatenate([np.zeros(0, np.int64), *changed]))
      except errors.NoSolutionError:
        result.append(None)
    return result

  return _checked_step(before, public_states, gadget, solve_each, jointly=jointly)


def vector_search_step(
  before: VectorStanding,
  public_states: Sequence[int],
  gadget: Gadget,
  solver: str,
  iterations: int,
) -> tuple[VectorStanding, Step]:
  """Solves public states again, none of which is below another, and keeps what is safe.

  Args:
    before: where the players stand.
    public_states: the number of each.
    gadget: what is in front of subgames.
    solver: "lp" for a linear program of each, or a name in `catalogue.SOLVERS`, for many of them at once.
    iterations: how many a solver that is no program does.

  Returns:
    Where they stand then, and what was done.
  """

  def solve_each(places: Sequence[VectorRoots], played: Float64s) -> list[Int64s | None]:
    result: list[Int64s | None] = []
    for some in _batches(before.tree, places, alone=solver == "lp"):
      subgame = vector_subgames.cut_out(before, some, gadget)
      try:
        found = solve_game(subgame, before.searcher, solver, iterations)
        result += subgame.write(found, played)
      except errors.NoSolutionError:
        result += [None] * len(some)
    return result

  return _checked_step(before, public_states, gadget, solve_each, jointly=True)


def _batches(
  public: VectorPublicTree, roots: Sequence[VectorRoots], *, alone: bool
) -> Iterator[list[VectorRoots]]:
  """Yields subgames that are to be one game."""
  batch: list[VectorRoots] = []
  numbers = 0
  for own in roots:
    # At most a square for each terminal and player, the opponent's types twice.
    more = int(public.num_ends[own.node]) * 4 * own.weights.size
    if batch and (alone or numbers + more > _MOST_NUMBERS):
      yield batch
      batch, numbers = [], 0
    batch.append(own)
    numbers += more
  if batch:
    yield batch


def _checked_step(
  before: AnyStanding,
  public_states: Sequence[Any],
  gadget: Gadget,
  solve_each: Callable[[Sequence[Any], Float64s], Sequence[Int64s | None]],
  *,
  jointly: bool,
) -> tuple[AnyStanding, Step]:
  """Solves public states again, in whatever form they are, and keeps what is safe.

  Where there is no answer yet to an action of the opponent's, no margin is asked for: it can do more than the bounds
  know of. Afterwards there is one.

  Args:
    before: where the players stand.
    public_states: the place of each.
    gadget: what is in front of subgames.
    solve_each: given how subgames begin and what is played, writes what is to be played there instead, and returns for
      each the entries of the searcher's infosets; None where it has no solution.
    jointly: whether these public states are all that is solved again now, so that solutions with negative margins may
      stay where the opponent gets less of the whole with them than without.

  Returns:
    Where they stand then, and what was done.
  """
  start = time.perf_counter()
  bounds = [before.bounds(place, gadget) for place in public_states]
  roots = [each for each in bounds if each is not None]
  played = before.entries.copy()
  found = zip(roots, solve_each(roots, played), strict=True)
  solved = [(own, entries) for own, entries in found if entries is not None]
  refused = len(roots) - len(solved)
  is_open = any(map(before.is_open, public_states))
  after = before.playing(played, answered=is_open)
  margins = [after.smallest_margin(own) for own, _ in solved]
  if gadget.is_safe and not gadget.knowledge_limited and not is_open:
    tolerance = _TOLERANCE * before.largest_payoff
    wrong = [margin < -tolerance for margin in margins]
    if any(wrong):
      cautious = played.copy()
      for (_, entries), bad in zip(solved, wrong, strict=True):
        if bad:
          cautious[entries] = before.entries[entries]
      safest = before.playing(cautious)
      if not (jointly and after.opponent_gets < safest.opponent_gets):
        after, refused = safest, refused + sum(wrong)
        margins = [margin for margin, bad in zip(margins, wrong, strict=True) if not bad]
    if after.opponent_gets > before.opponent_gets + tolerance:
      # Nothing that was met does so; whatever a game says of its players' knowledge, no harm is done.
      after, refused, margins = before, refused + len(margins), []
  return after, Step(
    before.searcher,
    before.length(public_states[0]),
    len(margins),
    len(bounds) - len(roots),
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
  entries = game.to_actions(solve_game(game, player, solver, iterations, deadline, subgame.dealt))
  first = len(game.actions[0])
  return entries[first:] if player else entries[:first]


def solve_game(
  game: CompiledGame,
  player: int,
  solver: str,
  iterations: int,
  deadline: float = math.inf,
  dealt: Float64s | None = None,
) -> Float64s:
  """Returns a player's strategy in sequence form, shape (sequences,); `dealt` is that of `maximin_strategy`."""
  if solver == "lp":
    return maximin_strategy(game, player, dealt)
  return run_until(game, solver, iterations, deadline)


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
