"""Compiled code: how a Python function becomes machine code here, and the arrays it works on.

Kernels are compiled by numba the first time they are used, not at import, and kept on disk beside their source, so
that only the very first start of the library on a machine compiles anything. Each has an explicit signature. That
makes it a first-class function: a loop takes the kernels it calls as arguments, through a pointer, and is itself
compiled once, whatever it is given. Called on blocks of hundreds of infosets, the pointer costs about a nanosecond.
"""

import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numba
from numba import extending, types

# Infosets that a block kernel is given at a time: enough to hide the call, few enough for the level-1 cache.
CHUNK = 256
# Infosets with a regret of this much of the payoff range, or less, are tied: see `minimizers.regret_matching`.
TIE = 1e-12

_OPTIONS: dict[str, Any] = {"error_model": "numpy", "nogil": True}
_ANNOUNCE_AFTER_SECONDS = 0.7
_announced = threading.Event()


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
  """Marks a helper that only other kernels of the same file call."""
  compiled: Callable[..., Any] = numba.njit(forceinline=True, **_OPTIONS)(function)
  return compiled


class Kernel(types.WrapperAddressProtocol):
  """A function that is compiled for one signature when it is first used.

  It can be called, and passed to other compiled functions: numba's wrapper address protocol makes it a first-class
  function, faster than numba does with functions that it has compiled.

  Attributes:
    function: the plain Python function; it runs uncompiled too, slowly, unless it uses `spiel_cfr.kernels.simd`.
    numba_type: its type in numba.
  """

  def __init__(self, function: Callable[..., Any], signature: Any) -> None:
    """Wraps `function`; nothing is compiled yet."""
    functools.update_wrapper(self, function)
    self.function = function
    self._signature = signature
    self.numba_type = types.FunctionType(signature)

  @functools.cached_property
  def compiled(self) -> Any:
    """The machine code, from disk if this version of the source was compiled before."""
    with _announce_slow_compilation():
      return numba.njit(self._signature, cache=True, **_OPTIONS)(self.function)

  def __call__(self, *arguments: Any) -> Any:
    """Calls the compiled function."""
    return self.compiled(*arguments)

  @functools.cached_property
  def _address(self) -> int:
    address: int = types.CompileResultWAP(
      self.compiled.get_compile_result(self._signature)
    ).__wrapper_address__()
    return address

  def __wrapper_address__(self) -> int:
    """Returns where the machine code is; numba asks for it."""
    return self._address

  def signature(self) -> Any:
    """Returns the numba signature."""
    return self._signature


@extending.typeof_impl.register(Kernel)
def _type_of_kernel(value: Kernel, context: Any) -> Any:
  """Spares numba making the type anew at every call."""
  return value.numba_type


def kernel(signature: Any) -> Callable[[Callable[..., Any]], Kernel]:
  """Decorator that makes a function a `Kernel` with this numba signature."""
  return lambda function: Kernel(function, signature)


@contextlib.contextmanager
def _announce_slow_compilation() -> Iterator[None]:
  """Says on standard error, once a process, what takes so long."""

  def announce() -> None:
    if not _announced.is_set():
      _announced.set()
      print("spiel_cfr: compiling kernels; later starts take them from disk", file=sys.stderr)

  timer = threading.Timer(_ANNOUNCE_AFTER_SECONDS, announce)
  timer.daemon = True
  timer.start()
  try:
    yield
  finally:
    timer.cancel()
