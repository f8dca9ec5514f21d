"""Games that grow while they are solved.

Most of a large game plays no part in its equilibrium. So begin with few actions, or few buckets, and let the smaller
game take in what the whole one says is missing, until the policy is as good in the whole game as was asked for. After
Brown and Sandholm, "Simultaneous Abstraction and Equilibrium Finding in Games" (2015). The solver starts warm from its
own average whenever the game has grown, see docs/continuing.md.

    while NashConv in the whole game > target:
      iterate in the smaller game
      if the larger half of that NashConv comes from what is missing:  grow, see `growers`;  start warm

Nothing is lost for ever: if nothing that is missing is worth anything, the smaller game's NashConv is the whole one's.
"""

import dataclasses
import math
import os
import time
from collections.abc import Mapping
from typing import Any

from spiel_cfr import catalogue, errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr._util.interrupt import DeferredInterrupt
from spiel_cfr._util.time_slices import Slices
from spiel_cfr.abstraction.abstract_game import AbstractGame
from spiel_cfr.abstraction.bucketed_hands import BucketedHands
from spiel_cfr.abstraction.buckets import (
  Buckets,
  HandBuckets,
  check_whole_public_game,
  make_buckets,
)
from spiel_cfr.abstraction.fewer_actions import check_same_game, make_choices
from spiel_cfr.abstraction.growers import Grower, GrowingActions, GrowingBuckets, Whole
from spiel_cfr.abstraction.growing_hands import GrowingHands
from spiel_cfr.abstraction.translation import Translation
from spiel_cfr.cfr.warm_start import WarmStarting
from spiel_cfr.evaluation import evaluate
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.openspiel.game_view import ActionFilter
from spiel_cfr.policies import forms
from spiel_cfr.policies.exact_policy import Found
from spiel_cfr.runs.run_loop import StopReason
from spiel_cfr.runs.schedule import NextDue, Powers, next_due

# So many evaluations in a row without progress in the smaller game, and it grows all the same: where players forget,
# there need not be any.
_PATIENCE = 4
# What the smaller game's NashConv must have fallen to, of what it was, to count as progress.
_PROGRESS = 0.9
# Numbers that a solver keeps for each sequence: regrets, strategy, sequence form, average, utilities.
_LINES = 5


def later_powers(iteration: int) -> float:
  """A schedule: due at 20, and at the powers of 1.5 after that. What a solver has just begun with says little."""
  return max(20, Powers(1.5)(iteration))


@dataclasses.dataclass(frozen=True)
class Stage:
  """An evaluation on the way.

  Attributes:
    iterations: how many there have been, of all sizes of the game.
    seconds: how long it has taken so far, evaluations and growing included.
    infosets: of the smaller game.
    payoffs: likewise, see `CompiledGame.num_leaves`.
    bytes: about how much memory an iteration goes through, payoffs and solver.
    own_nash_conv: of the policy in the smaller game.
    nash_conv: of the policy in the whole game.
  """

  iterations: int
  seconds: float
  infosets: int
  payoffs: int
  bytes: int
  own_nash_conv: float
  nash_conv: float


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Grown(Found):
  """What `solve_growing` has found.

  Attributes:
    compiled_game: the whole game.
    sequence_form: the best policy of the whole game that was met, shape (sequences,).
    nash_conv: of it, in the whole game, by best responses.
    small: the game as far as it has grown.
    history: the evaluations on the way.
    reason: what stopped it: "target", "seconds", "iterations" or "interrupt".
  """

  compiled_game: CompiledGame
  sequence_form: Float64s
  nash_conv: float
  small: CompiledGame
  history: tuple[Stage, ...]
  reason: StopReason

  @property
  def exploitability(self) -> float:
    """NashConv / 2."""
    return self.nash_conv / 2

  def __repr__(self) -> str:
    """Returns one line."""
    last = self.history[-1]
    return (
      f"<Grown: stopped by {self.reason!r}, NashConv {self.nash_conv:.6g} after {last.iterations:,} iterations, with "
      f"{last.infosets:,} of {self.compiled_game.num_infosets:,} infosets>"
    )


