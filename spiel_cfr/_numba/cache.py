"""Cache of compiled kernels on disk: a folder with numba's files for each kernel, checked before numba reads it.

numba checks only the file of a function for changes. But functions of other files are inlined in kernels. So each
folder has a checksum of all files that the function's module imports, directly or indirectly. It also includes the
values of global numbers and arrays, which numba compiles into the code, and which a program may read from its command
line. After a change, a kernel is compiled again and replaces its folder. The checksum also includes numba's files, so
that a damaged kernel is compiled again.

numba's files are pickles, which can run any code. So the cache reads only files and folders that belong to the user or
to root, and that no other user can write to. The folders of kernels are in `kernels` below `$NUMBA_CACHE_DIR`. If that
is not set, they are below the package's `__pycache__`, or else below `~/.cache/spiel_cfr`. If none of these can be
used, the library warns once and compiles kernels at every start. Functions without a file, such as those of a notebook,
and closures are compiled at every start too, without a warning.
"""

import contextlib
import enum
import functools
import hashlib
import importlib.util
import os
import re
import shutil
import stat
import sys
import tempfile
import threading
import types
import warnings
from collections.abc import Callable, Container, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import llvmlite
import llvmlite.binding
import numba
import numpy as np

from spiel_cfr._util.interrupt import DeferredInterrupt

# numba's own annotations don't cover these.
config: Any = cast(Any, numba).config

# The name of the file with the checksum, beside numba's files.
CHECKSUM = "checksum"
_PRIVATE = 0o700
_WRITABLE_BY_OTHERS = 0o022
# numba's settings that change the machine code.
_SETTINGS = (
  "BOUNDSCHECK",
  "DEBUGINFO_DEFAULT",
  "ERROR_MODEL",
  "LOOP_VECTORIZE",
  "OPT",
  "SLP_VECTORIZE",
  "USING_SVML",
)
# Packages whose files change only with their version.
_VERSIONED = frozenset({"numba", "llvmlite", "numpy"}) | sys.stdlib_module_names
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_IMPORT = re.compile(
  r"^[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]+(\([^)]*\)|.+)|import[ \t]+(.+))", re.MULTILINE
)
_warned = threading.Event()


def compiled(
  function: Callable[..., Any],
  signature: Any,
  options: dict[str, Any],
  announced: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext,
) -> Any:
  """Returns numba's dispatcher of a function, compiled for one signature, from disk if nothing has changed.

  Args:
    function: the plain Python function.
    signature: the numba signature to compile for.
    options: the options of `numba.njit`.
    announced: function that returns a context, in which the function is compiled if it is not on disk.
  """
  made_of = _made_of(function, signature, options)
  if made_of is None:
    with announced():
      return _compile(function, signature, options)
  name = _folder_name(function, signature, options)
  for folder in _folders():
    kept = folder / name
    if _is_trusted(folder) and _is_intact(kept, made_of):
      # If numba can't read the files, for instance in a later version, the kernel is compiled again.
      with contextlib.suppress(Exception):
        dispatcher = _compile(function, signature, options, kept)
        if not dispatcher.stats.cache_hits:
          # Some versions of numba also check the time of the function's file, and have compiled the kernel again.
          _seal(kept, made_of)
        return dispatcher
  with announced():
    return _compile_and_keep(function, signature, options, name, made_of)


def _compile(
  function: Callable[..., Any],
  signature: Any,
  options: dict[str, Any],
  folder: Path | None = None,
) -> Any:
  """Returns a dispatcher for one signature, which numba reads from a folder, or compiles and writes to the folder."""
  if folder is not None:
    before = config.CACHE_DIR
    config.CACHE_DIR = str(folder)
    try:
      dispatcher: Any = numba.njit(cache=True, **options)(function)
    finally:
      config.CACHE_DIR = before
    # If numba is configured to use another folder, it could read stale files there.
    if folder not in Path(dispatcher.stats.cache_path).parents:
      folder = None
  if folder is None:
    dispatcher = numba.njit(**options)(function)
  # LLVM calls back into Python through ctypes, which would lose a KeyboardInterrupt and leave an incomplete kernel.
  with DeferredInterrupt(whole=True):
    dispatcher.compile(signature)
  # Numbers of other types are converted, without another compilation.
  dispatcher.disable_compile()
  return dispatcher


