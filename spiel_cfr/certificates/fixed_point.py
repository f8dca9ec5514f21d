"""Interval arithmetic in integers: numbers between two multiples of 2^-128, rounded outwards.

A float is a dyadic rational, so integers can represent and divide it without any rounding that is not accounted for.
docs/theory/certificates.md has the rules and the proof.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[Any]

_BITS = 128
_ONE = 1 << _BITS
# The largest denominator of a rational that a float stands for.
_DENOMINATOR = 10**6
# The relative error of a float that stands for a rational.
_CLOSE = Fraction(1, 1 << 50)
# The relative width of the interval around a float that stands for none.
_WIDTH = Fraction(1, 1 << 48)
# Bounds are reported as multiples of this.
_STEP = 10**24


class Interval(NamedTuple):
  """Two rational bounds of a number: low <= number <= high."""

  low: Fraction
  high: Fraction

  def __repr__(self) -> str:
    """Returns both as floats; the fractions are exact."""
    return f"[{float(self.low)!r}, {float(self.high)!r}]"

  def __sub__(self, other: "Interval") -> "Interval":
    """Returns the bounds of a difference."""
    return Interval(self.low - other.high, self.high - other.low)

  @classmethod
  def total(cls, intervals: Iterable["Interval"]) -> "Interval":
    """Returns the bounds of a sum."""
    low, high = Fraction(0), Fraction(0)
    for each in intervals:
      low, high = low + each.low, high + each.high
    return cls(low, high)

  def decimals(self) -> list[str]:
    """Returns both bounds as decimal numbers, exactly; they are multiples of 10^-24."""
    return [_decimal(bound) for bound in self]


def _decimal(bound: Fraction) -> str:
  units = int(bound * _STEP)
  whole, rest = divmod(abs(units), _STEP)
  return f"{'-' if units < 0 else ''}{whole}.{rest:024d}"


class Bounds(NamedTuple):
  """Lower and upper bounds of an array of numbers, in units of 2^-128.

  Attributes:
    low, high: arrays of Python's integers, of one shape.
  """

  low: Integers
  high: Integers

  @classmethod
  def around(cls, numbers: Iterable[Interval]) -> "Bounds":
    """Returns the bounds of rational intervals, rounded outwards."""
    pairs = [(_floor(low * _ONE), -_floor(-high * _ONE)) for low, high in numbers]
    table = np.array(pairs, object).reshape(-1, 2)
    return cls(table[:, 0], table[:, 1])

  @classmethod
  def ones(cls, length: int) -> "Bounds":
    """Returns ones, which are exact."""
    return cls(np.full(length, _ONE, object), np.full(length, _ONE, object))

  @classmethod
  def zeros(cls, length: int) -> "Bounds":
    """Returns zeros, which are exact."""
    return cls(np.zeros(length, object), np.zeros(length, object))

  def take(self, index: Any) -> "Bounds":
    """Returns the bounds of some of the numbers."""
    return Bounds(self.low[index], self.high[index])

  def put(self, index: Any, others: "Bounds") -> None:
    """Writes the bounds of some of the numbers."""
    self.low[index], self.high[index] = others.low, others.high

  def times(self, others: "Bounds") -> "Bounds":
    """Returns the bounds of products. These numbers are not negative; the others may be."""
    low = np.where(others.low >= 0, self.low, self.high) * others.low
    high = np.where(others.high >= 0, self.high, self.low) * others.high
    return Bounds(low >> _BITS, -(-high >> _BITS))

  def add_at(self, index: Any, others: "Bounds") -> None:
    """Adds numbers at places that may repeat."""
    np.add.at(self.low, index, others.low)
    np.add.at(self.high, index, others.high)

  def intervals(self) -> list[Interval]:
    """Returns each number's interval, rounded outwards to multiples of 10^-24."""
    return [
      Interval(
        Fraction(_floor(Fraction(low, _ONE) * _STEP), _STEP),
        Fraction(-_floor(Fraction(-high, _ONE) * _STEP), _STEP),
      )
      for low, high in zip(self.low.tolist(), self.high.tolist(), strict=True)
    ]


def _floor(number: Fraction) -> int:
  return number.numerator // number.denominator


def rational(number: float) -> Fraction | None:
  """Returns the rational that a float stands for: its denominator is up to 10^6, they differ by 2^-50 of it or less."""
  exact = Fraction(number)
  found = exact.limit_denominator(_DENOMINATOR)
  return found if abs(found - exact) <= abs(exact) * _CLOSE else None


def payoff(number: float) -> Interval:
  """Returns the rational that a payoff stands for, or 2^-48 of its size on both sides."""
  found = rational(number)
  return _around(number) if found is None else Interval(found, found)


def chances(numbers: Sequence[float]) -> list[Interval]:
  """Returns the probabilities of a chance node.

  They are the rationals that the floats stand for if those sum to 1; else each has 2^-48 of its size on both sides.
  """
  found = [rational(number) for number in numbers]
  known = [number for number in found if number is not None]
  if len(known) == len(numbers) and sum(known) == 1:
    return [Interval(number, number) for number in known]
  return [_around(number) for number in numbers]


def _around(number: float) -> Interval:
  exact = Fraction(number)
  return Interval(exact - abs(exact) * _WIDTH, exact + abs(exact) * _WIDTH)


def distribution(numbers: Sequence[float]) -> list[Interval]:
  """Returns the probabilities that floats at an infoset stand for: each divided by their exact sum."""
  exact = [Fraction(number) for number in numbers]
  total = sum(exact)
  return [Interval(number / total, number / total) for number in exact]
