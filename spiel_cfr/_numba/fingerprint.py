"""What machine code depends on, as one hash.

numba looks at the file of a function, to know whether what it kept is stale. Helpers of other files are inlined too, so
here everything is hashed that a function refers to, however far away: the bytecode of helpers, constants, the fields of
tuples, the files of intrinsics. Where a function stands, and what its module is called, makes no difference.

Something unknown is no error but an `UnknownDependencyError`: a function that uses it can be compiled, but not kept.
"""

import dis
import hashlib
import linecache
import sys
from collections.abc import Callable, Iterable
from types import CodeType, FunctionType, ModuleType
from typing import Any, cast

import llvmlite
import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import config
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic

# Packages that change with their version only, and Python's own modules.
_VERSIONS = (
  ("python", sys.version),
  ("numba", numba.__version__),
  ("llvmlite", llvmlite.__version__),
  ("numpy", np.__version__),
)
_VERSIONED = frozenset({"numba", "llvmlite", "numpy"}) | sys.stdlib_module_names
# numba's settings that change what it generates. Processors are the business of the cache.
_SETTINGS = (
  "BOUNDSCHECK",
  "DEBUGINFO_DEFAULT",
  "ERROR_MODEL",
  "LOOP_VECTORIZE",
  "OPT",
  "SLP_VECTORIZE",
  "USING_SVML",
)
_CONSTANTS = (type(None), type(...), bool, int, float, complex, str, bytes)


class UnknownDependencyError(Exception):
  """A function refers to something of which it can't be said when it changes."""


def fingerprint(function: Callable[..., Any], signature: Any, options: dict[str, Any]) -> str:
  """Returns a hash that differs if the machine code might, whatever the processor.

  Args:
    function: plain Python function.
    signature: numba signature that it is compiled for.
    options: of `numba.njit`.

  Raises:
    UnknownDependencyError: the function uses something that has no reliable hash, such as a function that numba
      replaces by another (`numba.extending.overload`), or an object of a class that is unknown here.
  """
  walk = _Walk()
  walk.add(_VERSIONS)
  walk.add(tuple(str(getattr(config, name, None)) for name in _SETTINGS))
  walk.add(tuple(sorted(options.items())))
  walk.add_type(signature.return_type)
  for argument in signature.args:
    walk.add_type(argument)
  walk.add_function(function)
  return walk.digest()


