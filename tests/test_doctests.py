"""What docstrings show is what happens."""

import doctest
import importlib
import pkgutil

import pytest

import spiel_cfr

_MODULES = [module.name for module in pkgutil.walk_packages(spiel_cfr.__path__, "spiel_cfr.")]


@pytest.mark.parametrize("name", _MODULES)
def test_docstrings(name):
  results = doctest.testmod(importlib.import_module(name))
  assert results.failed == 0


def test_there_are_some():
  found = (doctest.DocTestFinder().find(importlib.import_module(name)) for name in _MODULES)
  assert sum(len(test.examples) for tests in found for test in tests) >= 5
