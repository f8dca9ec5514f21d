"""Machine code of kernels: compiled by numba or taken from disk, and loaded.

A kernel's file is named after the function, its signature and the processor, and says inside what it was made of, see
`fingerprint`. An edited kernel so replaces its own file. It holds an object file of the linker and four names, nothing
that Python could execute or import, so that it makes no difference under which module name it was compiled.

Each object file gets an execution engine of its own. Engines share no symbols: two versions of a helper, inlined in two
kernels that were compiled on different days, can't be mixed up.
"""

import contextlib
import ctypes
import dataclasses
import hashlib
import json
import os
import platform
import re
import sys
import threading
import types as python_types
import uuid
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import llvmlite.binding as llvm
import numba
import numba.core.runtime
from numba import types
from numba.core.registry import cpu_target

from spiel_cfr._numba.fingerprint import UnknownDependencyError, fingerprint

# numba's own annotations don't cover these.
config: Any = numba.core.config
environments: Any = numba.core.environment
dynamic_functions: Any = cast(Any, numba)._dynfunc
run_time: Any = cast(Any, numba.core.runtime).rtsys

SUFFIX = ".kernel"
_MAGIC = b"spiel_cfr kernel 1\n"
_CHECKSUM = hashlib.sha256
_CHECKSUM_BYTES = 32
# What a kernel that is kept may return: other values are made by code that looks for their class.
_RETURNED = (types.NoneType, types.Number, types.Boolean)
# Engines stay loaded: nobody knows who has the address of a kernel.
_engines: list[Any] = []
_warned = threading.Event()


@dataclasses.dataclass(frozen=True)
class MachineCode:
  """A kernel that can be called.

  Attributes:
    entry: function of Python that unpacks its arguments and calls the kernel. It doesn't check what it is given.
    address: where the function is that other kernels call, with the C calling convention.
  """

  entry: Callable[..., Any]
  address: int


@dataclasses.dataclass(frozen=True)
class _Object:
  """An object file, and what is what in it.

  Attributes:
    data: the file.
    entry: name of the function that Python calls.
    address: name of the function that other kernels call.
    environments: names of the variables that hold what numba calls the environment of a function.
    externals: functions that it expects in the process.
  """

  data: bytes
  entry: str
  address: str
  environments: tuple[str, ...]
  externals: tuple[str, ...]


def machine_code(
  function: Callable[..., Any], signature: Any, options: dict[str, Any]
) -> MachineCode:
  """Returns the machine code of a function, from disk if nothing that it depends on has changed.

  Args:
    function: plain Python function.
    signature: numba signature that it is compiled for.
    options: of `numba.njit`.
  """
  try:
    key = fingerprint(function, signature, options)
  except UnknownDependencyError:
    return _from_numba(_compile(function, signature, options))
  name = _file_name(function, signature, key)
  for folder in _folders():
    content = _read(folder / name, key)
    if content is not None and _can_be_linked(content):
      return _load(content, function)
  result = _compile(function, signature, options)
  compiled = _object(result)
  if compiled is None:
    return _from_numba(result)
  _write(name, key, compiled)
  return _load(compiled, function)


def _compile(function: Callable[..., Any], signature: Any, options: dict[str, Any]) -> Any:
  """Returns numba's compile result."""
  dispatcher: Any = numba.njit(**options)(function)
  dispatcher.compile(signature)
  return dispatcher.overloads[tuple(signature.args)]


def _from_numba(result: Any) -> MachineCode:
  """Returns machine code that can't be kept on disk, such as that with addresses of other kernels in it."""
  _engines.append(result.library)
  return MachineCode(
    result.entry_point,
    result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name),
  )


def _object(result: Any) -> _Object | None:
  """Returns what numba compiled, or None if it only works in this process."""
  library = result.library
  module = library._final_module
  variables = [variable.name for variable in module.global_variables]
  names = tuple(name for name in variables if name.startswith("_ZN08NumbaEnv"))
  in_use = [environments.lookup_environment(name) for name in names]
  if (
    library.has_dynamic_globals
    or result.lifted
    or result.reload_init
    or result.objectmode
    or not isinstance(result.signature.return_type, _RETURNED)
    or any(name.startswith(".numba.unresolved$") for name in variables)
    or any(environment is not None and environment.consts for environment in in_use)
  ):
    return None
  externals = tuple(
    sorted(
      one.name
      for one in module.functions
      if one.is_declaration and not one.name.startswith("llvm.")
    )
  )
  return _Object(
    library._get_compiled_object(),
    result.fndesc.llvm_cpython_wrapper_name,
    result.fndesc.llvm_cfunc_wrapper_name,
    names,
    externals,
  )


def _can_be_linked(code: _Object) -> bool:
  """Returns whether all that an object file needs is there; LLVM ends the process if it isn't."""
  # Much faster than `refresh`, which loads what numba needs to compile.
  run_time.initialize(cpu_target.target_context)
  if all(llvm.address_of_symbol(name) for name in code.externals):
    return True
  cpu_target.target_context.refresh()
  return all(llvm.address_of_symbol(name) for name in code.externals)


