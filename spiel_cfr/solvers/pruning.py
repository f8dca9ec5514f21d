"""CFR and CFR+ with best-response pruning, on games that are compacted now and then.

Brown and Sandholm, "Reduced Space and Faster Convergence in Imperfect-Information Games via Pruning" (2017). With F the
weighted sum of what a player has faced, C the values of the best response to F, and Z(j) = sum of w_t v^t(j), the
history below a sequence ja that is not played may be rewritten as if a best response to F had been played there:

    R(ja) = C(ja) - Z(j),    and below:   R(j'a') = C(j'a') - C(j') <= 0,    Z(j') = C(j')

which by the identity of `continuing.identity` costs nothing and never raises a positive regret from below. So as long
as C(ja) - Z(j) stays negative, nothing below ja need be looked at. Every k iterations the solver rewrites, decides what
it can leave alone for the next k, and compacts the game to the rest: see `continuing.compaction`. docs/continuing.md.
"""

import functools
import math
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np

from spiel_cfr import arguments, errors
from spiel_cfr.best_responses import take_best
from spiel_cfr.compiled.enumerated import EnumeratedGame
from spiel_cfr.compiling import AnyGame, compile_game
from spiel_cfr.continuing.compaction import COMPACTING, Compacted, all_leaves, compact
from spiel_cfr.continuing.identity import carry_up
from spiel_cfr.continuing.rewriting import (
  REWRITING,
  add_deferred,
  choose,
  copy_some,
  fade,
  restore,
)
from spiel_cfr.game.sweeps import Tree
from spiel_cfr.interrupt import DeferredInterrupt
from spiel_cfr.kernels.arrays import (
  AnyFloats,
  Float64s,
  aligned,
  aligned_zeros,
  require,
)
from spiel_cfr.kernels.simd import MOST_LANES
from spiel_cfr.minimizers.base import tie_tolerances
from spiel_cfr.minimizers.ledger import NotedMatching
from spiel_cfr.minimizers.schedules import Power
from spiel_cfr.payoffs.base import Payoff
from spiel_cfr.payoffs.leaf_rows import LeafRows
from spiel_cfr.payoffs.sorted_rows import SortedRows, sorted_rows
from spiel_cfr.policy import forms, open_spiel
from spiel_cfr.solvers.averaging import Averaged
from spiel_cfr.solvers.full_width import Solver
from spiel_cfr.solvers.loops import FlatLoop, IterationNumbers, Loop
from spiel_cfr.solvers.numbers import exclusive
from spiel_cfr.solvers.windows import MOST_MARGIN, Pruning

# An epoch is this part of the iterations so far, within limits.
_PART = 5
# What `Pruning.caution` is by default. Chosen on Leduc poker, liar's dice and Leduc-5.
_CAUTION_PLUS, _CAUTION = 3.0, 100.0
# Where nothing can be left alone, it is longer this many times.
_IDLE = 5
# If more than this of the leaves would be left, compacting them would not pay.
_WORTHWHILE = 0.7