def _compile_and_keep(
  function: Callable[..., Any], signature: Any, options: dict[str, Any], name: str, made_of: str
) -> Any:
  """Compiles a kernel into a temporary folder, and then renames the folder to `name`."""
  reason: OSError | None = None
  for folder in _folders():
    try:
      folder.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
      if not _is_trusted(folder):
        raise PermissionError(f"others can write to {folder}")
      temporary = Path(tempfile.mkdtemp(prefix=f".{name[:40]}", dir=folder))
    except OSError as error:
      reason = error
      continue
    try:
      dispatcher = _compile(function, signature, options, temporary)
      # numba writes no code that contains addresses of this process.
      if any(temporary.rglob("*.nbc")):
        _seal(temporary, made_of)
        shutil.rmtree(folder / name, ignore_errors=True)
        # Another process may have made the folder meanwhile.
        with contextlib.suppress(OSError):
          temporary.rename(folder / name)
      return dispatcher
    except OSError as error:
      reason = error
    finally:
      shutil.rmtree(temporary, ignore_errors=True)
  if not _warned.is_set():
    _warned.set()
    warnings.warn(
      f"compiled kernels can't be kept, so every start compiles them again ({reason}); set the "
      "environment variable NUMBA_CACHE_DIR to a folder that only you can write to",
      stacklevel=2,
    )
  return _compile(function, signature, options)


def _folders() -> Iterator[Path]:
  """Yields the folders to search for kernels, in order. New kernels go to the first folder that can be used."""
  if config.CACHE_DIR:
    yield Path(config.CACHE_DIR) / "kernels"
    return
  package = Path(__file__).parent.parent
  if package.is_dir():
    yield package / "__pycache__" / "kernels"
  home = Path(os.environ.get("XDG_CACHE_HOME") or Path(os.path.expanduser("~"), ".cache"))
  if home.is_absolute():
    yield home / "spiel_cfr" / "kernels"


def _is_trusted(path: Path) -> bool:
  """Returns whether only the user and root can write to a folder or a file; False for links."""
  try:
    status = path.lstat()
  except OSError:
    return False
  mode, trusted_users = status.st_mode, {0, os.geteuid()}
  return (
    (stat.S_ISDIR(mode) or stat.S_ISREG(mode))
    and status.st_uid in trusted_users
    and not mode & _WRITABLE_BY_OTHERS
  )


def _is_intact(kept: Path, made_of: str) -> bool:
  """Returns whether a folder has an undamaged kernel of these sources, in trusted files."""
  try:
    return all(map(_is_trusted, (kept, *kept.rglob("*")))) and (
      (kept / CHECKSUM).read_text() == _checksum(kept, made_of)
    )
  except (OSError, ValueError):
    return False


def _seal(folder: Path, made_of: str) -> None:
  """Writes the checksum, and removes write permissions of other users, which the umask may have left."""
  (folder / CHECKSUM).write_text(_checksum(folder, made_of))
  for path in folder.rglob("*"):
    path.chmod(path.stat().st_mode & ~_WRITABLE_BY_OTHERS)


def _checksum(folder: Path, made_of: str) -> str:
  """Returns a hash of the sources of a kernel and of numba's files."""
  total = hashlib.sha256(made_of.encode())
  for path in sorted(folder.rglob("*.nb[ci]")):
    total.update(hashlib.sha256(path.read_bytes()).digest())
  return total.hexdigest()


def _folder_name(function: Any, signature: Any, options: dict[str, Any]) -> str:
  """Returns the name of a kernel's folder, which no other kernel has, and which stays when the kernel is edited."""
  binding: Any = llvmlite.binding
  identity = (
    signature,
    sorted(options.items()),
    function.__module__,
    sys.version,
    [package.__version__ for package in (numba, llvmlite, np)],
    [getattr(config, name, None) for name in _SETTINGS],
    sys.platform,
    binding.get_host_cpu_name(),
    binding.get_host_cpu_features().flatten(),
  )
  hashed = hashlib.sha256(repr(identity).encode()).hexdigest()[:16]
  stem = Path(function.__code__.co_filename).stem
  words = re.sub(r"[^A-Za-z0-9_.]", "", f"{stem}.{function.__qualname__}")
  return f"{words[:80]}-{hashed}"


def _made_of(function: Any, signature: Any, options: dict[str, Any]) -> str | None:
  """Returns a hash of the sources of all modules that a function's module imports; None if they are unknown."""
  module = sys.modules.get(function.__module__)
  file = getattr(module, "__file__", None)
  if file is None or function.__closure__ or not os.path.isfile(file):
    return None
  if os.path.abspath(function.__code__.co_filename) != os.path.abspath(file):
    return None
  hashes, pending = {function.__module__: ""}, [function.__module__]
  try:
    while pending:
      name = pending.pop()
      hashes[name], imported = _source(name)
      new = [name for name in imported if name not in hashes]
      hashes.update(dict.fromkeys(new, ""))
      pending += new
  except OSError:
    return None
  made_of = sorted(hashes.items()), _global_values(function, hashes)
  return hashlib.sha256(repr(made_of).encode()).hexdigest()


