"""Kernels are kept on disk, are never stale, and work where nothing can be kept."""

import json
import os
import pkgutil
import shutil
import subprocess
import sys
import threading
import types as python_types
import zipfile
from importlib import import_module
from pathlib import Path

import numba
import numpy as np
import pytest
from numba import types

import spiel_cfr
from spiel_cfr._numba import cache
from spiel_cfr._numba.fingerprint import UnknownDependencyError, fingerprint
from spiel_cfr._numba.kernels import Kernel

FLOATS = types.Array(types.float64, 1, "C")
NUMBER = types.float64(types.float64)
TWO_NUMBERS = types.float64(types.float64, types.float64)
OPTIONS = {"error_model": "numpy", "nogil": True}

SOURCE = """
import math
import math as tools
from typing import NamedTuple
import numba
from spiel_cfr.kernels import simd
from spiel_cfr._numba.kernels import inlined
import {helpers} as helpers

class Pair(NamedTuple):
  a: float
  b: float

CONSTANT = 2.0
TABLE = (1.0, 2.0)

@inlined
def inner(x):
  return x + 1.0

@inlined
def outer(x):
  return inner(x) * 2.0

def make(closed):
  def kernel(x, y=1.0):
    p = Pair(x, closed)
    return outer(p.a) + helpers.far(x) + CONSTANT * TABLE[1] + p.b + y + math.floor(2.5)
  return kernel

kernel = make(3.0)
"""
HELPERS = """
import numba
@numba.njit
def deep(x):
  return x - 1.0
@numba.njit
def far(x):
  return deep(x) * 3.0
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
  """A folder of its own for kernels."""
  monkeypatch.setattr(cache.config, "CACHE_DIR", str(tmp_path / "kernels"))
  return tmp_path / "kernels"


@pytest.fixture
def compiled(monkeypatch):
  """What was compiled, by name."""
  names = []
  original = cache._compile

  def note(function, *arguments):
    names.append(function.__qualname__)
    return original(function, *arguments)

  monkeypatch.setattr(cache, "_compile", note)
  return names


def module(source, name="module_of_test", file="module_of_test.py"):
  result = python_types.ModuleType(name)
  sys.modules[name] = result
  exec(compile(source, file, "exec"), vars(result))
  return result


def made(change=("", ""), helpers_change=("", ""), name="module_of_test", file="module_of_test.py"):
  module(HELPERS.replace(*helpers_change), "helpers_of_test", f"helpers-{file}")
  return module(SOURCE.format(helpers="helpers_of_test").replace(*change), name, file)


def key(function, signature=TWO_NUMBERS, options=OPTIONS):
  return fingerprint(function, signature, options)


@pytest.mark.parametrize(
  "change",
  [
    ("x + 1.0", "x + 1.5"),
    ("* 2.0", "* 2.5"),
    ("CONSTANT = 2.0", "CONSTANT = 2"),
    ("TABLE = (1.0, 2.0)", "TABLE = (1.0, -2.0)"),
    ("make(3.0)", "make(4.0)"),
    ("y=1.0", "y=2.0"),
    ("math.floor", "math.ceil"),
    ("class Pair", "class Other(NamedTuple):\n  a: float\nclass Pair"),
    ("  a: float\n  b: float", "  b: float\n  a: float"),
    ("2.5)", "2.25)"),
    ("outer(p.a) +", "outer(p.a) -"),
  ],
)
def test_whatever_a_kernel_refers_to_is_part_of_its_key(change):
  same = change[1].startswith("class Other")
  assert (key(made().kernel) == key(made(change).kernel)) == same


@pytest.mark.parametrize("change", [("x - 1.0", "x - 2.0"), ("* 3.0", "/ 3.0")])
def test_helpers_in_other_files_are_part_of_the_key(change):
  assert key(made().kernel) != key(made(helpers_change=change).kernel)


def test_key_has_signature_options_and_settings_but_not_names_of_modules(monkeypatch):
  function = made().kernel
  first = key(function)
  assert first == key(
    made(("import math\n", "\n\n\nimport math\n"), name="__other__", file="b.py").kernel
  )
  assert first != key(function, types.float64(types.float64, types.int64))
  assert first != key(function, options=OPTIONS | {"fastmath": True})
  pair = made().Pair
  same_text = [
    types.NamedTuple([types.float64] * 2, cls) for cls in (pair, made(("  a:", "  c:")).Pair)
  ]
  assert str(same_text[0]) == str(same_text[1])
  assert key(function, types.float64(same_text[0])) != key(function, types.float64(same_text[1]))
  monkeypatch.setattr(cache.config, "OPT", 0)
  assert first != key(function)


def test_intrinsics_are_part_of_the_key(tmp_path):
  source = (
    "from numba import types\nfrom numba.extending import intrinsic\nVALUE = 1.0\n"
    "def amount(context):\n  return context.get_constant(types.float64, VALUE)\n"
    "@intrinsic\ndef one(typing_context):\n"
    "  def generate(context, builder, signature, arguments):\n    return amount(context)\n"
    "  return types.float64(), generate\ndef kernel(x):\n  return x + one()\n"
  )
  keys = []
  for number, text in enumerate((source, source + "\n", source.replace("= 1.0", "= 2.0"), source)):
    path = tmp_path / f"{number}.py"
    path.write_text(text)
    keys.append(key(module(text, file=str(path)).kernel, NUMBER))
  assert keys[0] == keys[3]
  assert len(set(keys)) == 3
  with pytest.raises(UnknownDependencyError):
    key(module(source, file="<nowhere>").kernel, NUMBER)


def test_every_kernel_of_the_library_can_be_kept():
  found = 0
  for info in pkgutil.walk_packages(spiel_cfr.__path__, "spiel_cfr."):
    for value in vars(import_module(info.name)).values():
      if isinstance(value, Kernel):
        fingerprint(value.function, value.signature(), OPTIONS)
        found += 1
  assert found > 20


def test_what_has_no_reliable_key_is_compiled_all_the_same(folder, compiled):
  def replaced(x):
    return x

  numba.extending.overload(replaced)(lambda x: lambda x: x + 5.0)

  def uses(x):
    return replaced(x)

  with pytest.raises(UnknownDependencyError):
    fingerprint(uses, NUMBER, OPTIONS)
  assert Kernel(uses, NUMBER)(1.0) == 6.0
  assert Kernel(uses, NUMBER)(1.0) == 6.0
  assert len(compiled) == 2
  assert not folder.exists()


def test_loaded_from_disk_under_another_name_and_replaced_when_edited(folder, compiled):
  first = Kernel(made().kernel, TWO_NUMBERS)
  expected = made().kernel(1.0, 1.0)
  assert first(1.0, 1.0) == expected
  del sys.modules["module_of_test"]
  assert Kernel(made(name="__another__").kernel, TWO_NUMBERS)(1.0, 1.0) == expected
  assert len(compiled) == 1
  for value in (4.0, 5.0):
    function = made((" x + 1.0", f" x + {value}")).kernel
    assert Kernel(function, TWO_NUMBERS)(1.0, 1.0) == function(1.0, 1.0)
  assert len(compiled) == 3
  assert 1 <= len(list(folder.iterdir())) <= 3  # Made by a function: a few may lie side by side.


def test_an_edited_kernel_replaces_its_file(folder, compiled):
  for value in range(3):
    edited = module(f"def kernel(x):\n  return x + {value}.0")
    assert Kernel(edited.kernel, NUMBER)(1.0) == 1.0 + value
  assert len(compiled) == 3
  assert len(list(folder.iterdir())) == 1


def test_two_versions_of_a_helper_live_side_by_side(folder, compiled):
  source = (
    "import numba\n@numba.njit\ndef helper(x):\n  total = 0.0\n  for i in range(int(x)):\n"
    "    total += {} * i\n  return total\ndef {}(x):\n  return helper(x) + helper(x + 1.0)\n"
  )
  expected = {}
  for _ in range(2):
    for value, name in ((2.0, "first"), (3.0, "second")):
      function = vars(module(source.format(value, name)))[name]
      expected.setdefault(name, function(5.0))
      assert Kernel(function, NUMBER)(5.0) == expected[name]
  assert expected["first"] != expected["second"]
  assert compiled == ["first", "second"]


@pytest.mark.parametrize(
  "damage",
  [
    lambda content: b"",
    lambda content: content[: len(content) // 2],
    lambda content: content[:-1] + bytes([content[-1] ^ 1]),
    lambda content: b"PK\x03\x04 something else",
    lambda content: checked(content, lambda header: header | {"key": "0" * 64}),
    lambda content: checked(content, lambda header: header | {"externals": ["no_such_symbol"]}),
    lambda content: checked(content, lambda header: []),
  ],
)
def test_damaged_files_are_compiled_again(folder, compiled, damage):
  function = module("def kernel(x):\n  return x * 7.0").kernel
  assert Kernel(function, NUMBER)(2.0) == 14.0
  (path,) = folder.iterdir()
  good = path.read_bytes()
  path.write_bytes(damage(good))
  assert Kernel(function, NUMBER)(2.0) == 14.0
  assert len(compiled) == 2
  assert Kernel(function, NUMBER)(2.0) == 14.0
  assert len(compiled) == 2


def checked(content, change):
  """Returns the file with another header and a checksum that fits."""
  start = len(cache._MAGIC) + cache._CHECKSUM_BYTES
  header, _, data = content[start:].partition(b"\n")
  body = json.dumps(change(json.loads(header))).encode() + b"\n" + data
  return cache._MAGIC + cache._CHECKSUM(body).digest() + body


def test_nothing_can_be_written(tmp_path, monkeypatch):
  (tmp_path / "file").write_text("")
  monkeypatch.setattr(cache.config, "CACHE_DIR", str(tmp_path / "file" / "folder"))
  monkeypatch.setattr(cache, "_warned", threading.Event())
  with pytest.warns(UserWarning, match="NUMBA_CACHE_DIR") as caught:
    for value in range(2):
      function = module(f"def kernel(x):\n  return x - {value}.0").kernel
      assert Kernel(function, NUMBER)(2.0) == 2.0 - value
  assert len(caught) == 1


def test_disk_full_leaves_nothing_behind(folder, monkeypatch):
  def fail(self, content):
    with open(self, "wb") as file:
      file.write(content[:10])
    raise OSError(28, "No space left on device")

  monkeypatch.setattr(Path, "write_bytes", fail)
  monkeypatch.setattr(cache, "_warned", threading.Event())
  function = module("def kernel(x):\n  return x - 3.0").kernel
  with pytest.warns(UserWarning, match="No space left"):
    assert Kernel(function, NUMBER)(2.0) == -1.0
  assert list(folder.iterdir()) == []


def test_readers_never_see_half_a_file(tmp_path):
  path, done = tmp_path / "a.kernel", threading.Event()
  contents = [bytes([i]) * (300_000 + i) for i in range(4)]

  def write():
    while not done.is_set():
      for content in contents:
        cache._replace(path, content)

  cache._replace(path, contents[0])
  writers = [threading.Thread(target=write) for _ in range(2)]
  for writer in writers:
    writer.start()
  try:
    assert all(path.read_bytes() in contents for _ in range(200))
  finally:
    done.set()
    for writer in writers:
      writer.join()
  assert list(tmp_path.iterdir()) == [path]


def test_folders(monkeypatch, tmp_path):
  monkeypatch.setattr(cache.config, "CACHE_DIR", "")
  monkeypatch.setattr(cache.platform, "system", lambda: "Linux")
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
  package = Path(spiel_cfr.__file__).parent / "__pycache__"
  assert list(cache._folders()) == [package, tmp_path / "spiel_cfr"]
  monkeypatch.delenv("XDG_CACHE_HOME")
  monkeypatch.setenv("HOME", str(tmp_path))
  assert list(cache._folders()) == [package, tmp_path / ".cache" / "spiel_cfr"]
  monkeypatch.setattr(cache.config, "CACHE_DIR", str(tmp_path))
  assert list(cache._folders()) == [tmp_path]


SCRIPT = """
import sys
from absl import flags
import numpy as np
from spiel_cfr.kernels import cache
from spiel_cfr import RegretMinimizer, FullWidthSolver, block_kernel
from spiel_cfr.games.sequence_form.blocks import sequence

