"""The decorator `typed` refuses arguments of a wrong type, and its message says which types are accepted."""

import inspect
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyspiel
import pytest

import spiel_cfr
from spiel_cfr import errors
from spiel_cfr._util.typed_arguments import typed


@typed
def _door(
  game: spiel_cfr.CompiledGame | None = None,
  flag: bool = False,
  number: int = 1,
  name: Literal["one", "other"] = "one",
  function: Callable[..., Any] | None = None,
  several: Sequence[int] = (),
  each: Iterable[Any] = (),
  table: Mapping[str, int] | str = "",
  anything: Any = None,
  path: str | os.PathLike[str] = "",
  numbers: npt.NDArray[np.float64] | None = None,
  state: Any = None,
) -> str:
  """Returns a name."""
  return name


_STATE = pyspiel.load_game("kuhn_poker").new_initial_state()


@pytest.mark.parametrize(
  "arguments",
  [
    {"state": _STATE},
    {"game": None, "state": _STATE, "number": 10**400, "anything": np.ones(3)},
    {"flag": np.True_, "several": np.arange(3), "each": iter([1]), "table": {}},
    {"path": 3, "numbers": [0.5], "state": _STATE},
    {"flag": 1, "several": (1, 2), "table": "all", "function": len, "name": "neither"},
  ],
  ids=["state", "any", "flag", "path", "table"],
)
def test_what_may_be_passes(arguments):
  assert _door(**arguments) == arguments.get("name", "one")


@pytest.mark.parametrize(
  ("name", "value", "wanted"),
  [
    ("game", "kuhn_poker", "of type CompiledGame or None"),
    ("flag", np.ones(2), "True or False"),
    ("flag", np.ones(1), "True or False"),
    ("flag", "no", "True or False"),
    ("flag", None, "True or False"),
    ("flag", 2, "True or False"),
    ("number", np.ones(2), "a number"),
    ("name", np.ones(2), "one of 'one', 'other'"),
    ("name", 3, "one of 'one', 'other'"),
    ("function", 3, "a function or None"),
    ("several", 3, "a sequence"),
    ("each", np.array(3), "a sequence"),
    ("table", [], "a mapping or a string"),
    ("numbers", 3.0, "an array or None"),
    ("state", None, "a state of the game"),
  ],
)
def test_what_may_not_be_is_named(name, value, wanted):
  message = re.escape(f"{name} must be {wanted}, not {value!r}.")
  with pytest.raises(errors.ArgumentError, match=message):
    _door(**{name: value})


def test_arguments_by_position():
  with pytest.raises(errors.ArgumentError, match="flag must be"):
    _door(None, np.ones(2))


def test_it_is_the_same_function_to_look_at():
  assert _door.__name__ == "_door"
  assert _door.__doc__ == "Returns a name."
  assert list(inspect.signature(_door).parameters)[:2] == ["game", "flag"]


def test_what_python_says_of_missing_arguments_stays():
  @typed
  def needs(number: int) -> int:
    return number

  with pytest.raises(TypeError, match="missing 1 required"):
    needs()  # type: ignore[call-arg]
