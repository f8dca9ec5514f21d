"""Examples in docstrings run as shown."""

import doctest
import importlib
import pkgutil

import spiel_cfr


def test_docstrings():
  modules = [module.name for module in pkgutil.walk_packages(spiel_cfr.__path__, "spiel_cfr.")]
  results = {name: doctest.testmod(importlib.import_module(name)) for name in modules}
  assert [name for name, result in results.items() if result.failed] == []
  assert sum(result.attempted for result in results.values()) >= 5
