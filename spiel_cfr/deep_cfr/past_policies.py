"""A player's networks of all iterations, of which Single Deep CFR's average is made."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s, require
from spiel_cfr.deep_cfr.network import Array


class Past(NamedTuple):
  """A player's networks of some iterations, oldest first; nothing in it ever changes.

  Attributes:
    parameters: shape (iterations, networks, parameters).
    scales: what outputs are multiplied by, shape (iterations, networks).
    weights: of iterations, in the average.
    iterations: which ones.
  """

  parameters: Array
  scales: Float64s
  weights: Float64s
  iterations: Int64s


def kept(parameters: Array, scales: Float64s, weight: float, iteration: int) -> Past:
  """Returns a copy of a player's networks after an iteration."""
  numbers = np.array([weight]), np.array([iteration])
  return Past(parameters[None].copy(), scales[None].copy(), *numbers)


def nothing(parameters: Array, scales: Float64s) -> Past:
  """Returns a past of no iterations, for networks like these."""
  return Past(parameters[None][:0], scales[None][:0], np.zeros(0), np.zeros(0, np.int64))


def joined(parts: Sequence[Past]) -> Past:
  """Returns one after the other."""
  return Past(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def check_past(state: Mapping[str, Array], done: int) -> None:
  """Checks the fields of a past, of the right types and of the right shapes but for their lengths.

  Raises:
    ValueError: it is not that of so many iterations.
  """
  require(all(len(state[name]) == done for name in Past._fields), "every iteration has networks")
  for name in ("parameters", "scales", "weights"):
    require(np.isfinite(state[name]), f"{name} are finite")
  require(state["scales"] >= 0, "scales are not negative")
  require(state["weights"] >= 0, "weights are not negative")
  require(state["iterations"] == np.arange(1, done + 1), "iterations follow each other")
