"""Page of the atlas, in Markdown."""

from collections.abc import Iterable
from fractions import Fraction

from spiel_cfr._util import arguments
from spiel_cfr._util.doors import typed
from spiel_cfr.atlas.entries import Entry
from spiel_cfr.certificates import Interval

_DENOMINATOR, _NARROW = 2_000, Fraction(1, 10**12)
_HEAD = """# The atlas of solved games

```python
from spiel_cfr import atlas

entry = atlas.find("leduc_poker")
assert entry.value.low <= -0.0856064240780 <= entry.value.high
assert entry.num_infosets == (468, 468)
```

Reference numbers to check a solver against. Values and NashConv have exact bounds, by
[certificates](theory/certificates.md). Payoffs are in the games' units. `make atlas` computes all numbers again, prints
those that changed, and writes this page.

- *value*: the value for player 0 of a two-player constant-sum game. All digits shown are proven.
- *fraction*: a fraction within the bounds of the value, if they are narrower than 10^-12. Its denominator is up to
  2,000.
- *uniform*: NashConv of the uniform policy. Exploitability is half of it in two-player games.
- *solution*: NashConv of the solution of a linear program (`lp`), or of a solver of the [catalogue](solvers.md) after
  the given number of iterations.
- *unique*: "yes" if all equilibrium strategies of the player have the same sequence form; player 0, then player 1.
- *published*: values published elsewhere, and whether they agree.

To cite a number, name the game's string, the version of OpenSpiel ({version}) and this package.

| game | infosets | histories | value | fraction | uniform | solution | unique |
| --- | --- | --- | --- | --- | --- | --- | --- |
"""


@typed
def page(entries: Iterable[Entry], version: str) -> str:
  """Returns the text of docs/atlas.md; `version` is OpenSpiel's."""
  arguments.of_type(version, "version", str)
  listed = list(entries)
  for entry in listed:
    arguments.of_type(entry, "each of entries", Entry)
  lines = [_HEAD.replace("{version}", version).rstrip("\n"), *map(_row, listed)]
  notes = [note for entry in listed for note in _notes(entry)]
  return "\n".join([*lines, "", "## Facts and published values", "", *notes, ""])


def _row(entry: Entry) -> str:
  infosets = " + ".join(f"{count:,}" for count in entry.num_infosets)
  unique = ""
  if entry.unique is not None:
    unique = ", ".join("yes" if each else "no" for each in entry.unique)
  cells = [
    f"`{entry.game}`",
    infosets,
    f"{entry.num_states:,}",
    "" if entry.value is None else certain(entry.value),
    "" if entry.value is None else fraction(entry.value),
    certain(entry.uniform_nash_conv, 9),
    f"{float(entry.solution_nash_conv.high):z.1e} ({entry.solution})",
    unique,
  ]
  return f"| {' | '.join(cells)} |"


def certain(interval: Interval, most: int = 12) -> str:
  """Returns the most decimals, up to `most`, to which both bounds round alike; both bounds if there are none."""
  for decimals in range(most, 0, -1):
    low, high = (f"{float(bound):z.{decimals}f}" for bound in interval)
    if low == high:
      return low
  return f"{float(interval.low):z.6f} to {float(interval.high):z.6f}"


def fraction(interval: Interval) -> str:
  """Returns the fraction with a small denominator in a narrow interval; an empty string if there is none."""
  low, high = interval
  found = ((low + high) / 2).limit_denominator(_DENOMINATOR)
  return str(found) if low <= found <= high <= low + _NARROW else ""


def _notes(entry: Entry) -> list[str]:
  result = [*entry.facts]
  if entry.best_efce is not None:
    result.append(
      f"the best extensive-form correlated equilibrium has welfare {entry.best_efce:z.9g}"
    )
  for each in entry.published:
    verdict = "agrees" if entry.agrees else "does not agree"
    result.append(f"{each.source}: {each.value}, which {verdict}")
  return [f"- `{entry.game}`: {text}." for text in result]
