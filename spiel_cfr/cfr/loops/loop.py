"""What a loop is: the state of a full-width solver, and iterations on it; `whole_game` has the plain one."""

import abc
import dataclasses
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import AnyFloats, Float64s, Int64s, Uint64s
from spiel_cfr.cfr.averaging import ADDITION
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.sequence_form.tree_passes import Memory
from spiel_cfr.policies import forms
from spiel_cfr.policies.locked import Mask
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer


@dataclasses.dataclass
class FullWidthState:
  """All that changes from one iteration to the next.

  Attributes:
    strategy: probability of each sequence's action at its infoset, shape (sequences,).
    cumulative: weighted sum of sequence forms, shape (sequences,).
    tapered: weighted sum of `cumulative` after some iterations, shape (sequences,), or (0,) if nobody wants it.
    action_state: what the minimizer keeps for each action, such as regrets, shape (lines, sequences), in an order of
      the loop's own.
    infoset_state: what it keeps for each infoset, shape (lines, infosets), likewise.
    gradients: weighted sum of the players' gradients, shape (sequences,), or (0,) if nobody wants it.
    play_values: weighted sum of what the players expected, shape (players,), or (0,) likewise.
    locked: 1 at infosets where the strategy stays, shape (infosets,).
    counts: how many iterations have been done, and after which `cumulative` was last added to `tapered`; shape (2,).
    average_start: the iteration after which the average began.
    warm_iterations: for how many iterations the policy counts from which the solver has started; 0 if it has not.
  """

  strategy: AnyFloats
  cumulative: AnyFloats
  tapered: AnyFloats
  action_state: AnyFloats
  infoset_state: Float64s
  gradients: Float64s
  play_values: Float64s
  locked: Mask
  counts: Uint64s = dataclasses.field(default_factory=lambda: np.zeros(2, np.uint64))
  average_start: int = 0
  warm_iterations: int = 0

  @property
  def memory(self) -> Memory:
    """The arrays that passes over the tree take."""
    return Memory(self.strategy, self.cumulative, self.action_state, self.infoset_state)

  def sums(self) -> AnyFloats:
    """Returns what the average is a multiple of, once there have been iterations; shape (sequences,)."""
    if not len(self.tapered):
      return self.cumulative
    passed = int(self.counts[0] - self.counts[1])
    if not passed:
      return self.tapered
    result: AnyFloats = ADDITION * passed * self.cumulative
    result += self.tapered
    return result

  def add_to_tapered(self) -> None:
    """Brings the tapered sums up to date, sooner than they would be."""
    self.tapered[:] = self.sums() if len(self.tapered) else 0.0
    self.counts[1] = self.counts[0]

  def begin_average(self) -> None:
    """Begins the average anew after this iteration."""
    self.average_start = int(self.counts[0])
    self.counts[1] = self.counts[0]
    for sums in (self.cumulative, self.tapered, self.gradients, self.play_values):
      sums[:] = 0.0

  def begin_warm(self, iterations: int, sums: Float64s | None) -> None:
    """Counts so many iterations as done, of which the average has these sums, or none."""
    self.counts[:] = self.warm_iterations = iterations
    if sums is None:
      self.average_start = iterations
      return
    self.cumulative[:] = sums
    if len(self.tapered):
      self.tapered[:] = ADDITION * iterations * self.cumulative

  def count_as(self, iteration: int) -> None:
    """Counts the iterations done as others, later ones; the average stays as long as it is."""
    more = iteration - int(self.counts[0])
    self.counts += np.uint64(more)
    self.average_start += more


class IterationNumbers(NamedTuple):
  """What depends on the iteration, a row each.

  Attributes:
    parameters: the minimizer's, shape (iterations, numbers).
    weights_before: what the strategy before its owner's update weighs in the average, shape (iterations, players).
    weights_after: likewise, the strategy after it.
    additions: what `cumulative` is multiplied by when it is added to `tapered` after the iteration, shape
      (iterations,); 0 if it is not.
  """

  parameters: Float64s
  weights_before: Float64s
  weights_after: Float64s
  additions: Float64s


