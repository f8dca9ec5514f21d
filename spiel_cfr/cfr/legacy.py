"""Temporary: solvers whose state is not one value yet."""

import copy
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import require
from spiel_cfr.cfr.exclusive import RUNNING
from spiel_cfr.cfr.solver import MOST_ITERATIONS, Solver
from spiel_cfr.cfr.solver_state import check_kind

_STATE = "state"


class LegacySolver(Solver):
  """Temporary."""

  state_names: ClassVar[tuple[str, ...]] = ("iteration",)
  _workspaces: ClassVar[tuple[str, ...]] = ()

  @property
  def state(self) -> Any:
    """Temporary."""
    return self

  def reset(self) -> None:
    self._start()

  def _start(self) -> None: ...

  def restarted(self) -> Self:
    """Returns the same solver before its first iteration; this one is left alone."""
    result = type(self).__new__(type(self))
    result.__dict__.update(self.__dict__)
    result.__dict__.pop(RUNNING, None)
    result.__dict__.pop("_policies", None)
    result._start()
    return result

  def __copy__(self) -> Self:
    """Returns a solver that goes on by itself from where this one is; they share the compiled game."""
    result = self.restarted()
    result.load_state_dict(self.state_dict())
    return result

  def __deepcopy__(self, memo: Any) -> Self:
    """Returns the same as `copy.copy`: what two solvers share never changes."""
    return self.__copy__()

  def __getstate__(self) -> dict[str, Any]:
    """Returns what is pickled: the attributes that never change, and a copy of the others."""
    left_out = {*self._state_names(), *self._workspaces, "_policies", "_loads", RUNNING}
    constants = {name: value for name, value in self.__dict__.items() if name not in left_out}
    return constants | {_STATE: self.state_dict()}

  def __setstate__(self, attributes: dict[str, Any]) -> None:
    """Takes over what `__getstate__` has returned."""
    attributes = dict(attributes)
    state = attributes.pop(_STATE, None)
    self.__dict__.update(attributes)
    if state is None:
      return
    self._start()
    self.load_state_dict(state)

  def _state_names(self) -> tuple[str, ...]:
    """Returns `state_names`, and those that only solvers with some arguments have."""
    return self.state_names

  def state_dict(self) -> dict[str, Any]:
    """Returns a copy of all that changes from one iteration to the next, by name."""
    return {
      name: value.bit_generator.state
      if isinstance(value := getattr(self, name), np.random.Generator)
      else copy.copy(value)
      for name in self._state_names()
    }

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Takes over what `state_dict` of a solver made with the same arguments has returned.

    Raises:
      CheckpointMismatchError: it is of another solver, or of none. This one is then as it was.
    """
    self._check_fits(state)
    self._take_over(state)

  def _take_over(self, state: Mapping[str, Any]) -> None:
    """Does what `load_state_dict` does with a state that needs no checks."""
    for name in self._state_names():
      value = getattr(self, name)
      if isinstance(value, np.ndarray):
        # In place, because the array is aligned.
        np.copyto(value, state[name])
      elif isinstance(value, np.random.Generator):
        value.bit_generator.state = state[name]
      else:
        setattr(self, name, state[name])
    self._loads += 1
    self._loaded()

  def _check_fits(self, state: Mapping[str, Any]) -> None:
    """Raises CheckpointMismatchError unless `load_state_dict` can take it over."""
    if set(state) != set(self._state_names()):
      raise errors.CheckpointMismatchError(
        f"{type(self).__name__} consists of {sorted(self._state_names())}, not of {sorted(state)}."
      )
    for name in self._state_names():
      check_kind(f"{name} of {type(self).__name__}", getattr(self, name), state[name])
    try:
      self._check_state(state)
    except ValueError as error:
      raise errors.CheckpointMismatchError(
        f"That is no state of {type(self).__name__}: {error}."
      ) from None

  def _check_state(self, state: Mapping[str, Any]) -> None:
    """Raises ValueError where values of the right names, types and shapes are none that iterations lead to."""
    for name, value in state.items():
      is_number = isinstance(value, float | np.ndarray)
      require(not is_number or not np.isnan(value).any(), f"{name} has no NaN")
    require(0 <= state.get("iteration", 0) <= MOST_ITERATIONS, "the iteration is possible")

  def _loaded(self) -> None:
    """Brings everything else up to date after the attributes of `state_names` have been written to."""