class PrunedCFRSolver(Solver):
  """CFR+ or CFR that leaves alone what a best response would, for two players. See the module's docstring.

  Its averages take the strategies that the other player faces: with alternating updates player 0's after the update,
  player 1's before it. Until it first leaves something alone it has the iterates of CFR+ or CFR.

  Attributes:
    pruning: as given.
    active_share: what part of the leaves the current window goes through.
    num_pruned: how many sequences are left alone, those below them not counted.
  """

  state_names: ClassVar[tuple[str, ...]] = (
    *Solver.state_names,
    "_pruned",
    "_epoch_start",
    "_epoch_end",
    "_opened",
    "_opened_values",
  )
  _workspaces = (*Solver._workspaces, "_small", "_compacted", "_played")

  def __init__(
    self,
    game: AnyGame,
    pruning: Pruning | None = None,
    regret_matching_plus: bool = True,
    alternating_updates: bool = True,
  ) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or what `compile_game` takes, of two players, with all its histories listed.
      pruning: what may be left alone, and for how long; by default, `Pruning()`.
      regret_matching_plus: whether it is CFR+, with linear averages, or CFR, with uniform ones.
      alternating_updates: whether a player sees the strategies to which those before it have just updated.

    Raises:
      PruningError: the game has more than two players, or is in vector form.
      ArgumentError: `pruning` is none.
      GameError: see `compile_game`.
    """
    compiled = compile_game(game)
    if compiled.num_players != 2:
      raise errors.PruningError(
        f"{compiled.game_string} has {compiled.num_players} players. What a player faces is then no sum of strategies, "
        "and best-response pruning has no proof; take CFRPlusSolver or CFRSolver."
      )
    if not isinstance(compiled, EnumeratedGame):
      raise errors.PruningError(
        f"{compiled.game_string} is compiled in vector form, of which nothing can be left out. Compile it with "
        "vector_form=False, or take CFRPlusSolver or CFRSolver."
      )
    if compiled.original is not compiled:
      raise errors.PruningError(
        f"{compiled.game_string} is an abstraction, of which nothing can be left out. Prune its `original`, or take "
        "CFRPlusSolver or CFRSolver."
      )
    self.pruning = Pruning() if pruning is None else pruning
    if not isinstance(self.pruning, Pruning):
      raise errors.ArgumentError(f"pruning must be a Pruning, not {arguments.shortened(pruning)}.")
    plus = bool(regret_matching_plus)
    caution = self.pruning.caution
    self._caution = (_CAUTION_PLUS if plus else _CAUTION) if caution is None else caution
    averaged: tuple[Averaged, ...] = ("after", "before") if alternating_updates else ("before",) * 2
    weights = Power(1.0 if plus else 0.0)
    super().__init__(
      compiled,
      NotedMatching(weights, plus),
      alternating_updates=alternating_updates,
      average_weights=weights,
      averaged=averaged,
    )

  def _start(self) -> None:
    super()._start()
    game = self.compiled_game
    self._pruned = np.zeros(game.end, bool)
    self._epoch_start, self._epoch_end = 0, self.pruning.shortest
    self._opened = aligned_zeros(game.end)
    self._opened_values = np.zeros_like(self._local[0])
    self._forget_window()

  def _forget_window(self) -> None:
    self._small: FlatLoop | None = None
    self._compacted: Compacted | None = None

  def _check_state(self, state: Mapping[str, Any]) -> None:
    super()._check_state(state)
    end = state["_epoch_end"]
    require(0 <= end - state["iteration"] <= _IDLE * self.pruning.longest, "the epoch is possible")
    require(np.isfinite(state["_opened"]), "_opened is finite")
    require(np.isfinite(state["_opened_values"]), "_opened_values is finite")
    real = forms.uniform(self.compiled_game) > 0
    require(not (state["_pruned"] & ~real).any(), "what is pruned are sequences")
    require(not state["_strategy"][state["_pruned"]].any(), "what is pruned is not played")

  def _loaded(self) -> None:
    super()._loaded()
    self._forget_window()

  def hold(self, policy: open_spiel.AnyPolicy, infostates: Iterable[str] | None = None) -> None:
    """Refuses to keep a part of the policy fixed: it is by regrets that it finds what to leave alone.

    Raises:
      HoldError: always.
    """
    raise errors.HoldError(
      f"{self!r} can't hold a policy. Take another Solver, such as CFRPlusSolver."
    )

  @exclusive
  def prepare(self) -> None:
    """See the base class; also makes what is made once."""
    super()._advance(0)
    self.nash_conv()
    assert self._gains
    assert self._payoff
    for each in (*REWRITING, *COMPACTING):
      assert each.compiled

  @property
  def active_share(self) -> float:
    """What part of the leaves the current epoch goes through."""
    return self._window().share if self._pruned.any() else 1.0

  @property
  def num_pruned(self) -> int:
    """How many sequences are left alone, those below them not counted."""
    return int(self._pruned.sum())

  def _run_loop(self, numbers: IterationNumbers) -> None:
    first, count = 0, len(numbers.parameters)
    while first < count:
      if self.iteration >= self._epoch_end:
        with DeferredInterrupt():
          self._next_epoch()
      last = min(count, first + self._epoch_end - self.iteration)
      rows = IterationNumbers(*(each[first:last] for each in numbers))
      if self._pruned.any():
        with DeferredInterrupt():
          small = self._small_loop()
          small.advance(self.alternating_updates, rows, self._iteration)
          self._take_back(small)
      else:
        super()._run_loop(rows)
      first = last

  # A window: what is left of the game, and a loop over it.

  def _window(self) -> Compacted:
    if self._compacted is None:
      self._compacted = compact(self._enumerated, self._leaf_rows, self._pruned)
    return self._compacted

  def _small_loop(self) -> FlatLoop:
    if self._small is None:
      compacted = self._window()
      whole, there = compacted.sequences, compacted.places
      scale = np.zeros(len(compacted.infosets) + MOST_LANES, np.uint16)
      scale[: len(compacted.infosets)] = self.compiled_game.scale[compacted.infosets]
      self._small = FlatLoop.blank(compacted.game, self.minimizer, scale)
      for mine, theirs in self._remembered(self._small):
        copy_some(mine, theirs, whole, there)
      infosets = compacted.infosets
      into = np.arange(len(infosets), dtype=np.uint32)
      copy_some(self._local[0], self._small.local[0], infosets, into)
      self._small.refresh()
      played = slice(compacted.num_played)
      self._played = whole[played], there[played], into
    return self._small

  def _take_back(self, small: FlatLoop) -> None:
    """Copies what is remembered of the sequences that are left back from the small loop."""
    whole, there, into = self._played
    for mine, theirs in self._remembered(small):
      copy_some(theirs, mine, there, whole)
    copy_some(small.local[0], self._local[0], into, self._window().infosets)

  def _remembered(self, small: Loop) -> list[tuple[Float64s, Float64s]]:
    """Returns pairs of arrays over the sequences, of the whole game and of what is left."""
    return [
      (self._strategy, small.strategy),
      (self._cumulative, small.cumulative),
      (self._state[0], small.state[0]),
    ]

  @property
  def _enumerated(self) -> EnumeratedGame:
    assert isinstance(self.compiled_game, EnumeratedGame)
    return self.compiled_game

  @functools.cached_property
  def _leaf_rows(self) -> LeafRows:
    return all_leaves(self._enumerated)

  @functools.cached_property
  def _gains(self) -> SortedRows:
    """The same, losses counting as nothing."""
    return sorted_rows(self._leaf_rows, self._leaf_rows.arrays.values > 0)

  @functools.cached_property
  def _payoff(self) -> Payoff:
    """What is fastest for gradients of the whole game."""
    payoff = self._enumerated.payoff
    if isinstance(payoff, LeafRows):
      return sorted_rows(payoff, payoff.arrays.values != 0)
    return payoff

  @functools.cached_property
  def _tree(self) -> Tree:
    return Tree(self.compiled_game.groups, self.compiled_game.parent)

  def current_sequence_form(self) -> Float64s:
    """Returns a copy of the current policy in sequence form, shape (sequences,)."""
    return forms.sequence_form(self.compiled_game, self._strategy)

  # Averages of what was left alone.

  def _sums(self) -> AnyFloats:
    if not self._pruned.any() or not self._cumulative[0]:
      return super()._sums()
    sums = self._cumulative.copy()
    self._add_deferred(sums)
    return sums

  def _add_deferred(self, sums: Float64s) -> None:
    """Brings averages up to date where nobody looked."""
    kept = self._window().kept.view(np.uint8)
    add_deferred(self._tree, kept, self._strategy, self._opened, sums)

  # Between windows.

  def _next_epoch(self) -> None:
    """Rewrites what was left alone, and decides what to leave alone next."""
    before = self._pruned.copy()
    weight, fading = self._weight(self.iteration), self._weight(self._epoch_start)
    regrets, values = self._state[0], self._local[0]
    if before.any():
      self._add_deferred(self._cumulative)
      # The ledger, where nobody looked.
      fade(self._window().kept.view(np.uint8), regrets, fading / weight)
    best = self._carried(self._payoff, self._cumulative)
    length = min(max(self.iteration // _PART, self.pruning.shortest), self.pruning.longest)
    coming = float(self._average_weights(self.iteration + np.arange(1, length + 1)).sum())
    growth, opened = self._growth(coming)
    ties = tie_tolerances(self.compiled_game)
    known = np.zeros(self.compiled_game.end, np.uint8)
    known[[tree.root for tree in self.compiled_game.treeplexes]] = 1
    choose(
      self._tree,
      self._strategy,
      regrets,
      values,
      best,
      self._pruned.view(np.uint8),
      known,
      growth,
      opened,
      ties,
      weight,
    )
    self._forget_window()
    if self._pruned.any() and self._window().share > _WORTHWHILE:
      self._pruned[:] = False
      self._forget_window()
    restored = before & ~self._pruned
    if restored.any():
      flags, below = restored.view(np.uint8), restored.copy().view(np.uint8)
      restore(self._tree, self._strategy, regrets, values, best, flags, below, ties, weight)
    self._opened[:] = self._cumulative
    self._opened_values[:] = values
    if not self._pruned.any():
      length *= _IDLE
    self._epoch_start, self._epoch_end = self.iteration, self.iteration + length
    self._loop.refresh()

  def _weight(self, iteration: int) -> float:
    return float(self._average_weights(np.array([max(1, iteration)]))[0])

  def _growth(self, coming: float) -> tuple[Float64s, Float64s]:
    """Returns by how much regrets may grow in iterations of this weight: what is added, and what is taken away.

    The former is of shape (sequences,), the latter of shape (infosets,), or longer.
    """
    passed = float(self._cumulative[0] - self._opened[0])
    if self.pruning.certain:
      return coming * self._most, np.zeros_like(self._opened_values)
    if not passed or self.pruning.margin > MOST_MARGIN:
      return np.full(self.compiled_game.end, math.inf), np.zeros_like(self._opened_values)
    factor, share = (
      self.pruning.margin * coming / passed,
      self._caution * coming / self._cumulative[0],
    )
    # What was faced in the last epoch, and what has ever been faced.
    faced = aligned((factor + share) * self._cumulative)
    faced -= factor * self._opened
    return self._carried(self._gains, faced), factor * (self._local[0] - self._opened_values)

  @functools.cached_property
  def _most(self) -> Float64s:
    """How much a regret can grow in an iteration, whatever anybody plays, shape (sequences,)."""
    game = self.compiled_game
    result = aligned_zeros(game.end)
    for tree in game.treeplexes:
      own = game.loss_bounds[tree.first_infoset : tree.first_infoset + tree.num_infosets]
      for sequences, infosets in tree.blocks():
        result[sequences] = 2.0 * own[infosets]
    return result

  def _carried(self, payoff: Payoff, faced: Float64s) -> Float64s:
    """Returns what each sequence is worth with a best response to what was faced, shape (sequences,)."""
    result = aligned_zeros(self.compiled_game.end)
    for player in range(2):
      payoff.gradient_into(player, faced, result)
    carry_up(self.compiled_game, take_best, result)
    return result