flags.DEFINE_string("flag_of_test", "", "defined twice if imported twice")
compiled = []
original = cache._compile
cache._compile = lambda function, *rest: compiled.append(function.__name__) or original(function, *rest)

@block_kernel
def own(block):
  for action in range(block.actions):
    for i in range(block.size):
      block.strategy[sequence(block, action, i)] = 1.0 / block.actions

class Own(RegretMinimizer):
  observe = own

solver = FullWidthSolver("kuhn_poker", Own())
solver.run(2)
print(round(solver.nash_conv(), 6), "own" in compiled)
"""


def run(folder, *arguments, stdin=None, **environment):
  """Runs Python and returns what it prints; any variable that is None is removed."""
  merged = os.environ | environment
  completed = subprocess.run(
    [sys.executable, *map(str, arguments)],
    cwd=folder,
    input=stdin,
    env={name: str(value) for name, value in merged.items() if value is not None},
    capture_output=True,
    text=True,
    check=False,
  )
  assert completed.returncode == 0, completed.stderr
  return completed.stdout.strip(), completed.stderr


def test_module_script_and_standard_input_share_kernels(tmp_path):
  # The library's own kernels are no news.
  kernels = tmp_path / "kernels"
  kernels.mkdir()
  for folder in cache._folders():
    for path in folder.glob(f"*{cache.SUFFIX}"):
      if ".own-" not in path.name:
        shutil.copy(path, kernels)
  package = tmp_path / "package_of_test"
  package.mkdir()
  (package / "__init__.py").write_text("")
  script = package / "my_minimizer.py"
  script.write_text(SCRIPT)
  root = Path(spiel_cfr.__file__).parents[1]
  environment = {
    "NUMBA_CACHE_DIR": kernels,
    "PYTHONPATH": os.pathsep.join((str(tmp_path), str(root))),
  }
  first, _ = run(tmp_path, "-c", "import package_of_test.my_minimizer", **environment)
  assert first == "0.916667 True"
  # As a script, where importing the module of the first run would define the flag twice.
  assert run(tmp_path, script, **environment)[0] == "0.916667 False"
  # Moved to where its old module can't be imported.
  moved = tmp_path / "elsewhere" / script.name
  moved.parent.mkdir()
  script.rename(moved)
  assert run(tmp_path, moved, **environment | {"PYTHONPATH": root})[0] == "0.916667 False"
  # Without a file: kept as well.
  assert run(tmp_path, "-", stdin=SCRIPT, **environment)[0] == "0.916667 True"
  assert run(tmp_path, "-", stdin=SCRIPT, **environment)[0] == "0.916667 False"


# One kernel of its own and one of the library, since nothing that is compiled here is kept.
_ZIPPED = """
from numba import types
import spiel_cfr
from spiel_cfr.evaluation.best_responses import take_best
from spiel_cfr._numba.kernels import Kernel