def _load(code: _Object, function: Callable[..., Any]) -> MachineCode:
  """Puts an object file into memory, ready to run."""
  generator = _codegen()
  target = llvm.Target.from_triple(generator._llvm_module.triple)
  options = {"opt": config.OPT}
  generator._customize_tm_options(options)
  empty = llvm.parse_assembly(f'target triple = "{generator._llvm_module.triple}"')
  engine = llvm.create_mcjit_compiler(
    empty, target.create_target_machine(**options), use_lmm=config.USE_LLVMLITE_MEMORY_MANAGER
  )
  engine.add_object_file(llvm.ObjectFileRef.from_data(code.data))
  engine.finalize_object()
  environment = dynamic_functions.Environment(function.__globals__)
  _engines.append((engine, environment))
  for name in code.environments:
    variable = engine.get_global_value_address(name)
    if variable:
      ctypes.c_void_p.from_address(variable).value = id(environment)
  entry = dynamic_functions.make_function(
    python_types.ModuleType(function.__module__ or "__main__"),
    function.__name__,
    function.__doc__ or "",
    engine.get_function_address(code.entry),
    environment,
    (),
  )
  return MachineCode(entry, engine.get_function_address(code.address))


def _codegen() -> Any:
  """Returns numba's generator of code for this processor, which knows its options and has loaded its run time."""
  return cpu_target.target_context.codegen()


def _file_name(function: Any, signature: Any, key: str) -> str:
  """Returns a name that an edited kernel shares with what it was before."""
  parts = signature, sys.implementation.cache_tag, sys.abiflags if os.name != "nt" else ""
  hashed = _CHECKSUM(repr((*parts, _codegen().magic_tuple())).encode()).hexdigest()[:16]
  stem = Path(function.__code__.co_filename).stem
  # Functions made by functions share a name.  A few of them, made of different things, have room side by side.
  variant = f"-{int(key[:2], 16) % 8}" if "<locals>" in function.__qualname__ else ""
  words = re.sub(r"[^A-Za-z0-9_.]", "", f"{'' if stem.isdigit() else stem}.{function.__qualname__}")
  return f"{words[:100]}-{hashed}{variant}{SUFFIX}"


def _folders() -> Iterator[Path]:
  """Yields where kernels are looked for, in this order; they are written to the first that can be written."""
  if config.CACHE_DIR:
    yield Path(config.CACHE_DIR)
    return
  package = Path(__file__).parent.parent
  if package.is_dir():
    yield package / "__pycache__"
  home = Path(os.path.expanduser("~"))
  system = platform.system()
  if system == "Windows":
    folder = Path(os.environ.get("LOCALAPPDATA", ""))
  elif system == "Darwin":
    folder = home / "Library" / "Caches"
  else:
    folder = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
  if folder.is_absolute():
    yield folder / "spiel_cfr"


def _read(path: Path, key: str) -> _Object | None:
  """Returns what a file holds, or None if there is none, it is damaged, or it was made of something else."""
  try:
    content = path.read_bytes()
    start = len(_MAGIC) + _CHECKSUM_BYTES
    body = content[start:]
    if content[:start] != _MAGIC + _CHECKSUM(body).digest():
      return None
    header, _, data = body.partition(b"\n")
    fields = json.loads(header)
    if fields.pop("key") != key:
      return None
    return _Object(
      data,
      fields["entry"],
      fields["address"],
      tuple(fields["environments"]),
      tuple(fields["externals"]),
    )
  except (OSError, ValueError, KeyError, TypeError, AttributeError):
    return None


def _write(name: str, key: str, code: _Object) -> None:
  """Keeps machine code on disk, or warns once if that's impossible."""
  header = dataclasses.asdict(code) | {"key": key}
  del header["data"]
  body = json.dumps(header).encode() + b"\n" + code.data
  content = _MAGIC + _CHECKSUM(body).digest() + body
  reason: OSError | None = None
  for folder in _folders():
    try:
      folder.mkdir(mode=0o700, parents=True, exist_ok=True)
      _replace(folder / name, content)
      return
    except OSError as error:
      reason = error
  if not _warned.is_set():
    _warned.set()
    warnings.warn(
      f"compiled kernels can't be kept, so every start compiles them again ({reason}); "
      "set the environment variable NUMBA_CACHE_DIR to a folder that can be written",
      stacklevel=2,
    )


def _replace(path: Path, content: bytes) -> None:
  """Writes a file so that whoever reads it at the same time sees the old or the new one, whole."""
  temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp")
  try:
    temporary.write_bytes(content)
    os.replace(temporary, path)
  except OSError:
    with contextlib.suppress(OSError):
      temporary.unlink(missing_ok=True)
    raise
