"""Kernels on disk: numba's own cache, in a folder a kernel, whose name has a hash of what the kernel was made of.

numba looks at the file of a function to know whether what it keeps is stale. Helpers of other files are inlined too, so
the hash is of all files that the function's module imports, directly or not. Edited, a kernel replaces its old folder.

Kernels lie in the folder `kernels` below `$NUMBA_CACHE_DIR`; if that is not set, below the package's `__pycache__`, or
else `~/.cache/spiel_cfr`. numba's files are pickles, which can run anything: nobody else should be able to write there.
Where none of the folders can be written to, a warning says it once, and kernels are compiled at every start. So are,
without a warning, those that no file has, such as a notebook's, and functions with variables of the functions around
them.
"""

import contextlib
import functools
import hashlib
import importlib.util
import os
import re
import shutil
import sys
import sysconfig
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import llvmlite
import numba
import numpy as np

# numba's own annotations don't cover these.
config: Any = cast(Any, numba).config

_OWN_PACKAGE = __name__.partition(".")[0]
# What is here changes with its version only.
_INSTALLED = tuple({sysconfig.get_path(kind) for kind in ("stdlib", "purelib", "platlib")})
_IMPORT = re.compile(
  r"^[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]+(\([^)]*\)|.+)|import[ \t]+(.+))", re.MULTILINE
)


def compiled(function: Callable[..., Any], signature: Any, options: dict[str, Any]) -> Any:
  """Returns numba's dispatcher of a function, compiled for one signature, from disk if nothing has changed.

  Args:
    function: plain Python function.
    signature: numba signature that it is compiled for.
    options: of `numba.njit`.
  """
  folder = _folder(function, signature, options)
  if folder is None or not any(folder.rglob("*.nbc")):
    _announce()
  if folder is not None:
    # Damaged files, or a full disk; what does not compile fails again below.
    with contextlib.suppress(Exception):
      return _compile(function, signature, options, folder)
    shutil.rmtree(folder, ignore_errors=True)
  return _compile(function, signature, options)


def _compile(
  function: Callable[..., Any], signature: Any, options: dict[str, Any], folder: Path | None = None
) -> Any:
  """Returns a dispatcher for one signature; numba reads from this folder, or else writes to it."""
  before = config.CACHE_DIR
  if folder is not None:
    config.CACHE_DIR = str(folder)
  try:
    dispatcher: Any = numba.njit(cache=folder is not None, **options)(function)
  finally:
    config.CACHE_DIR = before
  if folder is not None and folder not in Path(dispatcher.stats.cache_path).parents:
    # A numba that keeps its files elsewhere would take stale ones from there.
    dispatcher = numba.njit(**options)(function)
  dispatcher.compile(signature)
  # Numbers of other types are converted, not compiled for.
  dispatcher.disable_compile()
  return dispatcher


@functools.cache
def _announce() -> None:
  print("spiel_cfr: compiling kernels; later starts take them from disk", file=sys.stderr)


def _folder(function: Any, signature: Any, options: dict[str, Any]) -> Path | None:
  """Returns where a kernel is kept, None if it can't be; removes what it was before it was edited."""
  sources = _sources(function)
  place = None if sources is None else _place()
  if place is None:
    return None
  settings = [item for item in os.environ.items() if item[0].startswith("NUMBA_")]
  different = (
    signature,
    sorted(options.items()),
    function.__module__,
    sys.version,
    [package.__version__ for package in (numba, llvmlite, np)],
    sorted(item for item in settings if item[0] != "NUMBA_CACHE_DIR"),
  )
  stem = Path(function.__code__.co_filename).stem
  words = re.sub(r"[^A-Za-z0-9_.]", "", f"{stem}.{function.__qualname__}")[:80]
  name = f"{words}-{_hash(different)}"
  folder = place / f"{name}-{_hash(sources)}"
  if not folder.exists():
    for old in place.glob(f"{name}-*"):
      shutil.rmtree(old, ignore_errors=True)
  return folder


def _hash(value: Any) -> str:
  return hashlib.sha256(repr(value).encode()).hexdigest()[:16]


def _place() -> Path | None:
  """Returns the first folder for kernels that can be written to."""
  if chosen := os.environ.get("NUMBA_CACHE_DIR"):
    folders = [Path(chosen)]
  else:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folders = [Path(__file__).parent.parent / "__pycache__", Path(home) / _OWN_PACKAGE]
  for folder in folders:
    with contextlib.suppress(OSError):
      (folder / "kernels").mkdir(parents=True, exist_ok=True)
      tempfile.TemporaryFile(dir=folder / "kernels").close()
      return folder / "kernels"
  _warn()
  return None


@functools.cache
def _warn() -> None:
  warnings.warn(
    "compiled kernels can't be kept, so every start compiles them again; set the environment variable "
    "NUMBA_CACHE_DIR to a folder that you, and nobody else, can write to",
    stacklevel=2,
  )


def _sources(function: Any) -> list[tuple[str, str]] | None:
  """Returns a hash of every source that a function can refer to, by module; None if they can't be known."""
  own = getattr(sys.modules.get(function.__module__), "__file__", None)
  if own is None or function.__closure__ or not os.path.isfile(own):
    return None
  if os.path.abspath(function.__code__.co_filename) != os.path.abspath(own):
    return None
  hashes: dict[str, str] = {}
  found = {function.__module__}
  while found:
    name = found.pop()
    hashes[name], imported = _source(name)
    found.update(imported - hashes.keys())
  return sorted(hashes.items())


@functools.cache
def _source(name: str) -> tuple[str, frozenset[str]]:
  """Returns a hash of a module's source, and which modules it imports, wherever in it; a few more do no harm."""
  path = getattr(sys.modules[name], "__file__", None) or ""
  is_own = name.partition(".")[0] == _OWN_PACKAGE
  if not path.endswith(".py") or (path.startswith(_INSTALLED) and not is_own):
    return "", frozenset()
  source = Path(path).read_bytes()
  imported = frozenset(_imported(source.decode("utf-8", "replace"), sys.modules[name].__package__))
  return hashlib.sha256(source).hexdigest(), imported & sys.modules.keys()


def _imported(source: str, package: str | None) -> Iterator[str]:
  """Yields the names of modules, and of what may be modules, that a source imports."""
  for start, names, several in _IMPORT.findall(source):
    listed = re.findall(r"[.\w]+", names or several)
    if start:
      with contextlib.suppress(ImportError, ValueError):
        start = importlib.util.resolve_name(start, package)
      yield start
      yield from (f"{start}.{each}" for each in listed)
    else:
      yield from listed
      yield from (each.partition(".")[0] for each in listed)
