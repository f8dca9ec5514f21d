"""Readers of input as functions that take any input of a kind, for the property tests and the fuzzer.

Each returns whether the input was accepted. Refused, it must be with a `SpielCFRError`; any other exception comes out,
and is a bug.
"""

import functools
import math
import pathlib
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

import spiel_cfr
from spiel_cfr import errors
from spiel_cfr._util import files

MAX_NODES = 2000


@functools.cache
def _folder() -> "tempfile.TemporaryDirectory[str]":
  return tempfile.TemporaryDirectory()


def file(name: str, content: bytes) -> pathlib.Path:
  """Writes a file into a folder that is removed when the process ends."""
  path = pathlib.Path(_folder().name) / name
  path.write_bytes(content)
  return path


@functools.cache
def kuhn() -> spiel_cfr.CompiledGame:
  return spiel_cfr.compile_game("kuhn_poker")


def _accepts(read: Callable[..., Any], *arguments: Any, **settings: Any) -> bool:
  try:
    read(*arguments, **settings)
  except errors.SpielCFRError as error:
    assert str(error)
    return False
  return True


def compiles(game: str) -> bool:
  """Compiles a game string and solves the game."""

  def solve() -> None:
    solver = spiel_cfr.CFRPlusSolver(spiel_cfr.compile_game(game, max_nodes=MAX_NODES))
    solver.run(3)
    assert math.isfinite(solver.nash_conv())

  return _accepts(solve)


def compiles_efg(text: bytes) -> bool:
  """Compiles a game in Gambit's extensive form."""
  return compiles(f"efg_game(filename={file('game.efg', text)})")


def compiles_nfg(text: bytes) -> bool:
  """Compiles a game in Gambit's normal form."""
  return compiles(f"nfg_game(filename={file('game.nfg', text)})")


def evaluates(policy: Any) -> bool:
  """Evaluates a policy for Kuhn poker; NashConv must then be a number."""

  def evaluate() -> None:
    value = spiel_cfr.nash_conv(kuhn(), policy)
    assert isinstance(value, float)
    assert -1e-5 < value < 8

  return _accepts(evaluate)


def restores(content: bytes, *, forge: bool) -> bool:
  """Reads a checkpoint of Kuhn poker, with a forged checksum or as it is; a refused one changes nothing."""
  path = file("checkpoint.npz", content)
  if forge:
    content = content[: -files._DIGEST_BYTES]
    with open(path, "w+b") as opened:
      opened.write(content)
      opened.write(files._digest(opened, len(content)))
  solver = spiel_cfr.CFRSolver(kuhn())
  before = solver.state_dict()
  accepted = _accepts(solver.restore, path)
  if not accepted:
    for name, value in solver.state_dict().items():
      np.testing.assert_array_equal(value, before[name])
  return accepted


def reads_trace(content: bytes) -> bool:
  """Reads a trace; its rows must then be rows."""

  def read() -> None:
    rows = spiel_cfr.runs.read_trace(file("trace.csv", content)).rows
    assert all(isinstance(row, spiel_cfr.runs.Row) for row in rows)

  return _accepts(read)