def own(x):
  return x + 1.0

print(int(Kernel(own, types.float64(types.float64))(2.0)), take_best.compiled is not None)
print(spiel_cfr.compile_game("kuhn_poker").num_infosets)
"""


def test_from_a_zip_without_a_home(tmp_path):
  root = Path(spiel_cfr.__file__).parents[1]
  archive = tmp_path / "library.zip"
  with zipfile.ZipFile(archive, "w") as file:
    for path in (root / "spiel_cfr").rglob("*.py"):
      file.write(path, path.relative_to(root))
    file.writestr("my_program.py", _ZIPPED)
  nowhere = archive / "home"
  printed, errors = run(
    tmp_path,
    "-c",
    "import my_program",
    PYTHONPATH=archive,
    HOME=nowhere,
    XDG_CACHE_HOME=None,
    NUMBA_CACHE_DIR=None,
    PYTHONWARNINGS=None,
  )
  assert printed.split() == ["3", "True", "12"]
  assert errors.count("NUMBA_CACHE_DIR") == 1


def test_arrays_that_are_global_constants(folder):
  functions = [
    module(
      f"import numpy as np\nVALUES = np.array({values})\ndef kernel(x):\n  return x + VALUES[1]"
    ).kernel
    for values in ([1.0, 2.0], [1.0, 3.0])
  ]
  assert [Kernel(function, NUMBER)(1.0) for function in functions] == [3.0, 4.0]


def test_kernels_that_raise_and_kernels_that_return_arrays(folder, compiled):
  source = (
    "def kernel(x):\n  if x[0] < 0.0:\n    raise ValueError('negative')\n  return x[0] * 2.0\n"
  )
  for _ in range(2):
    kernel = Kernel(module(source).kernel, types.float64(FLOATS))
    assert kernel(np.ones(2)) == 2.0
    with pytest.raises(ValueError, match="negative"):
      kernel(-np.ones(2))
  assert len(compiled) == 1
  for _ in range(2):
    kernel = Kernel(module("def kernel(x):\n  return x * 2.0\n").kernel, FLOATS(FLOATS))
    np.testing.assert_array_equal(kernel(np.ones(2)), [2.0, 2.0])
  assert len(compiled) == 3  # Not kept.


def test_a_kernel_called_by_its_global_name_works_but_is_not_kept(folder, compiled):
  source = "def inner(x):\n  return x + 1.0\ndef kernel(x):\n  return inner(x) * 2.0\n"
  scope = module(source)
  scope.inner = Kernel(scope.inner, NUMBER)
  assert [Kernel(scope.kernel, NUMBER)(1.0) for _ in range(2)] == [4.0, 4.0]
  assert compiled.count("kernel") == 2
  assert compiled.count("inner") == 1
