"""Refinement on the way (dynamic abstraction): a game with few actions takes in what it lacks while it is solved.

After Brown and Sandholm, "Simultaneous Abstraction and Equilibrium Finding in Games" (2015), with another rule: see
docs/theory/ours_and_theirs.md.

    while NashConv in the whole game > target:
      iterate in the smaller game
      if the larger half of that NashConv comes from what is missing:  refine, see `refined_actions`;  start warm

It saves memory, not time: docs/abstraction.md has the numbers.
"""

import dataclasses
import math
import time

from spiel_cfr import catalogue, errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr.abstraction.hand_buckets import check_whole_public_game
from spiel_cfr.abstraction.refined_actions import RefinedActions
from spiel_cfr.cfr.cfr import FullWidthSolver
from spiel_cfr.evaluation import evaluate
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.openspiel.game_view import ActionFilter
from spiel_cfr.poker.public_game import PublicGame
from spiel_cfr.policies import forms
from spiel_cfr.policies.solved_policy import SolvedPolicy
from spiel_cfr.runs.run_schedules import Powers

# Numbers that a solver keeps for each sequence: regrets, strategy, sequence form, average, utilities.
_LINES = 5


@dataclasses.dataclass(frozen=True)
class Stage:
  """An evaluation on the way.

  Attributes:
    iterations: how many there have been, of all sizes of the game.
    seconds: how long it has taken so far, evaluations and refinements included.
    infosets: of the smaller game.
    bytes: about how much memory an iteration goes through, payoffs and solver.
    own_nash_conv: of the policy in the smaller game.
    nash_conv: of the policy in the whole game.
  """

  iterations: int
  seconds: float
  infosets: int
  bytes: int
  own_nash_conv: float
  nash_conv: float


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Refined(SolvedPolicy):
  """The result of `solve_refining`.

  Attributes:
    compiled_game: the whole game.
    sequence_form: the best policy of the whole game that was met, shape (sequences,).
    nash_conv: of it, in the whole game, by best responses.
    small: the smaller game at the end.
    history: the evaluations on the way.
  """

  compiled_game: PublicGame
  sequence_form: Float64s
  nash_conv: float
  small: PublicGame
  history: tuple[Stage, ...]

  def __repr__(self) -> str:
    sizes = f"{self.small.num_infosets:,} of {self.compiled_game.num_infosets:,} infosets"
    return f"<Refined: NashConv {self.nash_conv:z.6g} with {sizes}>"


def solve_refining(
  game: CompiledGame,
  start: ActionFilter,
  target: float,
  *,
  solver: str = "cfr+",
  iterations: int = 100_000,
) -> Refined:
  """Solves poker in vector form by way of a smaller game that is refined where it has to be.

      found = solve_refining(compile_public_game(endgame.load()), few_bets, target=5.0)
      nash_conv(found.compiled_game, found.policy)

  Args:
    game: the whole game.
    start: an action filter, which says what actions to begin with.
    target: the NashConv in the whole game to stop at.
    solver: the name of a full-width solver in the catalogue.
    iterations: how many there may be, of all sizes of the game.

  Raises:
    ArgumentError: an argument makes no sense; or the solver is not a full-width one.
    UnsupportedGameError: the game is not in vector form, or an abstraction itself.
    WarmStartError: the solver can't start warm.
  """
  begin = time.perf_counter()
  target = arguments.real_number(target, "target", 0.0)
  iterations = arguments.positive_integer(iterations, "iterations")
  game = check_whole_public_game(game)
  if not callable(start):
    raise errors.ArgumentError(f"Begin with an action filter, not with {start!r}.")
  made = RefinedActions.filtered(game, start)
  running = _solver(solver, made.small, iterations)
  history: list[Stage] = []
  best, least, done, since = forms.uniform(game), math.inf, 0, 0
  while least > target and done < iterations:
    # What a solver has just begun with says little.
    due = max(20, int(Powers(1.5)(since)))
    count = min(due - since, iterations - done)
    running.run(count)
    since, done = since + count, done + count
    sums = running.average_sequence_form()
    small, own = made.small, evaluate.evaluate(made.small, sums).nash_conv
    probabilities = made.to_whole(sums)
    sequence_form = forms.sequence_form(game, probabilities)
    nash_conv = own if small is game else evaluate.evaluate(game, sequence_form).nash_conv
    seconds = time.perf_counter() - begin
    history.append(Stage(done, seconds, small.num_infosets, _bytes(small), own, nash_conv))
    if nash_conv < least:
      best, least = sequence_form, nash_conv
    if least > target and nash_conv > 2 * own and (refined := made.refined(probabilities)):
      made, since = refined, 0
      running = _solver(solver, made.small, iterations)
      running.warm_start(made.to_small(probabilities), keep_average=False)
  return Refined(game, best, least, made.small, tuple(history))


def _bytes(game: PublicGame) -> int:
  parts = [game.payoff] if game.partition is None else [own.payoff for own in game.partition.parts]
  return sum(payoff.num_bytes for payoff in parts) + _LINES * game.dtype.itemsize * game.end


def _solver(name: str, game: PublicGame, iterations: int) -> FullWidthSolver:
  entry = catalogue.find(name)
  if entry.wrapper or not issubclass(entry.family, FullWidthSolver):
    raise errors.ArgumentError(f"{name!r} is no full-width solver that can start warm.")
  result = entry(game, iterations)
  assert isinstance(result, FullWidthSolver)
  return result
