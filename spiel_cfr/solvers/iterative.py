"""What every solver is to a run: it iterates, can be measured, can be kept in a file and go on from there."""

import abc
from typing import TYPE_CHECKING

from spiel_cfr import evaluate

if TYPE_CHECKING:
  from spiel_cfr.game.compiled import CompiledGame


class IterativeSolver(abc.ABC):
  """Base class of all solvers.

  Attributes:
    compiled_game: the game as arrays.
    iteration: how many iterations have been done.
  """

  compiled_game: "CompiledGame"
  iteration: int

  @abc.abstractmethod
  def run(self, iterations: int) -> None:
    """Does many iterations; Ctrl-C raises KeyboardInterrupt after a whole number of them.

    Raises:
      ArgumentError: `iterations` is not a positive integer.
    """

  @abc.abstractmethod
  def nash_conv(self) -> float:
    """Returns the NashConv of the average policy."""

  @property
  @abc.abstractmethod
  def nodes_touched(self) -> int:
    """How many states a recursive implementation would have visited so far."""

  def prepare(self) -> None:  # noqa: B027
    """Compiles kernels or takes them from disk, so that the first iteration is not slower than others."""

  def exploitability(self) -> float:
    """Returns the exploitability of the average policy: NashConv / 2.

    Raises:
      UnsupportedGameError: the game is not a constant-sum game of two players.
    """
    evaluate.check_two_player_constant_sum(self.compiled_game)
    return self.nash_conv() / 2