def _global_values(function: Any, modules: Container[str]) -> list[Any]:
  """Returns the values that numba compiles into the code of a function of some modules, and of functions it calls.

  These are numbers, strings and arrays in global variables, in defaults of arguments, and in variables of enclosing
  functions; members of enumerations; and the code of the functions that are called.
  """
  result, seen, pending = list[Any](), set[int](), [function]
  while pending:
    # Dispatchers of numba have the plain function in `py_func`, kernels of this package in `function`.
    plain = pending.pop()
    plain = getattr(plain, "py_func", getattr(plain, "function", plain))
    if id(plain) in seen or not (hasattr(plain, "__code__") and plain.__module__ in modules):
      continue
    seen.add(id(plain))
    names = _names_in(plain.__code__)
    values = [plain.__globals__[name] for name in names if name in plain.__globals__]
    values += _attributes([value for value in values if isinstance(value, types.ModuleType)], names)
    values += plain.__defaults__ or ()
    values += [cell.cell_contents for cell in plain.__closure__ or ()]
    result += [plain.__qualname__, plain.__code__.co_code, *map(_frozen, values)]
    pending += filter(callable, values)
  return result


def _attributes(modules: Sequence[types.ModuleType], names: Sequence[str]) -> list[Any]:
  """Returns the attributes with these names of modules, and of modules that are such attributes."""
  result, seen, pending = list[Any](), set[int](), list(modules)
  while pending:
    module = pending.pop()
    if id(module) in seen:
      continue
    seen.add(id(module))
    found = [vars(module)[name] for name in names if name in vars(module)]
    result += found
    pending += [value for value in found if isinstance(value, types.ModuleType)]
  return result


def _frozen(value: Any) -> Any:
  """Returns something whose `repr` tells a number, a string, an array, a tuple or an enumeration; None for others."""
  if isinstance(value, tuple):
    return [_frozen(each) for each in value]
  if isinstance(value, np.ndarray):
    return value.dtype.str, value.shape, hashlib.sha256(value.tobytes()).hexdigest()
  if isinstance(value, type) and issubclass(value, enum.Enum):
    return [(name, _frozen(member.value)) for name, member in value.__members__.items()]
  return value if isinstance(value, (bool, int, float, complex, str, bytes, np.generic)) else None


def _names_in(code: types.CodeType) -> list[str]:
  """Returns the names that code and its inner functions use, in a fixed order."""
  inner = [const for const in code.co_consts if isinstance(const, types.CodeType)]
  return [*code.co_names, *(name for each in inner for name in _names_in(each))]


@functools.cache
def _source(name: str) -> tuple[str, tuple[str, ...]]:
  """Returns a hash of a module's source, and the names of the modules that it imports.

  Too many names do no harm: they only cause a kernel to be compiled again.

  Raises:
    OSError: the module's file does not exist.
  """
  module = sys.modules[name]
  path = getattr(module, "__file__", None)
  if path is None:
    return "", ()
  if not path.endswith(".py") or (
    _INSTALLED & set(Path(path).parts) and name.partition(".")[0] != __package__.partition(".")[0]
  ):
    status = os.stat(path)
    return f"{status.st_size} {status.st_mtime_ns}", ()
  source = Path(path).read_bytes()
  package = getattr(module, "__package__", None) or ""
  imported: set[str] = set()
  for start, names, several in _IMPORT.findall(source.decode("utf-8", "replace")):
    listed = re.findall(r"[.\w]+", names or several)
    if start:
      with contextlib.suppress(ImportError, ValueError):
        start = importlib.util.resolve_name(start, package)
      modules = [f"{start}.{part}" for part in listed if f"{start}.{part}" in sys.modules]
      # If all names are modules of a package, the package itself is left out, because it imports many other modules.
      listed = [*modules, *([start] if len(modules) < len(listed) else [])]
    else:
      listed += [module.partition(".")[0] for module in listed]
    imported.update(
      module
      for module in listed
      if module in sys.modules and module.partition(".")[0] not in _VERSIONED
    )
  return hashlib.sha256(source).hexdigest(), tuple(sorted(imported))
