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

Reference numbers to check a solver against. Values and NashConv have proven bounds, by
[certificates](theory/certificates.md). The atlas keeps the bounds; a certificate of a small game is made by
`spiel_cfr.certify(entry.game, spiel_cfr.solve_lp(entry.game)).save("game.json")`. Payoffs are in the games' units.
`entry.load()` is the game for OpenSpiel, `entry.compile()` for this library.

## How to cite

Name the game's string, the version of OpenSpiel ({version}), and this package with its version, as in: "the value of
leduc_poker is -0.085606424078 (spiel_cfr, atlas of solved games; OpenSpiel {version})". `CITATION.cff` has the
package's record. Cite the source of a number that was published before: the last section names it.

## How to compute it again

`make atlas` computes all numbers again, prints for each game what has changed, and writes this page. Most games take
less than a second, the largest some minutes each. An interrupted run continues where it was.
`python examples/atlas.py --games=kuhn_poker` computes some games only. A test computes a tenth of the games of up to
20,000 histories, another tenth each time.

## Columns

- *infosets*: the number of each player's infosets; "own" if they are the player's own observations and actions
  (`infostate="history"`) instead of OpenSpiel's information states.
- *histories*, *terminals*: their numbers; "public" marks numbers of public states, in vector form.
- *value*: the value for player 0 of a two-player constant-sum game. All digits shown are proven.
- *fraction*: a fraction within the bounds of the value, if they are narrower than 10^-12. Its denominator is up to
  2,000.
- *uniform*: NashConv of the uniform policy. Exploitability is half of it in two-player games.
- *solution*: NashConv of the solution of a linear program (`lp`), of a solver of the [catalogue](solvers.md) after the
  given number of iterations, or of the [quantal response](quantal_responses.md) of the given rationality.
- *unique*: "yes" if all equilibrium strategies of the player have the same sequence form, to 10^-5 by linear programs;
  player 0, then player 1.

## Games by other names

- `NAME.efg` is a game of Gambit's catalogue or tests, or of a paper, rewritten so that OpenSpiel reads it.
  `atlas.load("nau_2004_4.efg")` returns it. The number after the year is a figure or a section.
- `river_...` and `turn_...` are endgames of hold'em; `spiel_cfr.atlas.sources.ENDGAMES` has ranges, pot and stack. Bets
  are half the pot, the pot, or all-in.
- `dice_endgame` is liar's dice with a number of dice for each player, see below.

## Games that are missing

- Abrupt phantom_ttt and dark_hex(board_size=3): [private moves](private_moves.md) has their numbers.
- negotiation: OpenSpiel samples its chance moves inside the game, so that no exact numbers exist.
- tiny_bridge_4p: about 10^10 histories, and no compact form.
- Games of perfect information, which need no equilibrium.

## Liar's dice of others

Thomas Ahle's tables (github.com/thomasahle/snyd) have values of liar's dice with one die against one, two against one
and one against two, of 2 to 6 sides, with three rules: normal, joker and stairs. `dice_endgame` is this game. Its
values are compared in this atlas. For games of 12 to 20 bids, `tests/independent/test_published_dice.py` bounds the
value with a solver of its own. All published values agree.

Stairs need an explanation. By the rule, dice that are a permutation of 1, 2 and so on count as one die more, of any
face. The program behind the tables compares dice in the order in which they were rolled: 1 and 2 count, 2 and 1 do not.
So its values are those of `rule=ordered_stairs`; `rule=stairs` has those of the rule as it is written. Both are in the
table below. With one die each there is no difference.

An older readme of the tables has -3/35 for one die of five sides against one, with the normal rule. The output of its
program is -3/25, which is right.

## All games

| game | infosets | histories | terminals | value | fraction | uniform | solution | unique |
| --- | --- | ---: | ---: | --- | --- | --- | --- | --- |
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
  public = " public" if entry.form == "vector" else ""
  unique = ""
  if entry.unique is not None:
    words = {True: "yes", False: "no", None: "?"}
    unique = ", ".join(words[each] for each in entry.unique)
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
  for each in entry.published:
    verdict = ""
    if entry.value is not None:
      verdict = ", which agrees" if each.agrees_with(entry.value) else ", which does not agree"
    result.append(f"{each.source}: {each.value}{verdict}")
  return [f"- `{entry.game}`: {text}." for text in result]
