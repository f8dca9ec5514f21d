"""Pruning: what cannot matter is left alone for a window of iterations, in a game that is compacted to the rest.

Three rules say what that is. docs/continuing.md has the proofs, `cfr.pruning.reference_pruning` the papers' algorithms.

Partial (Lanctot, Waugh, Zinkevich and Bowling 2009): where others do not lead, nothing is learned.

Regret-based (Brown and Sandholm, "Regret-Based Pruning in Extensive-Form Games", 2015): while a sequence ja is not
played, its subtree matters only through what ja is worth, so history there may be made up as if a best response to what
was faced in the window, dF, had been played:

    R(ja) += u(ja) - dZ(j),    and below:   R(j'a') += u(j'a') - u(j'),   Z(j') += u(j')

with u the values of that best response and Z(j) = sum of w_t v^t(j). Best-response pruning (Brown and Sandholm,
"Reduced Space and Faster Convergence in Imperfect-Information Games via Pruning", 2017) does the same with all that was
ever faced, F, and C the values of the best response to it, and so needs nothing of what has been below:

    R(ja) = C(ja) - Z(j),    and below:   R(j'a') = C(j'a') - C(j') <= 0,    Z(j') = C(j')

By the identity of `evaluation.identity` this costs nothing and never raises a positive regret below. So as long as
R(ja) stays negative, nothing below ja need be looked at. Every k iterations the solver rewrites, decides what it can
leave alone for the next k, and compacts the game to the rest: see `cfr.pruning.compaction`.
"""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import AnyFloats, Float64s, aligned_zeros, require
from spiel_cfr._util.interrupt import DeferredInterrupt
from spiel_cfr.cfr.averaging import Averaged
from spiel_cfr.cfr.loops import IterationNumbers
from spiel_cfr.cfr.numbers import exclusive
from spiel_cfr.cfr.pruning.compaction import Compacted, iteration_work
from spiel_cfr.cfr.pruning.constants import Pruning, Rule, as_pruning, more_caution
from spiel_cfr.cfr.pruning.held import numbers_held
from spiel_cfr.cfr.pruning.rewriting import add_deferred, copy_some
from spiel_cfr.cfr.pruning.rule import Windowed
from spiel_cfr.cfr.pruning.rules import make_rule, prepared
from spiel_cfr.cfr.pruning.window import Window
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.policies import forms, open_spiel
from spiel_cfr.regret_minimizers.ledger import NotedMatching
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer
from spiel_cfr.regret_minimizers.schedules import Numbers, Power, Schedule

# The first window begins after so many times its iterations.
_FIRST = 3
# So many iterations at a time come again where a window is gone back on.
_AGAIN = 100
# Where nothing can be left alone, it is longer this many times.
_IDLE = 2


