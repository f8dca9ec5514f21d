"""Interval arithmetic in integers: numbers between two multiples of 2^-128, rounded outwards.

A float is a dyadic rational, so integers represent it exactly, and division rounds in a known direction.
docs/theory/certificates.md has the rules and the proof.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spiel_cfr._util import arguments
from spiel_cfr._util.typed_arguments import typed

Integers = npt.NDArray[Any]

_BITS = 128
_ONE = 1 << _BITS
# A float stands for a rational with a denominator up to _DENOMINATOR, if their relative difference is at most _CLOSE.
_DENOMINATOR = 10**6
_CLOSE = Fraction(1, 1 << 50)
# The relative radius of the interval around any other float.
_WIDTH = Fraction(1, 1 << 48)
# Bounds are reported as multiples of 1 / _STEP.
_STEP = 10**24


class Interval(NamedTuple):
  """Rational bounds on a number: low <= number <= high.

  Attributes:
    low: Fraction. The lower bound.
    high: Fraction. The upper bound.
  """

  low: Fraction
  high: Fraction

  def __repr__(self) -> str:
    """Returns both bounds as floats."""
    return f"[{float(self.low)!r}, {float(self.high)!r}]"

  def __sub__(self, other: "Interval") -> "Interval":
    """Returns bounds on a difference."""
    return Interval(self.low - other.high, self.high - other.low)

  @classmethod
  @typed
  def total(cls, intervals: Iterable["Interval"]) -> "Interval":
    """Returns bounds on a sum."""
    low, high = Fraction(0), Fraction(0)
    for interval in intervals:
      arguments.of_type(interval, "each of intervals", Interval)
      low, high = low + interval.low, high + interval.high
    return cls(low, high)

  def widened(self) -> "Interval":
    """Returns the interval with 10^-24 more on both sides."""
    return Interval(self.low - Fraction(1, _STEP), self.high + Fraction(1, _STEP))

  def decimals(self) -> list[str]:
    """Returns both bounds as exact decimal numbers; they are multiples of 10^-24."""
    return [_decimal(bound) for bound in self]


def _decimal(bound: Fraction) -> str:
  units = int(bound * _STEP)
  whole, rest = divmod(abs(units), _STEP)
  return f"{'-' if units < 0 else ''}{whole}.{rest:024d}"


class IntervalArray(NamedTuple):
  """Lower and upper bounds on an array of numbers, in units of 2^-128.

  Attributes:
    low: array of Python integers (n,). The lower bounds.
    high: array of Python integers (n,). The upper bounds.
  """

  low: Integers
  high: Integers

  @classmethod
  def around(cls, numbers: Iterable[Interval]) -> "IntervalArray":
    """Returns rational intervals, rounded outwards to multiples of 2^-128."""
    pairs = [(_floor(low * _ONE), -_floor(-high * _ONE)) for low, high in numbers]
    table = np.array(pairs, object).reshape(-1, 2)
    return cls(table[:, 0], table[:, 1])

  @classmethod
  def ones(cls, length: int) -> "IntervalArray":
    """Returns exact ones."""
    return cls(np.full(length, _ONE, object), np.full(length, _ONE, object))

  @classmethod
  def zeros(cls, length: int) -> "IntervalArray":
    """Returns exact zeros."""
    return cls(np.zeros(length, object), np.zeros(length, object))

  def take(self, index: Any) -> "IntervalArray":
    """Returns the bounds on the numbers at an index."""
    return IntervalArray(self.low[index], self.high[index])

  def put(self, index: Any, others: "IntervalArray") -> None:
    """Writes bounds on the numbers at an index."""
    self.low[index], self.high[index] = others.low, others.high

  def times(self, others: "IntervalArray") -> "IntervalArray":
    """Returns bounds on the products with `others`. The numbers of `self` must be at least 0."""
    low = np.where(others.low >= 0, self.low, self.high) * others.low
    high = np.where(others.high >= 0, self.high, self.low) * others.high
    return IntervalArray(low >> _BITS, -(-high >> _BITS))

  def add_at(self, index: Any, others: "IntervalArray") -> None:
    """Adds numbers at an index, which may repeat."""
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
  """Returns the rational that a float stands for: its denominator is up to 10^6, its relative difference up to 2^-50.

  Returns None if there is no such rational.
  """
  exact = Fraction(number)
  nearest = exact.limit_denominator(_DENOMINATOR)
  return nearest if abs(nearest - exact) <= abs(exact) * _CLOSE else None


def payoff(number: float) -> Interval:
  """Returns the rational that a payoff stands for, or else an interval of 2^-48 of its size on both sides."""
  exact = rational(number)
  return _around(number) if exact is None else Interval(exact, exact)


def chances(numbers: Sequence[float]) -> list[Interval]:
  """Returns the probabilities of a chance node.

  If all floats stand for rationals with the sum 1, these are returned. Otherwise each interval has 2^-48 of the float's
  size on both sides.
  """
  rationals = [exact for number in numbers if (exact := rational(number)) is not None]
  if len(rationals) == len(numbers) and sum(rationals) == 1:
    return [Interval(exact, exact) for exact in rationals]
  return [_around(number) for number in numbers]


def _around(number: float) -> Interval:
  exact = Fraction(number)
  return Interval(exact - abs(exact) * _WIDTH, exact + abs(exact) * _WIDTH)


def distribution(numbers: Sequence[float]) -> list[Interval]:
  """Returns the probabilities of an infoset: the floats, divided by their exact sum."""
  exact = [Fraction(number) for number in numbers]
  total = sum(exact)
  return [Interval(number / total, number / total) for number in exact]
