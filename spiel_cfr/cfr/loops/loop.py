"""What a loop is: the arrays of a full-width solver, and iterations on them.

An iteration of one player:

1. The gradient of the player's expected utility: what each sequence is worth, given how the others play now.
2. A sweep from the leaves to the root. Each block of infosets observes its counterfactual utilities, and adds its
   values to the sequences above. Minimizers that predict need a second sweep of the same kind.
3. A sweep from the root to the leaves turns local strategies into sequence form, and adds to the average.

With alternating updates a player sees what those before it have just become; with simultaneous ones all gradients are
taken first.
"""

import abc
from typing import NamedTuple, Self

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import AnyFloats, Float64s, Int64s, Uint64s
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.policies import forms
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer


class IterationNumbers(NamedTuple):
  """What depends on the iteration, a row each.

  Attributes:
    parameters: the minimizer's, shape (iterations, numbers).
    weights_before: what the strategy before its owner's update weighs in the average, shape (iterations, players).
    weights_after: likewise, the strategy after it.
    additions: what `Loop.cumulative` is multiplied by when it is added to `Loop.tapered` after the iteration, shape
      (iterations,); 0 if it is not.
  """

  parameters: Float64s
  weights_before: Float64s
  weights_after: Float64s
  additions: Float64s


class Loop(abc.ABC):
  """The arrays of one solver. Those named here are all that it remembers; whoever writes to them calls `refresh`.

  Whoever looks at them, or calls anything but `advance` and `values`, takes what `gathered` returns.

  Attributes:
    strategy: probability of each sequence's action at its infoset, shape (sequences,).
    cumulative: weighted sum of sequence forms, shape (sequences,).
    tapered: weighted sum of `cumulative` after some iterations, shape (sequences,), or (0,) if nobody wants it.
    state: the minimizer's, shape (lines, sequences), in an order of the loop's own.
    local: the minimizer's, shape (lines, infosets), likewise.
    gradients: weighted sum of the players' gradients, shape (sequences,), or (0,) if nobody wants it.
    play_values: weighted sum of what the players expected, shape (players,), or (0,) likewise.
  """

  strategy: AnyFloats
  cumulative: AnyFloats
  tapered: AnyFloats
  state: AnyFloats
  local: Float64s
  gradients: Float64s
  play_values: Float64s

  def __init__(self, game: CompiledGame, minimizer: RegretMinimizer) -> None:
    """Takes what the iterations are about.

    Raises:
      ArgumentError: the minimizer does not say how much it keeps, or begins with something else.
    """
    self._game = game
    self._minimizer = minimizer
    for name in ("state_lines", "local_lines"):
      arguments.integer(getattr(minimizer, name), f"{name} of {type(minimizer).__name__}", 0, 1024)
    self._initial_local = np.asarray(minimizer.initial_local(game))
    shape = minimizer.local_lines, game.num_infosets
    if self._initial_local.shape != shape or self._initial_local.dtype.kind not in "fiu":
      raise errors.ArgumentError(
        f"initial_local of {type(minimizer).__name__} returns {self._initial_local.dtype} of shape "
        f"{self._initial_local.shape}; it must return numbers of shape (local_lines, infosets), {shape}."
      )

  @abc.abstractmethod
  def advance(self, alternating: bool, numbers: IterationNumbers, done: Uint64s) -> None:
    """Runs as many iterations as there are rows of numbers.

    Args:
      alternating: whether a player sees the new strategies of those before it.
      numbers: see `IterationNumbers`.
      done: shape (2,), the number of iterations done, and what it was at the last addition. They are counted where no
        interruption can come between an iteration and its number.
    """

  def hold(self, sequences: Int64s) -> None:
    """From now on keeps the probabilities at these sequences what they are, whatever the minimizer chooses."""
    self._held, self._kept = sequences.astype(np.uint32), self.strategy[sequences]

  def _restore_held(self) -> None:
    """Overwrites what has been chosen at held sequences."""
    self.strategy[self._held] = self._kept

  @abc.abstractmethod
  def resume(self, sequence_form: Float64s, parameters: Float64s) -> None:
    """Goes on from other strategies: they become the current ones, and the minimizer's state is made to fit them.

    Args:
      sequence_form: the strategies, shape (sequences,). Where their owner does not play to, the current ones stay.
      parameters: the minimizer's, of the last iteration.
    """

  @abc.abstractmethod
  def update(self, player: int, parameters: Float64s, before: Float64s, after: Float64s) -> None:
    """Does the part of an iteration in which one player evaluates the current policies and updates its own.

    Args:
      player: who.
      parameters: see `IterationNumbers`, a row of it.
      before: likewise.
      after: likewise.
    """

  def gathered(self) -> Self:
    """Returns this loop, with all arrays up to date: `advance` may have left some of them elsewhere."""
    return self

  @abc.abstractmethod
  def refresh(self) -> None:
    """Brings everything else up to date after the arrays have been written to."""

  @abc.abstractmethod
  def state_line(self, line: int) -> Float64s:
    """Returns a line of `state` in the game's order, a view or a copy; shape (sequences,)."""

  @abc.abstractmethod
  def set_state_line(self, line: int, values: Float64s) -> None:
    """Writes a line of `state`, given in the game's order."""

  @abc.abstractmethod
  def local_line(self, line: int) -> Float64s:
    """Returns a line of `local` in the game's order, a view or a copy; shape (infosets,)."""

  @abc.abstractmethod
  def set_local_line(self, line: int, values: Float64s) -> None:
    """Writes a line of `local`, given in the game's order."""

  @abc.abstractmethod
  def values(self) -> list[float]:
    """Returns what each player's empty sequence was worth in its last iteration."""

  def current_sequence_form(self) -> Float64s:
    """Returns the current policy in sequence form, a copy of shape (sequences,)."""
    return forms.sequence_form(self._game, self.strategy)

  def set_strategy(self, probabilities: Float64s) -> None:
    """Makes a behavioural form, shape (sequences,), the current policy, but for what is held."""
    self.strategy[:] = probabilities
    self._restore_held()
    self.refresh()
