"""Text of the tables of docs/atlas.md; a module of examples/atlas.py."""

from collections.abc import Sequence
from fractions import Fraction

from spiel_cfr.atlas import SolvedGame
from spiel_cfr.certificates import Interval

# The line of docs/atlas.md behind which `make atlas` writes the tables.
MARK = "<!-- The rest of the page is written by `make atlas`. -->\n"
# The largest denominator of a fraction, and the largest width of the bounds for which it is shown.
_DENOMINATOR, _NARROW = 2_000, Fraction(1, 10**12)
_HEAD = """
Computed with OpenSpiel {version}.

| game | infosets | histories | terminals | value | fraction | uniform | solution | unique |
| --- | --- | ---: | ---: | --- | --- | --- | --- | --- |
"""


def page(old: str, games: Sequence[SolvedGame], version: str) -> str:
  """Returns the text of docs/atlas.md with new tables.

  Args:
    old: the text with other tables.
    games: the games of the atlas.
    version: the version of OpenSpiel.
  """
  rows = "\n".join(map(_row, games))
  notes = "\n".join(note for solved in games for note in _notes(solved))
  head = old[: old.index(MARK)] + MARK + _HEAD.format(version=version)
  return f"{head}{rows}\n\n## Facts and published values\n\n{notes}\n"


def _row(solved: SolvedGame) -> str:
  infosets = " + ".join(f"{count:,}" for count in solved.num_infosets)
  public = " public" if solved.form == "vector" else ""
  unique = ""
  if solved.unique is not None:
    words = {True: "yes", False: "no", None: "?"}
    unique = ", ".join(words[is_unique] for is_unique in solved.unique)
  cells = [
    f"`{solved.game}`",
    infosets + (" own" if solved.infostate else ""),
    f"{solved.num_states:,}{public}",
    f"{solved.num_terminals:,}{public}",
    "" if solved.value is None else certain(solved.value),
    "" if solved.value is None else fraction(solved.value),
    certain(solved.uniform_nash_conv, 9),
    f"{float(solved.solution_nash_conv.high):z.1e} ({solved.solution})",
    unique,
  ]
  return f"| {' | '.join(cells)} |"


def certain(interval: Interval, most: int = 12) -> str:
  """Returns the decimals, up to `most`, to which both bounds round alike; both bounds if not even one is alike."""
  for decimals in range(most, 0, -1):
    low, high = (f"{float(bound):z.{decimals}f}" for bound in interval)
    if low == high:
      return low
  return f"{float(interval.low):z.6f} to {float(interval.high):z.6f}"


def fraction(interval: Interval) -> str:
  """Returns the fraction with a small denominator in a narrow interval; an empty string if there is none."""
  low, high = interval
  candidate = ((low + high) / 2).limit_denominator(_DENOMINATOR)
  return str(candidate) if low <= candidate <= high <= low + _NARROW else ""


def _notes(solved: SolvedGame) -> list[str]:
  """Returns the lines on facts and published values of a game."""
  result = [*solved.facts]
  if solved.polytope is not None:
    dimension, vertices, facets = solved.polytope
    result.append(
      "the correlated equilibria of the normal form are "
      + (
        "a single point"
        if dimension == 0
        else f"a polytope of dimension {dimension} with {vertices} vertices and {facets} facets"
      )
      + f"; the largest sum of payoffs in one is {solved.best_ce}"
    )
  if solved.best_efce is not None:
    result.append(
      f"the best extensive-form correlated equilibrium has welfare {solved.best_efce:z.9g}"
    )
  if solved.efce_bound is not None:
    result.append(
      f"extensive-form correlated equilibria have a welfare of at most {solved.efce_bound:z.9g}"
    )
  for published in solved.published:
    verdict = ""
    if solved.value is not None:
      verdict = (
        ", which agrees" if published.agrees_with(solved.value) else ", which does not agree"
      )
    result.append(f"{published.source}: {published.value}{verdict}")
  return [f"- `{solved.game}`: {text}." for text in result]