class PruningSolver(Windowed):
  """A full-width solver that can leave alone what cannot matter for a while. See the module's docstring.

  With "partial" it has the iterates and averages that it has without pruning: bit for bit where payoffs are leaf rows,
  otherwise up to the order of sums. With the other rules averages take the strategies that the other player faces: with
  alternating updates player 0's after the update, player 1's before it; and iterates are those without pruning until
  something that was left alone is looked at again.

  Attributes:
    pruning: the rule and its constants; None for no pruning.
  """

  _names_of_windows: ClassVar[tuple[str, ...]] = (
    "_pruned",
    "_epoch_start",
    "_epoch_end",
    "_opened",
    "_opened_values",
    "_opened_strategy",
    "_opened_regrets",
    "_caution",
  )
  _workspaces = (*Windowed._workspaces, "_kept", "_rule", "_opened_gradients")

  def __init__(
    self,
    game: AnyGame,
    minimizer: RegretMinimizer,
    *,
    alternating_updates: bool = True,
    average_weights: Numbers = 0.0,
    correlated: bool = False,
    pruning: Pruning | Rule | None = None,
  ) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or what `compile_game` takes.
      minimizer: see `FullWidthSolver`.
      alternating_updates: likewise.
      average_weights: likewise.
      correlated: likewise.
      pruning: "partial", "regret", "best_response", or a `Pruning` with their constants; None for none.

    Raises:
      PruningError: the rule would not be sound with that minimizer or these weights, or in that game; or nothing of the
        game can be left out.
      ArgumentError: `pruning` is none; see also `FullWidthSolver`.
      GameError: see `compile_game`.
    """
    compiled = compile_game(game)
    self.pruning = as_pruning(pruning)
    averaged: tuple[Averaged, ...] | Averaged = "before"
    if self.pruning is not None:
      self._rule = make_rule(compiled, self.pruning)
      if correlated:
        raise errors.PruningError(
          "What is left alone is not in the sums that coarse_correlated_gap takes. Take correlated=False, or no "
          "pruning."
        )
      weights = average_weights if isinstance(average_weights, Schedule) else Power(average_weights)
      minimizer, averaged = prepared(minimizer, weights, self.pruning, bool(alternating_updates))
    super().__init__(
      compiled,
      minimizer,
      alternating_updates=alternating_updates,
      average_weights=average_weights,
      averaged=averaged,
      correlated=correlated,
    )

  def description(self) -> dict[str, Any]:
    """See the base class; what is not pruned is not said to be."""
    result = super().description()
    if self.pruning is None:
      result["arguments"].pop("pruning", None)
    return result

  def _loop_game(self) -> CompiledGame:
    # A window that is gone back on must leave no trace, not even in the order of sums.
    return self.compiled_game if self.pruning is None else self._rule.game

  def _start(self) -> None:
    if self.pruning is not None and "_rule" not in self.__dict__:
      self._rule = make_rule(self.compiled_game, self.pruning)
    super()._start()
    if self.pruning is None:
      return
    if self.tapered:
      raise errors.PruningError(
        f"{self!r} has no tapered average: what is left alone is added later. Take it without pruning."
      )
    game = self.compiled_game
    self._pruned = np.zeros(game.end, bool)
    self._epoch_start, self._epoch_end = 0, _FIRST * self._rule.shortest
    self._opened = aligned_zeros(game.end)
    self._opened_values = aligned_zeros(self._local.shape[-1] if len(self._local) else 0)
    gone_back_on = 0 if self._rule.owners_go_on else game.end
    self._opened_strategy, self._opened_regrets = (aligned_zeros(gone_back_on) for _ in range(2))
    plus = isinstance(self.minimizer, NotedMatching) and self.minimizer.plus
    self._caution, _ = self._rule.caution_and_tolerance(plus)
    self._opened_gradients = None
    self._forget_window()

  def _forget_window(self) -> None:
    self._kept: Window | None = None

  @property
  def is_plain(self) -> bool:
    """Whether nothing is pruned."""
    return self.pruning is None

  def _state_names(self) -> tuple[str, ...]:
    names = super()._state_names()
    return names if self.pruning is None else (*names, *self._names_of_windows)

  def _check_state(self, state: Mapping[str, Any]) -> None:
    super()._check_state(state)
    if self.pruning is None:
      return
    start, end = state["_epoch_start"], state["_epoch_end"]
    require(0 <= start <= state["iteration"], "the epoch has begun")
    require(
      end - state["iteration"] <= max(_IDLE, _FIRST) * self.pruning.longest, "the epoch is possible"
    )
    for name in ("_opened", "_opened_values", "_opened_strategy", "_opened_regrets"):
      require(np.isfinite(state[name]), f"{name} is finite")
    require(0 <= state["_caution"] < np.inf, "the caution is possible")
    real = forms.uniform(self.compiled_game) > 0
    require(not (state["_pruned"] & ~real).any(), "what is pruned are sequences")
    if state["_pruned"].any() and not self._rule.owners_go_on:
      require(not state["_strategy"][state["_pruned"]].any(), "what is pruned is not played")
      require(end - start <= self.pruning.longest, "the window is possible")
      require(state["iteration"] <= end, "the window is not over")
      require(state["_opened"] >= 0, "what was faced is not negative")
      require(state["_opened"] <= state["_cumulative"], "what was faced does not get less")
      forms.check_behavioral_form(self.compiled_game, state["_opened_strategy"])

  def _loaded(self) -> None:
    super()._loaded()
    self._opened_gradients = None
    self._forget_window()

  def hold(self, policy: open_spiel.AnyPolicy, infostates: Iterable[str] | None = None) -> None:
    """Keeps a part of the policy fixed, see `FullWidthSolver.hold`; not with pruning, which goes by what is played.

    Raises:
      LockError: it prunes; or see there.
      PolicyError: see there.
    """
    if self.pruning is not None:
      raise errors.LockError(
        f"{self!r} prunes, and so can't hold a policy. Take CFRPlusSolver without pruning."
      )
    super().lock(policy, infostates)

  def restart_from(self, sequence_form: Float64s) -> None:
    """Goes on from other strategies, see `FullWidthSolver.restart_from`."""
    super().restart_from(sequence_form)
    if self.pruning is not None:
      self._close()
      self._begin_epoch(self._epoch_end)

  @exclusive
  def prepare(self) -> None:
    """See the base class; also makes what is made once."""
    super()._advance(0)
    self.nash_conv()
    if self.pruning is not None:
      self._rule.prepare()

  @property
  def active_share(self) -> float:
    """What part of the leaves the current window goes through."""
    return self._left().share if self._prunes else 1.0

  @property
  def num_pruned(self) -> int:
    """How many sequences are left alone, those below them not counted."""
    return int(self._pruned.sum()) if self._prunes else 0

  @property
  def held_bytes(self) -> int:
    """How much has to be held between iterations: strategies, averages, and what the minimizer keeps, in bytes.

    Where there is one action nothing has to be. Below what best-response pruning leaves alone that is only the average,
    where it has ever been played to; below what regret-based pruning does, regrets too. Arrays keep their size all the
    same: the next window may need more.
    """
    rule = None if self.pruning is None else self._rule
    return self._cumulative.itemsize * numbers_held(self, rule)

  @property
  def _prunes(self) -> bool:
    """Whether something is left alone now."""
    return self.pruning is not None and bool(self._pruned.any())

  def _root_values(self) -> list[float]:
    loop = self._kept.loop if self.pruning is not None and self._kept else None
    return super()._root_values() if loop is None else loop.values()

  def _run_loop(self, numbers: IterationNumbers) -> None:
    count = len(numbers.parameters)
    # Of no iteration where everything is compiled.
    if self.pruning is None or not (count or self._prunes):
      super()._run_loop(numbers)
      return
    first = 0
    while first < count:
      if self.iteration >= self._epoch_end:
        with DeferredInterrupt() as interrupt:
          self._next_epoch(interrupt)
        # If a window was gone back on, the next one is still to begin.
        continue
      done = self.iteration
      last = min(count, first + self._epoch_end - done)
      rows = IterationNumbers(*(each[first:last] for each in numbers))
      if self._prunes:
        with DeferredInterrupt():
          window = self._window()
          number = self._rule.advance(self, window.opened(self), rows)
          window.take_back(self)
          if number < last - first:
            self._close()
      else:
        super()._run_loop(rows)
      first += self.iteration - done

  def _next_epoch(self, interrupt: DeferredInterrupt) -> None:
    """Brings up to date what was left alone, and decides what to leave alone next; or goes back on the window."""
    assert self.pruning is not None
    rule, window = self._rule, self._left() if self._prunes else None
    left = iteration_work(window.game.every_infoset) if window else rule.work
    length = rule.length(self.iteration, left)
    if not rule.decide(self, length):
      assert window is not None
      self._go_back(window, interrupt)
      return
    self._forget_window()
    if self._prunes:
      left = iteration_work(self._left().game.every_infoset)
      if left > self.pruning.worthwhile * rule.work:
        self._pruned[:] = False
        self._forget_window()
    if window is not None:
      rule.settle(self, window)
    if not self._prunes:
      length = _IDLE * rule.length(self.iteration)
      self._loop.refresh()
    self._begin_epoch(self.iteration + length)

  def _begin_epoch(self, end: int) -> None:
    for opened, now in self._gone_back_on():
      opened[:] = now
    self._epoch_start, self._epoch_end = self.iteration, end

  def _gone_back_on(self) -> list[tuple[Float64s, AnyFloats]]:
    """Returns pairs of arrays: what was when the window began, and what is."""
    pairs = [(self._opened, self._cumulative)]
    if not self._rule.owners_go_on:
      pairs.append((self._opened_values, self._local[0]))
      if self._prunes:
        pairs += [(self._opened_strategy, self._strategy), (self._opened_regrets, self._state[0])]
    return pairs

  def _go_back(self, window: Compacted, interrupt: DeferredInterrupt) -> None:
    """Does the window's iterations again, with nothing left alone, and takes more caution from then on.

    Args:
      window: what was left.
      interrupt: if it asks to stop, or anything else does, all is as it was at the end of the window.
    """
    end, wrong = self.iteration, self.state_dict()
    # Where nobody looked, what was decided has brought up to date what has been the same since the window began.
    for name, opened, seen in (
      ("_cumulative", self._opened, window.sequences),
      ("_local", self._opened_values, window.infosets),
    ):
      lines = np.atleast_2d(wrong[name])
      now, lines[0] = lines[0, seen], opened
      lines[0, seen] = now
    try:
      for opened, now in self._gone_back_on():
        now[:] = opened
      self.iteration = self._epoch_start
      self._rule.decide(self, 0)
      self._forget_window()
      self._rule.settle(self, window)
      self._loop.refresh()
      while self.iteration < end and not interrupt.requested:
        super()._run_loop(self._numbers(min(end - self.iteration, _AGAIN)))
    except BaseException:
      self._take_over(wrong)
      raise
    if self.iteration < end:
      self._take_over(wrong)
    else:
      self._caution = more_caution(self._caution)

  def _close(self) -> None:
    """Ends the window before its time: nothing is left alone until the next one."""
    self._pruned[:] = False
    self._forget_window()
    self._loop.refresh()

  def _window(self) -> Window:
    if self._kept is None:
      self._kept = Window(self._rule, self._pruned)
    return self._kept

  def _left(self) -> Compacted:
    return self._window().left

  def current_sequence_form(self) -> Float64s:
    """Returns a copy of the current policy in sequence form, shape (sequences,)."""
    if self.pruning is None:
      return super().current_sequence_form()
    return forms.sequence_form(self.compiled_game, self._strategy)

  # Averages of what was left alone.

  def _sums(self) -> AnyFloats:
    if not self._prunes or self._rule.owners_go_on or not self._cumulative[0]:
      return super()._sums()
    sums = self._cumulative.copy()
    self._add_deferred(sums)
    return sums

  def _add_deferred(self, sums: AnyFloats) -> None:
    """Brings averages up to date where nobody looked."""
    left, decisions = self._left(), self._rule.game.decisions
    add_deferred.unchecked(left.kept, left.live, self._strategy, self._opened, sums)
    copy_some.unchecked(sums, sums, decisions.chosen, decisions.forced)

  def _weight(self, iteration: int) -> float:
    return float(self._average_weights(np.array([max(1, iteration)]))[0])
