"""Dynamic abstraction: solves a small game, and adds missing actions of the whole game while it is solved.

The method follows Brown and Sandholm, "Simultaneous Abstraction and Equilibrium Finding in Games" (2015), with another
rule for the time at which an action is added, see docs/theory/ours_and_theirs.md.

    while NashConv in the whole game > target:
      iterate in the smaller game
      if more than half of that NashConv comes from missing actions:
        add actions, see `partial_game`
        start the solver of the new game warm, or with transferred regrets

The method saves memory, and rarely time; docs/refinement.md has the numbers.
"""

import dataclasses
import math
import time
from collections.abc import Sequence
from typing import Any, Literal

from spiel_cfr import catalogue, errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr.abstraction.partial_game import PartialGame
from spiel_cfr.cfr.averaging import Averaging
from spiel_cfr.cfr.cfr import FullWidthSolver
from spiel_cfr.cfr.payoff_transfer import largest_factor
from spiel_cfr.evaluation import evaluate
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.games.openspiel.game_view import ActionFilter
from spiel_cfr.games.payoffs.payoff import Payoff
from spiel_cfr.policies import forms
from spiel_cfr.policies.solved_policy import SolvedPolicy
from spiel_cfr.regret_minimizers.regret_matching import RegretMatching
from spiel_cfr.runs.run_schedules import Powers

# The arrays of a solver over sequences: regrets, strategy, sequence form, average, utilities.
_ARRAYS = 5
# The default target, as a share of the range of payoffs.
_SHARE_OF_RANGE = 1e-3
Continuation = Literal["policy", "regrets"]
# The default solver of each rule.
_SOLVERS: dict[Continuation, str] = {"policy": "cfr+", "regrets": "cfr_simultaneous"}


@dataclasses.dataclass(frozen=True)
class Stage:
  """Evaluation during `solve_refining`.

  Attributes:
    iterations: int. The number of iterations so far, in all smaller games.
    leaves: int. The number of leaves read so far, by iterations in smaller games and evaluations in the whole game. In
      an iteration or evaluation, each player reads all leaves of the game once.
    seconds: float. The time so far, including evaluations and refinements.
    infosets: int. The number of infosets of the smaller game.
    bytes: int. About the memory that an iteration reads and writes, for payoffs and the solver's arrays.
    small_nash_conv: float. The NashConv of the policy in the smaller game.
    nash_conv: float. The NashConv of the policy in the whole game.
  """

  iterations: int
  leaves: int
  seconds: float
  infosets: int
  bytes: int
  small_nash_conv: float
  nash_conv: float


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Refined(SolvedPolicy):
  """The result of `solve_refining`.

  Attributes:
    compiled_game: `CompiledGame`. The whole game.
    sequence_form: float64 (sequences,). The best evaluated policy, in the whole game.
    nash_conv: float. The NashConv of that policy in the whole game.
    small: `CompiledGame`. The smaller game at the end.
    history: tuple of `Stage`. The evaluations.
  """

  compiled_game: CompiledGame
  sequence_form: Float64s
  nash_conv: float
  small: CompiledGame
  history: tuple[Stage, ...]

  def __repr__(self) -> str:
    sizes = f"{self.small.num_infosets:,} of {self.compiled_game.num_infosets:,} infosets"
    return f"<Refined: NashConv {self.nash_conv:z.6g} with {sizes}>"