class _Walk:
  """Goes once through everything that is referred to, and hashes it on the way."""

  def __init__(self) -> None:
    self._hash = hashlib.sha256()
    self._seen: dict[int, int] = {}
    # Keeps what was seen alive, so that no two things have the same id.
    self._kept: list[Any] = []
    self._modules: set[tuple[int, tuple[str, ...]]] = set()
    self._files: set[str] = set()

  def digest(self) -> str:
    """Returns the hash in hexadecimal digits."""
    return self._hash.hexdigest()

  def add(self, value: Any, names: tuple[str, ...] = ()) -> None:
    """Adds anything that a global, a closure or a default value may be.

    Args:
      value: what to add.
      names: what the function at hand calls its globals and attributes; of a module, these are added.
    """
    if isinstance(value, _CONSTANTS):
      self._write(type(value).__name__, repr(value))
    elif isinstance(value, tuple | list):
      self._write(type(value).__name__, str(getattr(value, "_fields", "")), str(len(value)))
      for item in value:
        self.add(item)
    elif isinstance(value, frozenset):
      self.add(tuple(sorted(value, key=repr)))
    elif isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
      layout = value.dtype.descr, value.shape, value.strides, type(value).__name__
      self._write("array", repr(layout))
      self._hash.update(value.tobytes())
    elif isinstance(value, types.Type):
      self.add_type(value)
    elif isinstance(value, ir.Type):
      self._write("llvm", str(value))
    elif isinstance(value, np.dtype):
      self._write("dtype", repr(value.descr))
    elif isinstance(value, ModuleType):
      self._add_module(value, names)
    elif self._is_new(value):
      self._add_object(value)

  def add_function(self, function: Any) -> None:
    """Adds a Python function and all that it refers to."""
    code, scope = function.__code__, function.__globals__
    self.add_code(code)
    self.add(function.__defaults__)
    self.add(tuple(sorted((function.__kwdefaults__ or {}).items())))
    names = tuple(sorted(set(_names(code))))
    for name in names:
      if name in scope:
        self._write("global", name)
        try:
          self.add(scope[name], names)
        except UnknownDependencyError:
          # The name may be that of an attribute of something else.
          if name in _globals(code):
            raise
    for name, content in _free_variables(function):
      self._write("free", name)
      self.add(content, names)

  def add_code(self, code: CodeType) -> None:
    """Adds bytecode, without the place where it stands."""
    self._write(
      "code",
      code.co_name,
      repr((code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)),
      repr((code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)),
      code.co_code.hex(),
      code.co_exceptiontable.hex(),
    )
    for constant in code.co_consts:
      if isinstance(constant, CodeType):
        self.add_code(constant)
      else:
        self.add(constant)

  def add_type(self, numba_type: Any) -> None:
    """Adds a type of numba's, with the names of the fields, which its own name leaves out."""
    self._write("type", type(numba_type).__name__)
    if isinstance(numba_type, types.FunctionType):
      self.add_type(numba_type.signature.return_type)
      for argument in numba_type.signature.args:
        self.add_type(argument)
    elif isinstance(numba_type, types.BaseTuple):
      self._add_fields(getattr(numba_type, "instance_class", tuple))
      for item in cast(Any, numba_type).types:
        self.add_type(item)
    else:
      self._write(str(numba_type))

  def _add_object(self, value: Any) -> None:
    """Adds something that is known by what it is, the first time it is met."""
    if isinstance(value, Dispatcher):
      self.add(tuple(sorted(value.targetoptions.items())))
      self.add_function(value.py_func)
    elif isinstance(value, _Intrinsic):
      # Types and operators that it needs may be registered by any line of its file.
      self._add_generator(value._defn, ())
    elif isinstance(value, types.WrapperAddressProtocol) and hasattr(value, "function"):
      self.add_type(types.FunctionType(value.signature()))
      self.add_function(value.function)
    elif isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"):
      self._add_fields(value)
      self.add(tuple(cast(Any, value)._field_defaults.items()))
    elif _has_version(value):
      self._write("versioned", str(value.__module__), value.__name__)
    else:
      raise UnknownDependencyError(repr(value))

  def _add_module(self, module: ModuleType, names: tuple[str, ...]) -> None:
    """Adds a module's attributes of these names: nothing says which name is an attribute of what."""
    self._write("module")
    if _package(module) in _VERSIONED:
      self._write(module.__name__)
    elif (id(module), names) not in self._modules:
      self._modules.add((id(module), names))
      for name in names:
        if name in vars(module):
          self._write("attribute", name)
          self.add(vars(module)[name], names)

  def _add_generator(self, value: Any, names: tuple[str, ...]) -> None:
    """Adds what a function uses that generates code, and so runs in Python while a kernel is compiled."""
    if isinstance(value, ModuleType) and _package(value) not in _VERSIONED:
      if (id(value), names) not in self._modules:
        self._modules.add((id(value), names))
        for name in names:
          if name in vars(value):
            self._write("attribute", name)
            self._add_generator(vars(value)[name], names)
    elif isinstance(value, FunctionType) and not _has_version(value):
      if self._is_new(value):
        self._add_source(value)
        self.add_code(value.__code__)
        names = tuple(sorted(set(_names(value.__code__))))
        scope = value.__globals__
        for name in names:
          if name in scope:
            self._write("global", name)
            self._add_generator(scope[name], names)
        for name, content in _free_variables(value):
          self._write("free", name)
          self._add_generator(content, names)
    else:
      self.add(value, names)

  def _add_source(self, function: FunctionType) -> None:
    """Adds the source of the file in which a function stands: any line of it may tell numba of types and operators."""
    path = function.__code__.co_filename
    if path not in self._files:
      self._files.add(path)
      lines = linecache.getlines(path, function.__globals__)
      if not lines:
        raise UnknownDependencyError(f"{function!r}, which has no source")
      self._write("source", "".join(lines))

  def _add_fields(self, cls: Any) -> None:
    self._write("tuple", cls.__name__, repr(getattr(cls, "_fields", None)))

  def _is_new(self, value: Any) -> bool:
    """Returns whether something is met for the first time; if not, adds which one it is."""
    number = self._seen.setdefault(id(value), len(self._seen))
    if number < len(self._kept):
      self._write("again", str(number))
      return False
    self._kept.append(value)
    return True

  def _write(self, *words: str) -> None:
    """Hashes words so that no two lists of words give the same bytes."""
    for word in words:
      data = word.encode("utf-8", "surrogatepass")
      self._hash.update(len(data).to_bytes(8, "little") + data)


def _names(code: CodeType) -> Iterable[str]:
  """Returns what a function, and the functions inside it, call their globals and attributes."""
  yield from code.co_names
  for constant in code.co_consts:
    if isinstance(constant, CodeType):
      yield from _names(constant)


def _globals(code: CodeType) -> set[str]:
  """Returns what a function, and the functions inside it, call their globals."""
  names = {
    instruction.argval
    for instruction in dis.get_instructions(code)
    if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME")
  }
  return names.union(*(_globals(inner) for inner in code.co_consts if isinstance(inner, CodeType)))


def _free_variables(function: FunctionType) -> Iterable[tuple[str, Any]]:
  """Yields the names and values that a function takes from the functions around it."""
  for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
    try:
      yield name, cell.cell_contents
    except ValueError:
      raise UnknownDependencyError(f"{name}, which is not defined yet") from None


def _has_version(value: Any) -> bool:
  """Returns whether a function or class is one that a package of `_VERSIONED` offers under its own name."""
  module = "numpy" if isinstance(value, np.ufunc) else getattr(value, "__module__", None)
  name = getattr(
    value, "__qualname__" if isinstance(value, FunctionType | type) else "__name__", None
  )
  if not isinstance(module, str) or not isinstance(name, str):
    return False
  found: Any = sys.modules.get(module)
  for part in name.split("."):
    found = getattr(found, part, None)
  return found is value and module.partition(".")[0] in _VERSIONED


def _package(module: ModuleType) -> str:
  """Returns the name of the package that a module belongs to."""
  return module.__name__.partition(".")[0]
