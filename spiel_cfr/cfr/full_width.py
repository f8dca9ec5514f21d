"""What all full-width solvers have in common: arrays, a count of iterations, and policies made from them."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import AnyFloats, Float64s, Int64s, require
from spiel_cfr._util import arguments
from spiel_cfr._util.time_slices import Slices
from spiel_cfr.cfr.averaging import ADDITION, Averaged, additions, averages_after, check_correlated
from spiel_cfr.cfr.holding import Holding
from spiel_cfr.cfr.looped import Looped
from spiel_cfr.cfr.loops import IterationNumbers, make_loop
from spiel_cfr.cfr.numbers import check_numbers, check_parameters, check_weights
from spiel_cfr.cfr.stepping import Stepping
from spiel_cfr.cfr.substitute_regrets import Known, WarmStart
from spiel_cfr.cfr.warm_start import begin_from
from spiel_cfr.evaluation import evaluate
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.file_checks import check_payoffs
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.policies import forms
from spiel_cfr.policies.locked import held_sequences
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer
from spiel_cfr.regret_minimizers.schedules import Numbers, Power, Schedule, evaluated

# What descriptions call it.
_TAPERED = "tapered"

# For how many iterations parameters are computed at a time at least and at most, where few are asked for.
_FEWEST, _TABLE = 64, 512


class FullWidthSolver(Looped, Stepping, Holding):
  """A full-width solver: a regret minimizer, the weights of its average, and an order of updates.

  It is used as OpenSpiel's solvers are:

      solver = CFRPlusSolver(pyspiel.load_game("leduc_poker"))
      for _ in range(1000):
        solver.evaluate_and_update_policy()
      solver.average_policy()

  and `run(1000)` does the same, faster.

  Attributes:
    compiled_game: the game as arrays.
    minimizer: what every infoset does.
    alternating_updates: whether a player sees the strategies to which those before it have just updated.
    tapered: whether the weights of the average vanish at both ends.
    correlated: whether it keeps what the coarse correlated gap takes.
    precision: the relative rounding error of what is remembered from one iteration to the next.
  """

  state_names: ClassVar[tuple[str, ...]] = (
    "iteration",
    "_origin",
    "_warm",
    "_last_addition",
    "_strategy",
    "_cumulative",
    "_tapered",
    "_state",
    "_local",
    "_gradients",
    "_play_values",
    "_held",
  )
  _workspaces: ClassVar[tuple[str, ...]] = (
    "_own_loop",
    "_iteration",
    "_slices",
    "_rows",
    "_rows_from",
  )

  def __init__(
    self,
    game: AnyGame,
    minimizer: RegretMinimizer,
    *,
    alternating_updates: bool = True,
    average_weights: Numbers = 0.0,
    averaged: tuple[Averaged, ...] | Averaged = "before",
    tapered: bool = False,
    correlated: bool = False,
  ) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or what `compile_game` takes; compile it yourself to share it or to cache it.
      minimizer: the regret minimizer at every infoset.
      alternating_updates: whether a player sees the strategies to which those before it have just updated, or all see
        those of the last iteration.
      average_weights: what the strategy of iteration t weighs in the average, times the reach of its owner: a schedule,
        or a power of t.
      averaged: which strategies of an iteration the averages take, OpenSpiel's "before" or "after" the update; one for
        all players, or one per player.
      tapered: whether weights vanish at the end too: after iteration T that of iteration t is times about T - t.
        Strategies that circle around an equilibrium are then averaged out better. It takes a second array of sums, to
        which the first is added now and then, at about a tenth of the cost of an iteration.
      correlated: whether to keep what `correlated.coarse_correlated_gap` takes: with more than two players a third
        array, to which an iteration adds a vector. Only with simultaneous updates, averaged before.

    Raises:
      GameError: see `compile_game`.
      ArgumentError: the power is not a finite number, or negative; `averaged` is not one of the names, or not one for
        each player; the minimizer is none; or `correlated` is asked for with other updates or averages.
      AbstractionError: `correlated` is asked for in an abstraction that is not lossless.
      InvalidPayoffError: the payoffs are too large or too small to compute with.
    """
    if not isinstance(minimizer, RegretMinimizer):
      raise errors.ArgumentError(
        f"minimizer must be a RegretMinimizer, not {arguments.shortened(minimizer)}."
      )
    self.compiled_game = compile_game(game)
    self.minimizer = minimizer
    self.alternating_updates = bool(alternating_updates)
    self.tapered = bool(tapered)
    self.correlated = bool(correlated)
    self._weights = (
      average_weights if isinstance(average_weights, Schedule) else Power(average_weights)
    )
    check_payoffs(self.compiled_game.game_string, self.compiled_game.payoff_range)
    self._after = averages_after(averaged, self.compiled_game.num_players)
    self._before = ~self._after
    if self.correlated:
      check_correlated(self.compiled_game, self.alternating_updates or bool(self._after.any()))
    self._start()

  def _start(self) -> None:
    # What is held stays held.
    before = self.__dict__.get("_held", np.zeros(self.compiled_game.num_infosets, np.uint8))
    strategy = self._strategy if before.any() else None
    self._slices = Slices(self.compiled_game.end)
    self._iteration = np.zeros(2, np.uint64)
    self._origin = self._warm = 0
    self._rows, self._rows_from = np.zeros((0, 0)), 0
    self._own_loop = make_loop(self._loop_game(), self.minimizer, self.tapered, self.correlated)
    self._held = before.copy()
    if strategy is not None:
      held = held_sequences(self.compiled_game, before)
      self._strategy[held] = strategy[held]
      self._loaded()
    # The relative rounding error of what is remembered.
    kept = np.finfo(self._cumulative.dtype)
    self.precision = float(kept.eps)
    self._most_weight = float(kept.max) / 2**20

  def _loop_game(self) -> CompiledGame:
    """Returns the game in the form that iterations go through."""
    return self.compiled_game

  def _check_state(self, state: Mapping[str, Any]) -> None:
    super()._check_state(state)
    for name in ("_strategy", "_state", "_local", "_gradients", "_play_values"):
      require(np.isfinite(state[name]), f"{name} is finite")
    for name in ("_cumulative", "_tapered"):
      require((state[name] >= 0) & np.isfinite(state[name]), "averages are sums of probabilities")
    for name in ("_origin", "_warm", "_last_addition"):
      require(0 <= state[name] <= state["iteration"], f"{name} was before")
    forms.check_behavioral_form(self.compiled_game, state["_strategy"])

  def _loaded(self) -> None:
    self._loop.lock(held_sequences(self.compiled_game, self._held))
    self._loop.refresh()

  @property
  def iteration(self) -> int:
    """How many iterations have been done."""
    return int(self._iteration[0])

  @iteration.setter
  def iteration(self, number: int) -> None:
    self._iteration[0] = number

  @property
  def _last_addition(self) -> int:
    """The iteration after which the sums were last added to the tapered ones."""
    return int(self._iteration[1])

  @_last_addition.setter
  def _last_addition(self, number: int) -> None:
    self._iteration[1] = number

  @property
  def nodes_touched(self) -> int:
    """How many states a recursive implementation would have visited: all, once per player that updates alone."""
    walks = self.compiled_game.num_players if self.alternating_updates else 1
    return (self.iteration - self._warm) * walks * self.compiled_game.num_states

  def _root_values(self) -> list[float]:
    """Returns what each player's empty sequence was worth in its last iteration."""
    return self._own_loop.values()

  def _check_finite(self) -> None:
    # Whatever is not finite at any infoset makes its way up to the root.
    values = self._root_values()
    if not all(map(math.isfinite, values)):
      raise errors.NotFiniteError(
        f"After {self.iteration:,} iterations the value of the game is {values} for its players: the "
        f"strategies or regrets of {self.minimizer} have left the range of floating-point numbers."
      )

  def _advance(self, count: int) -> None:
    self._run_loop(self._numbers(count))

  def _numbers(self, count: int) -> IterationNumbers:
    """Returns what depends on the iteration, for the next ones."""
    first = self.iteration + 1
    iterations = np.arange(first, first + count)
    parameters = self._parameter_rows(iterations)
    check_parameters(parameters, self.minimizer)
    weights = self._average_weights(iterations)
    # The first sequence is one of the trunk.
    total = float(self._own_loop.cumulative[0])
    check_weights(weights, count, total, self._most_weight)
    weights = weights[:, None]
    before, after = weights * self._before, weights * self._after
    return IterationNumbers(parameters, before, after, self._additions(count))

  def _run_loop(self, numbers: IterationNumbers) -> None:
    """Does as many iterations as there are rows of numbers."""
    self._own_loop.advance(self.alternating_updates, numbers, self._iteration)

  def _parameter_rows(self, iterations: Int64s) -> Float64s:
    """Returns the same as `_parameters`, quickly where it is called for a few iterations after the other."""
    count, first = len(iterations), self.iteration - self._rows_from
    if not count or count > _TABLE:
      return self._checked_parameters(iterations)
    if not 0 <= first <= len(self._rows) - count:
      rows = max(count, _FEWEST, min(self.iteration, _TABLE))
      self._rows = self._checked_parameters(np.arange(1, rows + 1) + self.iteration)
      self._rows_from, first = self.iteration, 0
    return self._rows[first : first + count]

  def _checked_parameters(self, iterations: Int64s) -> Float64s:
    result = self._parameters(iterations)
    check_numbers(result, 2, len(iterations), "what the minimizer's `parameters` returns")
    return result

  def _parameters(self, iterations: Int64s) -> Float64s:
    """Returns what the minimizer's kernels are told at these iterations, shape (iterations, numbers)."""
    return self.minimizer.parameters(iterations, self.compiled_game)

  def _average_weights(self, iterations: Int64s) -> Float64s:
    """Returns what the strategies of these iterations weigh in the average, shape (iterations,)."""
    return evaluated(self._weights, iterations - self._origin)

  def _additions(self, count: int) -> Float64s:
    """Returns `IterationNumbers.additions` of the next iterations."""
    if not self.tapered:
      return np.zeros(count)
    return additions(count, self.iteration, self._last_addition, self._origin)

  def _sums(self) -> AnyFloats:
    """Returns what the average policy is a multiple of, shape (sequences,); before any iteration, the current one."""
    if not self._cumulative[0]:
      return self._loop.current_sequence_form()
    passed = self.iteration - self._last_addition
    if not self.tapered:
      return self._cumulative
    return self._tapered + ADDITION * passed * self._cumulative if passed else self._tapered

  def with_tapered_average(self) -> Self:
    """Returns the same solver before its first iteration, with an average whose weights vanish at the end too.

    That is `FullWidthSolver(..., tapered=True)` for solvers that have a name:

        solver = DCFRSolver("leduc_poker").with_tapered_average()

    This one is left alone.
    """
    result = self.restarted()
    result.tapered = True
    result._start()
    return result

  def description(self) -> dict[str, Any]:
    """Returns the class, the arguments of the constructor and whether the average is tapered, as JSON has them.

    Raises:
      ArgumentError: an argument can't be written as JSON.
    """
    return super().description() | ({_TAPERED: True} if self.tapered else {})

  @classmethod
  def _made(cls, first: Any, description: Mapping[str, Any]) -> Self:
    result = super()._made(first, description)
    return result.with_tapered_average() if description.get(_TAPERED) else result

  @property
  def restarts_itself(self) -> bool:
    """Whether it goes on from other strategies without being told to."""
    return False

  @property
  def is_plain(self) -> bool:
    """Whether its iterations, averages and restarts are those of `FullWidthSolver`; who overrides one of these says so."""
    return True

  @property
  def stretch(self) -> int:
    """How many iterations its average is made of. Set, it tells which iteration the next one counts as."""
    return self.iteration - self._origin

  @stretch.setter
  def stretch(self, iterations: int) -> None:
    fewer = self.stretch - arguments.integer(iterations, "stretch", 0, self.stretch)
    self._origin += fewer
    self._last_addition += fewer

  def average_candidates(self) -> Iterator[AnyFloats]:
    """Yields multiples of the averages that there are, not to be written to: with plain weights, with tapered ones."""
    if self._cumulative[0]:
      yield self._cumulative
      if self.tapered:
        yield self._sums()

  def add_to_tapered(self) -> None:
    """Brings the tapered sums up to date, sooner than they would be."""
    passed = self.iteration - self._last_addition
    if self.tapered and passed:
      self._tapered[:] += ADDITION * passed * self._cumulative
      self._last_addition = self.iteration

  def restart_from(self, sequence_form: Float64s) -> None:
    """Goes on from other strategies, with an average that begins anew; `iteration` goes on too.

    Args:
      sequence_form: the strategies, shape (sequences,). Where their owner does not play to, the current ones stay.

    Raises:
      RestartError: the minimizer can't go on from a strategy.
    """
    parameters = self._parameters(np.array([max(1, self.iteration)]))[0]
    self._loop.resume(sequence_form, parameters)
    self._origin = self._last_addition = self.iteration
    self._cumulative[:] = 0.0
    for sums in (self._tapered, self._gradients, self._play_values):
      sums[:] = 0.0

  @property
  def warm_iterations(self) -> int:
    """For how many of the iterations the policy counts from which it has started warm; 0 if it has not."""
    return self._warm

  @property
  def _minimizer(self) -> RegretMinimizer:
    return self.minimizer

  def _start_warm(self, found: Known, chosen: WarmStart, keep_average: bool) -> None:
    weights = evaluated(self._weights, np.arange(1, chosen.iterations + 1))
    check_weights(weights, len(weights), 0.0, self._most_weight)
    parameters = self._parameters(np.array([chosen.iterations]))[0]
    self._start()
    self.iteration = self._warm = self._last_addition = chosen.iterations
    begin_from(self._loop, self.minimizer, found, chosen, parameters)
    if keep_average:
      self._cumulative[:] = weights.sum() * found.sequence_form
      if self.tapered:
        self._tapered[:] = ADDITION * chosen.iterations * self._cumulative
    else:
      self._origin = chosen.iterations

  def current_probabilities(self) -> Float64s:
    """Returns a copy of the current policy in behavioural form, shape (sequences,)."""
    forms.check_finite(self._strategy)
    return self._strategy.astype(np.float64)

  def current_sequence_form(self) -> Float64s:
    """Returns a copy of the current policy in sequence form, shape (sequences,)."""
    return self._loop.current_sequence_form()

  def average_probabilities(self) -> Float64s:
    """Returns the average policy in behavioural form, shape (sequences,); uniform where never played to."""
    return forms.behavioral_form(self.compiled_game, self._sums())

  def average_sequence_form(self) -> Float64s:
    """Returns the average policy in sequence form, shape (sequences,), without a detour by infosets."""
    result = np.array(self._sums(), np.float64)
    for treeplex in self.compiled_game.treeplexes:
      result[treeplex.root : treeplex.end] /= result[treeplex.root]
    return result

  def nash_conv(self) -> float:
    """Returns the NashConv of the average policy, without leaving the arrays."""
    return evaluate.original_nash_conv(self.compiled_game, self._sums())