class Loop(abc.ABC):
  """Iterations on the state of one solver.

  Whoever looks at the state's arrays calls `gather` first; whoever writes to them calls `refresh`.

  Attributes:
    state: all that it remembers.
  """

  state: FullWidthState

  def __init__(self, game: CompiledGame, minimizer: RegretMinimizer) -> None:
    self._game, self._minimizer = game, minimizer

  @abc.abstractmethod
  def advance(self, alternating: bool, numbers: IterationNumbers) -> None:
    """Runs as many iterations as there are rows of numbers, and counts them in the state.

    With alternating updates a player sees the new strategies of those before it; otherwise all see the last ones.
    """

  def lock(self, sequences: Int64s) -> None:
    """From now on keeps the probabilities at these sequences what they are, whatever the minimizer chooses."""
    self._locked, self._kept = sequences.astype(np.uint32), self.state.strategy[sequences]

  def _restore_locked(self) -> None:
    """Overwrites what has been chosen at locked sequences."""
    self.state.strategy[self._locked] = self._kept

  @abc.abstractmethod
  def init_from_strategy(self, sequence_form: Float64s, parameters: Float64s) -> None:
    """Goes on from other strategies: they become the current ones, and the minimizer's state is made to fit them.

    Args:
      sequence_form: the strategies, shape (sequences,). Where their owner does not play to, the current ones stay.
      parameters: the minimizer's, of the last iteration.
    """

  @abc.abstractmethod
  def update(self, player: int, numbers: IterationNumbers) -> None:
    """Does what one player does in an iteration of these numbers; tapered averages are the caller's business."""

  def gather(self) -> None:  # noqa: B027
    """Brings all arrays up to date: `advance` may have left some of them elsewhere."""

  @abc.abstractmethod
  def refresh(self) -> None:
    """Brings everything else up to date after the arrays have been written to."""

  @abc.abstractmethod
  def action_blocks(self) -> Iterator[tuple[slice, AnyFloats]]:
    """Yields sequences, and what of `action_state` is theirs: a view of shape (lines, sequences)."""

  @abc.abstractmethod
  def infoset_blocks(self) -> Iterator[tuple[slice, Float64s]]:
    """Yields infosets, and what of `infoset_state` is theirs: a view of shape (lines, infosets)."""

  def set_action_state(self, values: Float64s) -> None:
    """Writes `action_state`, given in the game's order, shape (lines, sequences)."""
    for own, block in self.action_blocks():
      block[:] = values[:, own]

  def infoset_numbers(self) -> Float64s:
    """Returns a copy of `infoset_state` in the game's order, shape (lines, infosets)."""
    result = np.zeros((self._minimizer.infoset_lines, self._game.num_infosets))
    for own, block in self.infoset_blocks():
      result[:, own] = block
    return result

  def _begin(self) -> None:
    """Writes the first strategies, which are uniform, and what the minimizer begins with."""
    forms.uniform(self._game, self.state.strategy)
    initial = self._minimizer.initial_infoset_state(self._game)
    for own, block in self.infoset_blocks():
      block[:] = initial[:, own]
    self.refresh()

  @abc.abstractmethod
  def values(self) -> list[float]:
    """Returns what each player's empty sequence was worth in its last iteration."""

  def current_sequence_form(self) -> AnyFloats:
    """Returns the current policy in sequence form, a copy of shape (sequences,)."""
    return forms.sequence_form(self._game, self.state.strategy)

  def set_strategy(self, probabilities: Float64s) -> None:
    """Makes a behavioural form, shape (sequences,), the current policy, but for what is locked."""
    self.state.strategy[:] = probabilities
    self._restore_locked()
    self.refresh()
