"""Kernels on disk: numba's own files, in a folder a kernel, checked before numba reads them.

numba looks at the file of a function to know whether what it keeps is stale. Helpers of other files are inlined too, so
each folder says what was in all files that the function's module imports, directly or not. Edited, a kernel replaces
its own folder. The same note has a hash of numba's files: what is damaged is compiled anew.

numba's files are pickles, which can run anything. So only files and folders are taken that belong to the user or to
root, and that nobody else can write to; what is not so is passed over. Kernels lie in the folder `kernels` below
`$NUMBA_CACHE_DIR`; if that is not set, below the package's `__pycache__`, or else `~/.cache/spiel_cfr`. Where none of
them will do, a warning says it once, and kernels are compiled at every start. So are, without a warning, those that no
file has, such as a notebook's, and functions with variables of the functions around them.
"""

import contextlib
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
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import llvmlite
import llvmlite.binding
import numba
import numpy as np

from spiel_cfr._util.interrupt import DeferredInterrupt

# numba's own annotations don't cover these.
config: Any = cast(Any, numba).config

# The note beside numba's files.
CHECKSUM = "checksum"
_PRIVATE = 0o700
_WRITABLE_BY_OTHERS = 0o022
# numba's settings that change what it generates.
_SETTINGS = (
  "BOUNDSCHECK",
  "DEBUGINFO_DEFAULT",
  "ERROR_MODEL",
  "LOOP_VECTORIZE",
  "OPT",
  "SLP_VECTORIZE",
  "USING_SVML",
)
# Packages that change with their version only.
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
    function: plain Python function.
    signature: numba signature that it is compiled for.
    options: of `numba.njit`.
    announced: entered while something is compiled, not while it is read.
  """
  made_of = _made_of(function, signature, options)
  if made_of is None:
    with announced():
      return _compile(function, signature, options)
  name = _folder_name(function, signature, options)
  for folder in _folders():
    kept = folder / name
    if _is_trusted(folder) and _is_intact(kept, made_of):
      # Whatever numba can't read, a later numba perhaps, must not be more than slow.
      with contextlib.suppress(Exception):
        dispatcher = _compile(function, signature, options, kept)
        if not dispatcher.stats.cache_hits:
          # Some versions of numba also look at when the function's file was changed, and have written it anew.
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
  """Returns a dispatcher for one signature, whose numba reads from this folder, or else writes to it."""
  if folder is not None:
    before = config.CACHE_DIR
    config.CACHE_DIR = str(folder)
    try:
      dispatcher: Any = numba.njit(cache=True, **options)(function)
    finally:
      config.CACHE_DIR = before
    # Told to keep its files elsewhere, numba would take stale ones from there.
    if folder not in Path(dispatcher.stats.cache_path).parents:
      folder = None
  if folder is None:
    dispatcher = numba.njit(**options)(function)
  # LLVM calls back into Python through ctypes, which would lose a KeyboardInterrupt and leave half a kernel.
  with DeferredInterrupt(whole=True):
    dispatcher.compile(signature)
  # Numbers of other types are converted, not compiled for.
  dispatcher.disable_compile()
  return dispatcher


def _compile_and_keep(
  function: Callable[..., Any], signature: Any, options: dict[str, Any], name: str, made_of: str
) -> Any:
  """Compiles into a new folder, which then takes its place whole."""
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
      # numba doesn't keep code with addresses of this process in it.
      if any(temporary.rglob("*.nbc")):
        _seal(temporary, made_of)
        shutil.rmtree(folder / name, ignore_errors=True)
        # Another process may be faster.
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
      "environment variable NUMBA_CACHE_DIR to a folder that you, and nobody else, can write to",
      stacklevel=2,
    )
  return _compile(function, signature, options)


def _folders() -> Iterator[Path]:
  """Yields where kernels are looked for, in this order; they are written to the first that will do."""
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
  """Returns whether nobody but the user and root can have written to a folder or a file; links are neither."""
  try:
    found = path.lstat()
  except OSError:
    return False
  mode, own = found.st_mode, {0, os.geteuid()}
  return (
    (stat.S_ISDIR(mode) or stat.S_ISREG(mode))
    and found.st_uid in own
    and not mode & _WRITABLE_BY_OTHERS
  )


def _is_intact(kept: Path, made_of: str) -> bool:
  """Returns whether a folder holds what was compiled from the same, as it was written, and by whom it may be."""
  try:
    return all(map(_is_trusted, (kept, *kept.rglob("*")))) and (
      (kept / CHECKSUM).read_text() == _checksum(kept, made_of)
    )
  except (OSError, ValueError):
    return False


def _seal(folder: Path, made_of: str) -> None:
  """Writes the note, and takes from others what the umask may have let them: to write to numba's files."""
  (folder / CHECKSUM).write_text(_checksum(folder, made_of))
  for path in folder.rglob("*"):
    path.chmod(path.stat().st_mode & ~_WRITABLE_BY_OTHERS)