def solve_refining(
  game: AnyGame,
  start: ActionFilter | None = None,
  target: float | None = None,
  *,
  solver: str | None = None,
  iterations: int = 100_000,
  rule: Continuation = "policy",
) -> Refined:
  """Solves a game by dynamic abstraction: solves a smaller game, and adds the missing actions that gain most.

      result = solve_refining("leduc_poker", target=0.01)
      nash_conv(result.compiled_game, result.policy)

  Args:
    game: the whole game, a two-player constant-sum game: compiled, or an argument of `compile_game`. It must list its
      leaves, or be poker in vector form.
    start: an action filter that keeps the first smaller game's actions. It is a function of a state and its legal
      actions, as in `compile_game`; or of an infostate and its actions, if the game was made of arrays. It must keep
      the same actions at all states of an infoset. None keeps the first and the last action.
    target: the NashConv in the whole game at which to stop; None for a thousandth of the range of payoffs.
    solver: the name of a full-width solver in the catalogue; None for "cfr+", or "cfr_simultaneous" with
      rule="regrets", which takes no other solver.
    iterations: the largest number of iterations, in all smaller games together.
    rule: the way in which the solver of a new game begins. "policy" is a warm start from the average policy, with a new
      average. "regrets" is the paper's: all past iterations count as if they had been played in the new game without
      the new actions. They are discounted until their regrets are at most the bound of CFR.

  Raises:
    ArgumentError: an argument is invalid; or the solver is not full-width, or does not fit the rule.
    UnsupportedGameError: the game has another form or other players, or is an abstraction.
    NoStatesError: the filter needs states, and the game was pickled or written to a file without them.
    WarmStartError: the solver can't start warm.
    GameError: see `compile_game`.
  """
  begin = time.perf_counter()
  if target is not None:
    target = arguments.real_number(target, "target", 0.0)
  iterations = arguments.positive_integer(iterations, "iterations")
  arguments.one_of(rule, "rule", tuple(_SOLVERS))
  if solver is not None:
    arguments.of_type(solver, "solver", str)
  if start is not None and not callable(start):
    raise errors.ArgumentError(f"Begin with an action filter, not with {start!r}.")
  game = compile_game(game)
  if not game.is_two_player_constant_sum:
    raise errors.UnsupportedGameError(
      f"{game} is not a game of two players with a constant sum, and NashConv of other games need not reach a target. "
      "Use solve or run."
    )
  if target is None:
    target = _SHARE_OF_RANGE * (game.payoff_range[1] - game.payoff_range[0])
  partial = PartialGame.filtered(game, start or _first_and_last)
  name = _SOLVERS[rule] if solver is None else solver
  running = _make_solver(name, partial.small, iterations, rule)
  history: list[Stage] = []
  best, least_nash_conv = forms.uniform(game), math.inf
  total_iterations = iterations_in_game = leaves = 0
  while least_nash_conv > target and total_iterations < iterations:
    # At least 20 iterations in a new game, because its first policies say little.
    due = max(20, int(Powers(1.5)(iterations_in_game)))
    count = min(due - iterations_in_game, iterations - total_iterations)
    running.run(count)
    iterations_in_game += count
    total_iterations += count
    small, sums = partial.small, running.average_sequence_form()
    small_nash_conv = evaluate.evaluate(small, sums).nash_conv
    probabilities = partial.to_whole(sums)
    sequence_form = forms.sequence_form(game, probabilities)
    nash_conv = small_nash_conv
    if small is not game:
      nash_conv = evaluate.evaluate(game, sequence_form).nash_conv
    leaves += 2 * (count * _num_leaves(small) + _num_leaves(game))
    history.append(
      Stage(
        total_iterations,
        leaves,
        time.perf_counter() - begin,
        small.num_infosets,
        _num_bytes(small),
        small_nash_conv,
        nash_conv,
      )
    )
    if nash_conv < least_nash_conv:
      best, least_nash_conv = sequence_form, nash_conv
    if least_nash_conv <= target or nash_conv <= 2 * small_nash_conv:
      continue
    larger = partial.extended(probabilities)
    if larger is not None:
      new_solver = _make_solver(name, larger.small, iterations, rule)
      if rule == "policy":
        new_solver.warm_start(larger.to_small(probabilities), keep_average=False)
      else:
        _transfer_regrets(running, partial, new_solver, larger, probabilities)
      partial, running, iterations_in_game = larger, new_solver, 0
  return Refined(game, best, least_nash_conv, partial.small, tuple(history))


def _first_and_last(state: Any, actions: list[int]) -> list[int]:
  """Action filter that keeps the first and the last action."""
  return [actions[0], actions[-1]]


def _transfer_regrets(
  old_solver: FullWidthSolver,
  partial: PartialGame,
  new_solver: FullWidthSolver,
  larger: PartialGame,
  probabilities: Float64s,
) -> None:
  """Begins a solver with the discounted regrets that an old solver would have in the new game.

  Args:
    old_solver: the solver of the old game.
    partial: the old game.
    new_solver: the solver of the new game.
    larger: the new game, with additional actions.
    probabilities: the average policy in the whole game, in behavioral form.
  """
  count, old_regrets = old_solver.iteration, old_solver.cumulative_regrets()
  assert old_regrets is not None
  regrets = larger.to_small(partial.whole_regrets(old_regrets, probabilities, count))
  # A whole number of iterations, so that regrets and average belong to the same play.
  kept = max(1, int(largest_factor(larger.small, regrets, count) * count))
  average = forms.sequence_form(larger.small, larger.to_small(probabilities))
  new_solver.begin_with_regrets(kept / count * regrets, average, kept)


def _payoffs(game: CompiledGame) -> Sequence[Payoff]:
  """Returns the payoffs of all parts of a game."""
  return [game.payoff] if game.partition is None else [part.payoff for part in game.partition.parts]


def _num_leaves(game: CompiledGame) -> int:
  return sum(payoff.num_leaves for payoff in _payoffs(game))


def _num_bytes(game: CompiledGame) -> int:
  """Returns `Stage.bytes` of a game."""
  solver_bytes = _ARRAYS * game.dtype.itemsize * game.end
  return sum(payoff.num_bytes for payoff in _payoffs(game)) + solver_bytes


def _make_solver(
  name: str, game: CompiledGame, iterations: int, rule: Continuation
) -> FullWidthSolver:
  """Returns a solver of the catalogue; raises ArgumentError if it can't start warm or does not fit the rule."""
  entry = catalogue.find(name)
  if entry.wrapper or not issubclass(entry.family, FullWidthSolver):
    raise errors.ArgumentError(f"{name!r} is not a full-width solver that can start warm.")
  result = entry(game, iterations)
  assert isinstance(result, FullWidthSolver)
  is_plain_cfr = result.minimizer == RegretMatching() and result.averaging == Averaging()
  if rule == "regrets" and (not is_plain_cfr or result.alternating_updates):
    raise errors.ArgumentError(
      f"rule='regrets' is for 'cfr_simultaneous', not {name!r}: regrets of the past are known exactly only where all "
      "players update at once and all iterations weigh the same. Use rule='policy'."
    )
  return result