def solve_growing(
  game: CompiledGame,
  start: ActionFilter
  | Buckets
  | HandBuckets
  | Mapping[str, object]
  | str
  | os.PathLike[str]
  | CompiledGame,
  target: float,
  *,
  solver: str = "cfr+",
  iterations: int = 100_000,
  seconds: float = math.inf,
  translate: Translation | None = None,
  evaluate_at: NextDue = later_powers,
) -> Grown:
  """Solves a game by way of a smaller one that grows where it has to.

      found = solve_growing(compile_game("python_leduc5"), few_bets, target=0.01)
      nash_conv(found.compiled_game, found.policy)

  Args:
    game: the whole game, compiled.
    start: what to begin with. Fewer actions: an action filter, as for `compile_game`, or the game compiled with one.
      Or fewer infosets: `Buckets`, a mapping or a file, see `make_buckets`, `hand_buckets` for poker in vector form, or
      what `abstract` returns. With the whole
      game itself there is nothing to grow, and the solver runs as it always does.
    target: the NashConv in the whole game to stop at.
    solver: the name of a full-width solver in the catalogue.
    iterations: how many there may be, of all sizes of the game.
    seconds: how long it may take, to about a tenth of a second or one iteration.
    translate: what others take an action for that is not there yet, see `translated_policy`, of which the most probable
      counts; by default, the kept action with the nearest number. It decides how soon such an action is wanted, and
      nothing else.
    evaluate_at: when to look at the whole game, by the number of iterations since the game has grown; by default,
      `later_powers`.

  Raises:
    ArgumentError: an argument makes no sense; or the solver is not a full-width one.
    AbstractionError: the buckets or the filtered game have nothing to do with the game; or see `make_buckets`; or the
      translation returns no kept action.
    UnsupportedGameError: the game is an abstraction itself, or one that has no such buckets.
    ImperfectRecallError: see `abstract`.
    WarmStartError: the solver can't start warm.
  """
  begin = time.perf_counter()
  target = arguments.real_number(target, "target", 0.0)
  seconds = arguments.real_number(seconds, "seconds", 0.0, math.inf)
  iterations = arguments.positive_integer(iterations, "iterations")
  if not isinstance(game, CompiledGame):
    raise errors.ArgumentError(f"Give what compile_game returns, not {game!r}.")
  grower = _grower(game, start, translate)
  running = _solver(solver, grower.small, iterations)
  history: list[Stage] = []
  best, least, done, since = forms.uniform(game), math.inf, 0, 0
  own_least, idle = math.inf, 0
  slices, reason = Slices(), None
  with DeferredInterrupt(swallow=True) as interrupt:
    while reason is None:
      due = next_due(evaluate_at, since, "evaluate_at")
      for count in slices(int(min(due - since, iterations - done))):
        if interrupt.requested or (history and time.perf_counter() - begin >= seconds):
          break
        running.run(count)
        since, done = since + count, done + count
      sums = running.average_sequence_form()
      probabilities = grower.in_whole(sums)
      sequence_form = forms.sequence_form(game, probabilities)
      own = evaluate.evaluate(grower.small, sums).nash_conv
      nash_conv = own
      if grower.small is not game:
        nash_conv = evaluate.evaluate(game, sequence_form).nash_conv
      history.append(_stage(grower.small, done, time.perf_counter() - begin, own, nash_conv))
      if nash_conv < least:
        best, least = sequence_form, nash_conv
      idle = 0 if own < _PROGRESS * own_least else idle + 1
      own_least = min(own, own_least)
      reason = _reason(history[-1], target, iterations, seconds, interrupt.requested)
      if (
        reason is None and (nash_conv > 2 * own or idle >= _PATIENCE) and grower.grow(probabilities)
      ):
        running = _solver(solver, grower.small, iterations)
        running.warm_start(grower.in_small(probabilities), keep_average=False)
        since, own_least, idle = 0, math.inf, 0
  return Grown(game, best, least, grower.small, tuple(history), reason)


def _reason(
  stage: Stage, target: float, iterations: int, seconds: float, interrupted: bool
) -> StopReason | None:
  if stage.nash_conv <= target:
    return "target"
  if interrupted:
    return "interrupt"
  if stage.iterations >= iterations:
    return "iterations"
  return "seconds" if stage.seconds >= seconds else None


def _stage(
  small: CompiledGame, iterations: int, seconds: float, own: float, nash_conv: float
) -> Stage:
  if small.partition is None:
    payoffs = small.payoff.num_bytes
  else:
    payoffs = sum(part.payoff.num_bytes for part in small.partition.parts)
  size = payoffs + _LINES * small.dtype.itemsize * small.end
  return Stage(iterations, seconds, small.num_infosets, small.num_leaves, size, own, nash_conv)


def _solver(name: str, game: CompiledGame, iterations: int) -> WarmStarting:
  entry = catalogue.SOLVERS.get(name)
  if entry is not None and (entry.restarted or not issubclass(entry.solver, WarmStarting)):
    raise errors.ArgumentError(f"{name!r} is no full-width solver that can start warm.")
  result = catalogue.make(name, game, iterations)
  assert isinstance(result, WarmStarting)
  return result


def _grower(game: CompiledGame, start: Any, translate: Translation | None) -> Grower:
  """Finds out what is to grow."""
  if isinstance(start, AbstractGame | BucketedHands):
    if start.full.digest != game.digest:
      raise errors.AbstractionError(f"{start} is not an abstraction of {game}.")
    start = start.buckets
  if isinstance(start, HandBuckets):
    return GrowingHands(check_whole_public_game(game), start)
  if isinstance(start, Buckets | Mapping | str | os.PathLike):
    return GrowingBuckets(game, make_buckets(game, start))
  if isinstance(start, CompiledGame):
    check_same_game(game, start)
    if start.original is not start or start.shared_infosets is not None:
      raise errors.UnsupportedGameError(
        f"{start} can't grow. Begin with fewer actions, or with buckets of a game that lists its leaves."
      )
    action_filter = None if start is game else start.view.action_filter
    if action_filter is None:
      return Whole(game)
    return GrowingActions(make_choices(game), action_filter, translate)
  if not callable(start):
    raise errors.ArgumentError(
      f"To begin with, give an action filter, buckets or a compiled game, not {start!r}."
    )
  return GrowingActions(make_choices(game), start, translate)
