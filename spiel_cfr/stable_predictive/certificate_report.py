"""What a certificate is: inequalities, the worst case of each, and where that was."""

import dataclasses
from collections.abc import Callable

import numpy as np

from spiel_cfr._numba.arrays import Float64s


@dataclasses.dataclass(frozen=True)
class Check:
  """One promise of the theory, at all points and iterations.

  Attributes:
    name: what is promised.
    holds: whether it was kept everywhere.
    ratio: the largest measured value, as a fraction of its bound; 1 has no slack left.
    where: the point of that ratio; if the promise was broken, the point where that happened first.
    iteration: when that was.
    value: what was measured there.
    bound: what it must not exceed.
  """

  name: str
  holds: bool
  ratio: float
  where: str
  iteration: int
  value: float
  bound: float

  def __str__(self) -> str:
    """Returns a line of the report."""
    verdict = "holds " if self.holds else "BROKEN"
    return (
      f"{verdict} {self.name:<44} {self.ratio:9.2e}  {self.value:9.2e} <= {self.bound:9.2e}  "
      f"at {self.where}, iteration {self.iteration}"
    )


@dataclasses.dataclass(frozen=True)
class Certificate:
  """What `stable_predictive.certificate` has found.

  Attributes:
    checks: every promise.
    iterations: how many there were.
    gap: NashConv of the average strategies, in the game that was solved.
    guarantee: what the theory promises for it before the run, None where it promises nothing.
    bound: what it promises for it given the errors of the predictions in this run, None where it promises nothing.
    notes: what the theory does not cover here, and what it says past the horizon.
  """

  checks: tuple[Check, ...]
  iterations: int
  gap: float
  guarantee: float | None
  bound: float | None
  notes: tuple[str, ...]

  @property
  def holds(self) -> bool:
    """Whether every promise was kept."""
    return all(check.holds for check in self.checks)

  @property
  def broken(self) -> tuple[Check, ...]:
    """The promises that were not kept."""
    return tuple(check for check in self.checks if not check.holds)

  def __str__(self) -> str:
    """Returns the report: for each promise the least slack, as value / bound, and where."""
    before, after = (
      "none" if each is None else f"{each:.3e}" for each in (self.guarantee, self.bound)
    )
    return "\n".join(
      [
        f"{self.iterations} iterations; NashConv {self.gap:.3e}, guaranteed by this run: {after}, before it: {before}",
        *map(str, self.checks),
        *self.notes,
      ]
    )


class WorstCases:
  """Keeps the worst case of each check, or its first violation.

  Attributes:
    rounding: what rounding may add to sums of many numbers, relative to the bound.
    iteration: the one that is being checked.
    checks: what was found so far, by name.
  """

  def __init__(self, rounding: float) -> None:
    """Begins with none."""
    self.rounding = rounding
    self.iteration = 0
    self.checks: dict[str, Check] = {}

  def record(
    self,
    name: str,
    values: float | Float64s,
    bounds: float | Float64s,
    rounding: float | Float64s,
    where: Callable[[int], str],
  ) -> None:
    """Checks values <= bounds, up to rounding.

    Args:
      name: of the check.
      values: what was measured at each point, or at the only one.
      bounds: what they must not exceed, of the same shape.
      rounding: what may be added to them besides.
      where: names a point.
    """
    values, bounds = np.atleast_1d(values), np.atleast_1d(bounds)
    known = self.checks.get(name)
    if not len(values) or (known and not known.holds):
      return
    ratios = np.divide(values, bounds, out=np.zeros(len(values)), where=bounds > 0)
    broken = ~(values <= bounds * (1 + self.rounding) + rounding)
    worst = int(np.argmax(np.where(broken, np.inf, ratios)))
    if known and not broken[worst] and ratios[worst] <= known.ratio:
      return
    self.checks[name] = Check(
      name,
      not broken[worst],
      float(ratios[worst]),
      where(worst),
      self.iteration,
      float(values[worst]),
      float(bounds[worst]),
    )
