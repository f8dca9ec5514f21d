"""Compiled code: how a Python function becomes machine code here, and the arrays it works on.

Kernels are compiled by numba the first time they are used, not at import, and kept on disk, see `cache`, so that only
the very first start of the library on a machine compiles anything. Each has an explicit signature. That
makes it a first-class function: a loop takes the kernels it calls as arguments, through a pointer, and is itself
compiled once, whatever it is given. Called on blocks of hundreds of infosets, the pointer costs about a nanosecond.
"""

import contextlib
import functools
import operator
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any, Self, cast

import numba
import numba.extending
import numpy as np
import numpy.typing as npt
from numba import types
from numba._dispatcher import compute_fingerprint
from numba.core import errors
from numba.core.compiler_lock import global_compiler_lock
from numba.experimental import function_type
from numba.np.numpy_support import as_dtype

from spiel_cfr._numba.cache import MachineCode, machine_code

# numba's own annotations don't cover these.
extending: Any = numba.extending
cgutils: Any = numba.core.cgutils
typeof: Any = numba.typeof
tuples: Any = types.BaseTuple

_OPTIONS: dict[str, Any] = {"error_model": "numpy", "nogil": True}
_ANNOUNCE_AFTER_SECONDS = 0.7
_announced = threading.Event()
# Numba's own: how a first-class function lies in memory. A numba without it passes functions in its own way,
# which is slower to call from Python.
_FUNCTION_MODEL: Any = getattr(function_type, "FunctionModel", None)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
  """Marks a helper that only kernels call, of whatever file; its code becomes a part of theirs."""
  compiled: Callable[..., Any] = numba.njit(forceinline=True, **_OPTIONS)(function)
  return compiled


class _KernelType(types.FunctionType):
  """The type of a kernel: a first-class function of numba's, of which nothing but the address is read from Python."""


def _unbox_kernel(kernel_type: Any, value: Any, c: Any) -> Any:
  """Generates code that reads the address of a `Kernel`."""
  function = cgutils.create_struct_proxy(kernel_type)(c.context, c.builder)
  number = c.pyapi.object_getattr_string(value, "address")
  failed = cgutils.is_null(c.builder, number)
  with c.builder.if_then(c.builder.not_(failed), likely=True):
    function.c_addr = c.pyapi.long_as_voidptr(number)
    c.pyapi.decref(number)
  return extending.NativeValue(function._getvalue(), is_error=failed)


if _FUNCTION_MODEL is not None:
  # In memory it is what numba's are, so that numba generates the calls.
  extending.register_model(_KernelType)(_FUNCTION_MODEL)
  extending.unbox(_KernelType)(_unbox_kernel)


class Kernel(types.WrapperAddressProtocol):
  """A function that is compiled for one signature when it is first used.

  It can be called, and passed to other compiled functions, as an argument or in a `NamedTuple`: numba's wrapper address
  protocol makes it a first-class function, faster than numba does with functions that it has compiled. A call from
  Python takes some microseconds; tens, if there are kernels in a tuple or tuples without names.

  Attributes:
    function: the plain Python function; it runs uncompiled too, slowly, unless it uses `spiel_cfr._numba.simd`.
    numba_type: its type in numba.
  """

  __qualname__: str

  def __init__(self, function: Callable[..., Any], signature: Any) -> None:
    """Wraps `function`; nothing is compiled yet.

    Args:
      function: plain Python function.
      signature: numba's; or, of a kernel that there is in two precisions, a function from the type of numbers to it.
    """
    functools.update_wrapper(self, function)
    self.function = function
    self._signature_for = signature if isinstance(signature, FunctionType) else None
    if self._signature_for:
      signature = self._signature_for(types.float64)
    self.numba_type: Any = _with_kernels(types.FunctionType(signature))
    self._signature = self.numba_type.signature
    # What was found to fit. numba's hash of types has no word for kernels, and none for the order of bytes.
    expected = self._signature.args
    is_kernel = [isinstance(one, types.FunctionType) for one in expected]
    self._kernels = _selector([i for i, found in enumerate(is_kernel) if found])
    self._others = _selector([i for i, found in enumerate(is_kernel) if not found])
    self._dtypes = [
      (i, operator.attrgetter(*names), _dtypes(one) if len(names) > 1 else _dtypes(one)[0])
      for i, one in enumerate(expected)
      if (names := list(_dtype_names(one)))
    ]
    self._accepted: set[Any] = set()

  @functools.cached_property
  def compiled(self) -> MachineCode:
    """The machine code, from disk if nothing that it was made of has changed."""
    with global_compiler_lock, _announce_slow_compilation():
      return machine_code(self.function, self._signature, _OPTIONS)

  def __call__(self, *arguments: Any) -> Any:
    """Calls the compiled function.

    Raises:
      TypeError: an argument has another type, number of dimensions or layout than the signature says, or is an array
        that can't be written.
    """
    try:
      known = compute_fingerprint(self._others(arguments)), self._kernels(arguments)
      fits = known in self._accepted and len(arguments) == len(self._signature.args)
    except (IndexError, NotImplementedError, TypeError):
      known, fits = None, False
    if fits:
      for i, dtypes, expected in self._dtypes:
        if dtypes(arguments[i]) != expected:
          fits = False
    if not fits:
      self._check(arguments)
      if known is not None:
        self._accepted.add(known)
    return self._entry(*arguments)

  def _check(self, arguments: Sequence[Any]) -> None:
    """Checks the types of arguments, which compiled code relies on."""
    expected = self._signature.args
    if len(arguments) != len(expected):
      raise TypeError(
        f"{self.__qualname__}() takes {len(expected)} arguments but {len(arguments)} were given"
      )
    self._check_first(arguments)

  def _check_first(self, arguments: Sequence[Any]) -> None:
    for i, (value, wanted) in enumerate(zip(arguments, self._signature.args, strict=False)):
      if not _fits(value, wanted):
        raise TypeError(
          f"argument {i} of {self.__qualname__}() must be {wanted}, not {_said(value)}"
        )

  def of(self, dtype: npt.DTypeLike) -> "Kernel":
    """Returns the same function for arrays of float64 or of float32.

    Raises:
      TypeError: there is none for float32.
    """
    return self if dtype == np.float64 else self._single

  @functools.cached_property
  def _single(self) -> "Kernel":
    """The same function for float32."""
    if self._signature_for is None:
      raise TypeError(f"{self.__qualname__}() computes in float64 only")
    return Kernel(self.function, self._signature_for(types.float32))

  def bound(self, *first: Any) -> Callable[..., Any]:
    """Returns the function of the other arguments: these are checked now, and those, which callers make, never.

    Raises:
      TypeError: as when it is called.
    """
    self._check_first(first)
    return functools.partial(self._entry, *first)

  @property
  def unchecked(self) -> Callable[..., Any]:
    """The machine code, which believes what it is given: for callers that have made all arguments themselves."""
    return self._entry

  @functools.cached_property
  def _entry(self) -> Callable[..., Any]:
    return self.compiled.entry

  @functools.cached_property
  def address(self) -> int:
    """Where the machine code is."""
    return self.compiled.address

  def __wrapper_address__(self) -> int:
    """Returns where the machine code is; numba asks for it."""
    return self.address

  def signature(self) -> Any:
    """Returns the numba signature."""
    return self._signature

  def __copy__(self) -> Self:
    return self

  def __deepcopy__(self, memo: Any) -> Self:
    return self

  def __reduce__(self) -> str:
    # Pickled, like a function, as the name under which its module has it.
    return self.__qualname__


