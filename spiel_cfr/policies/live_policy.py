"""Policies that move with their solver, as those do that OpenSpiel's solvers hand out."""

from collections.abc import Callable, Hashable

import numpy as np
import numpy.typing as npt

from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.policies.open_spiel import CompiledTabularPolicy


class LivePolicy(CompiledTabularPolicy):
  """A tabular policy that looks its probabilities up in a solver whenever that has moved on.

  Iterations cost nothing more for it: it is brought up to date when somebody asks for `action_probability_array`, as
  every method does. What is written into that array is lost with the next iteration, and never reaches the solver.
  Copies, pickles too, are plain `CompiledTabularPolicy`s that stay as they are.
  """

  def __init__(
    self,
    compiled: CompiledGame,
    probabilities: Callable[[], Float64s],
    version: Callable[[], Hashable] | None,
  ) -> None:
    """Makes the policy of what `probabilities` returns, behavioural form of shape (sequences,).

    `version` returns something else whenever that may; it is None if only `refresh` is to look.

    Raises:
      PolicyError: two players share an information state string.
    """
    self._probabilities, self._find_version = probabilities, version
    self._version = None if version is None else version()
    super().__init__(compiled, probabilities())

  def refresh(self) -> None:
    """Brings the probabilities up to date, in place."""
    version = None if self._find_version is None else self._find_version()
    self._fill(self._array, self._probabilities())
    # Not before the array is full: whoever asks again after an error, or in another thread, would take it for new.
    self._version = version

  @property
  def action_probability_array(self) -> npt.NDArray[np.float64]:
    """The probabilities, shape (infosets, actions): the same array every time."""
    if self._find_version is not None and self._version != self._find_version():
      self.refresh()
    return self._array

  @action_probability_array.setter
  def action_probability_array(self, array: npt.NDArray[np.float64]) -> None:
    self._array = array

  def __copy__(self, copy_action_probability_array: bool = True) -> CompiledTabularPolicy:
    """Returns a copy that stays as it is; it shares all but the probabilities, which may be left out."""
    result = super().__copy__(copy_action_probability_array)
    for name in ("_probabilities", "_find_version", "_version", "_array"):
      del result.__dict__[name]
    return result