def _checksum(folder: Path, made_of: str) -> str:
  """Returns a hash of what kernels were made of, and of numba's files."""
  total = hashlib.sha256(made_of.encode())
  for path in sorted(folder.rglob("*.nb[ci]")):
    total.update(hashlib.sha256(path.read_bytes()).digest())
  return total.hexdigest()


def _folder_name(function: Any, signature: Any, options: dict[str, Any]) -> str:
  """Returns a name that an edited kernel shares with what it was before, but with no other."""
  binding: Any = llvmlite.binding
  different = (
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
  hashed = hashlib.sha256(repr(different).encode()).hexdigest()[:16]
  stem = Path(function.__code__.co_filename).stem
  words = re.sub(r"[^A-Za-z0-9_.]", "", f"{stem}.{function.__qualname__}")
  return f"{words[:80]}-{hashed}"


def _made_of(function: Any, signature: Any, options: dict[str, Any]) -> str | None:
  """Returns a hash of all sources that a function can refer to, None if they can't be known."""
  module = sys.modules.get(function.__module__)
  own = getattr(module, "__file__", None)
  if own is None or function.__closure__ or not os.path.isfile(own):
    return None
  if os.path.abspath(function.__code__.co_filename) != os.path.abspath(own):
    return None
  reached, found = {function.__module__: ""}, [function.__module__]
  try:
    while found:
      name = found.pop()
      reached[name], imported = _source(name)
      new = [each for each in imported if each not in reached]
      reached.update(dict.fromkeys(new, ""))
      found += new
  except OSError:
    return None
  return hashlib.sha256(repr(sorted(reached.items())).encode()).hexdigest()


@functools.cache
def _source(name: str) -> tuple[str, tuple[str, ...]]:
  """Returns a hash of a module's source, and which modules it imports, wherever in it; a few more do no harm.

  Raises:
    OSError: there is no such file.
  """
  module = sys.modules[name]
  path = getattr(module, "__file__", None)
  if path is None:
    return "", ()
  if not path.endswith(".py") or (
    _INSTALLED & set(Path(path).parts) and name.partition(".")[0] != __package__.partition(".")[0]
  ):
    found = os.stat(path)
    return f"{found.st_size} {found.st_mtime_ns}", ()
  source = Path(path).read_bytes()
  package = getattr(module, "__package__", None) or ""
  imported: set[str] = set()
  for start, names, several in _IMPORT.findall(source.decode("utf-8", "replace")):
    listed = re.findall(r"[.\w]+", names or several)
    if start:
      with contextlib.suppress(ImportError, ValueError):
        start = importlib.util.resolve_name(start, package)
      modules = [f"{start}.{each}" for each in listed if f"{start}.{each}" in sys.modules]
      # A package of which modules are taken does not matter itself, and imports much else.
      listed = [*modules, *([start] if len(modules) < len(listed) else [])]
    else:
      listed += [each.partition(".")[0] for each in listed]
    imported.update(
      each for each in listed if each in sys.modules and each.partition(".")[0] not in _VERSIONED
    )
  return hashlib.sha256(source).hexdigest(), tuple(sorted(imported))