# Spares numba making the type anew at every call.
extending.typeof_impl.register(Kernel)(lambda value, context: value.numba_type)


def kernel(signature: Any) -> Callable[[Callable[..., Any]], Kernel]:
  """Decorator that makes a function a `Kernel` with this numba signature, or one in two precisions."""
  return lambda function: Kernel(function, signature)


@contextlib.contextmanager
def _announce_slow_compilation() -> Iterator[None]:
  """Says on standard error, once per process, what takes so long."""

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


def _with_kernels(numba_type: Any) -> Any:
  """Returns a type in which every first-class function, in a tuple or as an argument too, is a `_KernelType`."""
  if _FUNCTION_MODEL is None:
    return numba_type
  if isinstance(numba_type, types.FunctionType):
    signature = numba_type.signature
    arguments = [_with_kernels(argument) for argument in signature.args]
    return _KernelType(_with_kernels(signature.return_type)(*arguments))
  if isinstance(numba_type, tuples):
    items = [_with_kernels(item) for item in numba_type.types]
    return tuples.from_types(items, getattr(numba_type, "instance_class", None))
  return numba_type


def _selector(places: Sequence[int]) -> Callable[[Sequence[Any]], Any]:
  """Returns a function that returns the items at these places: a tuple, or the item if it is one place."""
  return operator.itemgetter(*places) if places else lambda arguments: ()


def _dtype_names(numba_type: Any) -> Iterator[str]:
  """Yields how to get at the dtypes of the arrays in an argument, such as "field.dtype"."""
  if isinstance(numba_type, types.Array):
    yield "dtype"
  elif isinstance(numba_type, types.BaseNamedTuple):
    for field, item in zip(cast(Any, numba_type).fields, cast(Any, numba_type), strict=True):
      yield from (f"{field}.{name}" for name in _dtype_names(item))


def _dtypes(numba_type: Any) -> tuple[Any, ...]:
  """Returns the dtypes that these should be."""
  if isinstance(numba_type, types.Array):
    return (as_dtype(numba_type.dtype),)
  if isinstance(numba_type, types.BaseNamedTuple):
    return tuple(dtype for item in cast(Any, numba_type) for dtype in _dtypes(item))
  return ()


def _fits(value: Any, wanted: Any) -> bool:
  """Returns whether compiled code can be given a value where its signature has this type."""
  if isinstance(wanted, tuples):
    fields = getattr(getattr(wanted, "instance_class", None), "_fields", None)
    return (
      isinstance(value, tuple)
      and getattr(value, "_fields", None) == fields
      and len(value) == len(wanted.types)
      and all(map(_fits, value, wanted.types))
    )
  if isinstance(wanted, types.Integer):
    return isinstance(value, bool | int | np.bool_ | np.integer)
  if isinstance(wanted, types.Float | types.Boolean):
    return isinstance(value, bool | int | float | np.bool_ | np.integer | np.floating)
  try:
    actual = typeof(value)
  except (ValueError, errors.NumbaError):
    return False
  if isinstance(wanted, types.Array) and isinstance(actual, types.Array):
    return actual == wanted or cast(Any, actual).can_convert_to(None, wanted) is not None
  return bool(actual == wanted)


def _said(value: Any) -> str:
  """Returns how an error message calls the type of a value."""
  try:
    return str(typeof(value))
  except (ValueError, errors.NumbaError):
    return type(value).__qualname__
