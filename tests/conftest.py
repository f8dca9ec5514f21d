"""Settings that every test shares."""

import contextlib
import fnmatch
import gc
import importlib.metadata
import os
import pathlib
import signal
import subprocess
import sys

import hypothesis
import numpy as np
import pytest

from spiel_cfr import errors

# What these modules assert is shown as in a test.
pytest.register_assert_rewrite("composition.operations")

# The first example may have to compile a kernel, so the time of an example says nothing. Where a change is judged, the
# examples are always the same; elsewhere new ones are tried every time. Slow tests try ten times as many.
for _name, _examples in (("quick", 30), ("all", 300)):
  hypothesis.settings.register_profile(
    _name, deadline=None, derandomize=bool(os.environ.get("CI")), max_examples=_examples
  )
hypothesis.settings.load_profile("quick")

# Where the tests were started in the background, Ctrl-C is ignored, and tests of Ctrl-C would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)

# XLA compiles networks four times faster with these, and they then run slower, which nobody notices here. Another
# version may not know them, and would end the process.
_XLA_FLAGS = (
  "--xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1 "
  "--xla_cpu_use_fusion_emitters=false"
)
with contextlib.suppress(importlib.metadata.PackageNotFoundError):
  if importlib.metadata.version("jaxlib").startswith("0.10."):
    os.environ.setdefault("XLA_FLAGS", _XLA_FLAGS)


# The ids of all tests that were collected, slow ones included.
_COLLECTED_IDS = pytest.StashKey[list[str]]()

_ROOT = pathlib.Path(__file__).parent.parent


def pytest_configure(config):
  """Tries more examples where slow tests are run."""
  if "not slow" not in config.option.markexpr:
    hypothesis.settings.load_profile("all")


def pytest_sessionstart(session):
  """Compiles all kernels once, before xdist starts several processes."""
  config = session.config
  whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS and not config.option.collectonly
  if whole and config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
    program = _ROOT / "tests" / "support" / "compile_kernels.py"
    environment = os.environ | {"PYTHONPATH": str(_ROOT)}
    subprocess.run([sys.executable, str(program)], env=environment, check=True)


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(collector, name):
  """Marks as slow the cases of a parametrized test that its mark `quick` leaves out."""
  collected = yield
  cases = collected if isinstance(collected, list) else []
  mark = cases[0].get_closest_marker("quick") if cases else None
  if mark is not None:
    ids = [case.callspec.id for case in cases]
    left_out = mark.kwargs.get("except_for", ())
    for pattern in (*mark.args, *left_out):
      if not fnmatch.filter(ids, pattern):
        raise collector.CollectError(f"A mark of {name} names {pattern!r}, but its cases are {ids}")
    for case, case_id in zip(cases, ids, strict=True):
      is_quick = not mark.args or _matches(case_id, mark.args)
      if not is_quick or _matches(case_id, left_out):
        case.add_marker(pytest.mark.slow)
  return collected


def _matches(case_id, patterns):
  return any(fnmatch.fnmatchcase(case_id, pattern) for pattern in patterns)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
  """Notes the ids of all tests before slow ones are left out."""
  config.stash[_COLLECTED_IDS] = [item.nodeid for item in items]


def pytest_collection_finish():
  """Exempts what exists by now from garbage collection, which is done whenever a game is compiled in parts."""
  gc.collect()
  gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
  """Skips a test that needs a package of another extra than `dev`: networks and Ray are half a gigabyte."""
  try:
    return (yield)
  except errors.MissingPackageError as error:
    pytest.skip(f"not installed: {error}")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
  """Fails in CI if a test was skipped because a package is missing."""
  reporter = session.config.pluginmanager.get_plugin("terminalreporter")
  if os.environ.get("CI") and reporter is not None:
    reasons = {str(report.longrepr[-1]) for report in reporter.stats.get("skipped", [])}
    for reason in sorted(reason for reason in reasons if "not installed" in reason):
      session.exitstatus = pytest.ExitCode.TESTS_FAILED
      reporter.write_line(f"\nWith CI set no test may be left out. {reason}")


@pytest.fixture
def collected_ids(request):
  """The ids of all tests that were collected, slow ones included."""
  return request.config.stash[_COLLECTED_IDS]


@pytest.fixture(autouse=True)
def _seed():
  """Makes solvers without a seed, which draw one from NumPy's global state, the same every time."""
  np.random.seed(0)  # noqa: NPY002
