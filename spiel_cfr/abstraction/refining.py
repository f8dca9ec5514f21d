"""Refinement on the way (dynamic abstraction): actions come into a small game while it is solved.

After Brown and Sandholm, "Simultaneous Abstraction and Equilibrium Finding in Games" (2015), with another rule for when
an action comes: see docs/theory/ours_and_theirs.md.

    while NashConv in the whole game > target:
      iterate in the smaller game
      if the larger half of that NashConv comes from missing actions:
        add actions, see `refined_actions`
        start the solver of the new game warm, or with transferred regrets

It saves memory, and rarely time: docs/refinement.md has the numbers.
"""

import dataclasses
import math
import time
from collections.abc import Sequence
from typing import Any, Literal

from spiel_cfr import catalogue, errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr.abstraction.refined_actions import RefinedActions
from spiel_cfr.cfr.averaging import Averaging
from spiel_cfr.cfr.cfr import FullWidthSolver
from spiel_cfr.cfr.regret_transfer import largest_factor
from spiel_cfr.evaluation import evaluate
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.games.openspiel.game_view import ActionFilter
from spiel_cfr.games.payoffs.payoff import Payoff
from spiel_cfr.policies import forms
from spiel_cfr.policies.solved_policy import SolvedPolicy
from spiel_cfr.regret_minimizers.regret_matching import RegretMatching
from spiel_cfr.runs.run_schedules import Powers

# Numbers that a solver keeps for each sequence: regrets, strategy, sequence form, average, utilities.
_LINES = 5
# The target by default, as a share of the range of payoffs.
_SHARE_OF_RANGE = 1e-3
Rule = Literal["policy", "regrets"]
# The solver of each rule, by default.
_SOLVERS: dict[Rule, str] = {"policy": "cfr+", "regrets": "cfr_simultaneous"}


@dataclasses.dataclass(frozen=True)
class Stage:
  """An evaluation on the way.

  Attributes:
    iterations: number of iterations so far, of all sizes of the game.
    leaves: number of leaves that iterations in the smaller games and evaluations in the whole game have read so far;
      each player reads all leaves of a game once in an iteration and once in an evaluation.
    seconds: time so far, evaluations and refinements included.
    infosets: number of infosets of the smaller game.
    bytes: about how much memory an iteration goes through, payoffs and solver.
    own_nash_conv: NashConv of the policy in the smaller game.
    nash_conv: NashConv of the policy in the whole game.
  """

  iterations: int
  leaves: int
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
    sequence_form: float64 (sequences,). The best policy of the whole game that was met.
    nash_conv: NashConv of that policy in the whole game, by best responses.
    small: the smaller game at the end.
    history: the evaluations on the way.
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
  rule: Rule = "policy",
) -> Refined:
  """Solves a game by way of a smaller one to which actions are added where they are missing.

      found = solve_refining("leduc_poker", target=0.01)
      nash_conv(found.compiled_game, found.policy)

  Args:
    game: the whole game, of two players and constant sum: what `compile_game` takes or returns, if that lists its
      leaves or is poker in vector form.
    start: an action filter, which says what actions to begin with: a function of a state and its legal actions, as
      `compile_game` takes it, or of an infoset's name and actions if the game was made of arrays. It must keep the same
      at all states of an infoset; by default, the first and the last.
    target: the NashConv in the whole game to stop at; by default a thousandth of the range of payoffs.
    solver: the name of a full-width solver in the catalogue; by default "cfr+", or "cfr_simultaneous" with
      rule="regrets", which takes no other.
    iterations: how many there may be, of all sizes of the game.
    rule: how the solver of a new game begins. "policy": a warm start from the average policy, with an average that
      begins anew. "regrets", the paper's: all past iterations count as if they had been played in the new game without
      its new actions, discounted until their regrets are no larger than the bound of CFR.

  Raises:
    ArgumentError: an argument makes no sense; or the solver is not a full-width one, or not one of the rule.
    UnsupportedGameError: the game has another form or other players, or is an abstraction.
    NoStatesError: the states for the filter stayed behind when the game was pickled or written to a file.
    WarmStartError: the solver can't start warm.

  and what `compile_game` raises.
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
  made = RefinedActions.filtered(game, start or _first_and_last)
  name = _SOLVERS[rule] if solver is None else solver
  running = _solver(name, made.small, iterations, rule)
  history: list[Stage] = []
  best, least, done, since, leaves = forms.uniform(game), math.inf, 0, 0, 0
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
    leaves += 2 * (count * _leaves(small) + _leaves(game))
    seconds = time.perf_counter() - begin
    history.append(Stage(done, leaves, seconds, small.num_infosets, _bytes(small), own, nash_conv))
    if nash_conv < least:
      best, least = sequence_form, nash_conv
    if least > target and nash_conv > 2 * own and (refined := made.refined(probabilities)):
      after, since = _solver(name, refined.small, iterations, rule), 0
      if rule == "policy":
        after.warm_start(refined.to_small(probabilities), keep_average=False)
      else:
        _transfer(running, made, after, refined, probabilities)
      made, running = refined, after
  return Refined(game, best, least, made.small, tuple(history))


def _first_and_last(state: Any, actions: list[int]) -> list[int]:
  """Keeps the first and the last action: an action filter."""
  return [actions[0], actions[-1]]


def _transfer(
  before: FullWidthSolver,
  made: RefinedActions,
  after: FullWidthSolver,
  refined: RefinedActions,
  probabilities: Float64s,
) -> None:
  """Begins a solver of the new game with the discounted regrets that the solver before it would have had there."""
  count, old = before.iteration, before.cumulative_regrets()
  assert old is not None
  regrets = refined.to_small(made.whole_regrets(old, probabilities, count))
  # Whole iterations, so that regrets and average stay those of the same play.
  kept = max(1, int(largest_factor(refined.small, regrets, count) * count))
  average = forms.sequence_form(refined.small, refined.to_small(probabilities))
  after.begin_with_regrets(kept / count * regrets, average, kept)


def _payoffs(game: CompiledGame) -> Sequence[Payoff]:
  return [game.payoff] if game.partition is None else [own.payoff for own in game.partition.parts]


def _leaves(game: CompiledGame) -> int:
  return sum(payoff.num_leaves for payoff in _payoffs(game))


def _bytes(game: CompiledGame) -> int:
  numbers = _LINES * game.dtype.itemsize * game.end
  return sum(payoff.num_bytes for payoff in _payoffs(game)) + numbers


def _solver(name: str, game: CompiledGame, iterations: int, rule: Rule) -> FullWidthSolver:
  entry = catalogue.find(name)
  if entry.wrapper or not issubclass(entry.family, FullWidthSolver):
    raise errors.ArgumentError(f"{name!r} is no full-width solver that can start warm.")
  result = entry(game, iterations)
  assert isinstance(result, FullWidthSolver)
  plain = result.minimizer == RegretMatching() and result.averaging == Averaging()
  if rule == "regrets" and (not plain or result.alternating_updates):
    raise errors.ArgumentError(
      f"rule='regrets' is for 'cfr_simultaneous', not {name!r}: regrets of the past are known exactly only where all "
      "players update at once and all iterations weigh the same. Use rule='policy'."
    )
  return result
