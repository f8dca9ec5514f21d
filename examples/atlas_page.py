"""Text of the tables of docs/atlas.md; a module of examples/atlas.py."""

from collections.abc import Sequence
from fractions import Fraction

from spiel_cfr.atlas import Entry
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


def page(old: str, entries: Sequence[Entry], version: str) -> str:
  """Returns the text of docs/atlas.md with new tables.

  Args:
    old: the text with other tables.
    entries: the entries of the atlas.
    version: the version of OpenSpiel.
  """
  rows = "\n".join(map(_row, entries))
  notes = "\n".join(note for entry in entries for note in _notes(entry))
  head = old[: old.index(MARK)] + MARK + _HEAD.format(version=version)
  return f"{head}{rows}\n\n## Facts and published values\n\n{notes}\n"


def _row(entry: Entry) -> str:
  infosets = " + ".join(f"{count:,}" for count in entry.num_infosets)
  public = " public" if entry.form == "vector" else ""
  unique = ""
  if entry.unique is not None:
    words = {True: "yes", False: "no", None: "?"}
    unique = ", ".join(words[is_unique] for is_unique in entry.unique)
  cells = [
    f"`{entry.game}`",
    infosets + (" own" if entry.infostate else ""),
    f"{entry.num_states:,}{public}",
    f"{entry.num_terminals:,}{public}",
    "" if entry.value is None else certain(entry.value),
    "" if entry.value is None else fraction(entry.value),
    certain(entry.uniform_nash_conv, 9),
    f"{float(entry.solution_nash_conv.high):z.1e} ({entry.solution})",
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


def _notes(entry: Entry) -> list[str]:
  """Returns the lines on facts and published values of a game."""
  result = [*entry.facts]
  if entry.polytope is not None:
    dimension, vertices, facets = entry.polytope
    result.append(
      "the correlated equilibria of the normal form are "
      + (
        "a single point"
        if dimension == 0
        else f"a polytope of dimension {dimension} with {vertices} vertices and {facets} facets"
      )
      + f"; the largest sum of payoffs in one is {entry.best_ce}"
    )
  if entry.best_efce is not None:
    result.append(
      f"the best extensive-form correlated equilibrium has welfare {entry.best_efce:z.9g}"
    )
  if entry.efce_bound is not None:
    result.append(
      f"extensive-form correlated equilibria have a welfare of at most {entry.efce_bound:z.9g}"
    )
  for published in entry.published:
    verdict = ""
    if entry.value is not None:
      verdict = ", which agrees" if published.agrees_with(entry.value) else ", which does not agree"
    result.append(f"{published.source}: {published.value}{verdict}")
  return [f"- `{entry.game}`: {text}." for text in result]
