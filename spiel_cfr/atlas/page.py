"""Text of the page docs/atlas.md."""

from collections.abc import Iterable
from fractions import Fraction

from spiel_cfr._util import arguments
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.atlas.entries import Entry
from spiel_cfr.certificates import Interval

# The largest denominator of a fraction, and the largest width of the bounds for which it is shown.
_DENOMINATOR, _NARROW = 2_000, Fraction(1, 10**12)
_HEAD = """# The atlas of solved games

The atlas has reference numbers against which to check a solver: sizes of games, values, and NashConv of the uniform
policy and of a solution. Values and NashConv are bounds, proven by [certificates](theory/certificates.md).

```python
from spiel_cfr import atlas

entry = atlas.find("leduc_poker")
assert entry.value.low <= -0.0856064240780 <= entry.value.high
assert entry.num_infosets == (468, 468)
```

Payoffs are in the units of each game. `entry.load()` returns the game for OpenSpiel, `entry.compile()` for this
library. `atlas.entries()` lists all entries. The atlas has the bounds, but no policies and no certificates. For a small
game, `spiel_cfr.certify(entry.game, spiel_cfr.solve_lp(entry.game)).save("game.json")` makes a certificate.

## How to cite

Name the game's string, the version of OpenSpiel ({version}), and this package with its version, as in: "the value of
leduc_poker is -0.085606424078 (spiel_cfr, atlas of solved games; OpenSpiel {version})". `CITATION.cff` has the
package's record. If a number was published before, cite its source, which the last section names.

## How to compute it again

`make atlas` computes all numbers again, prints what has changed for each game, and writes this page. Most games take
less than a second, the largest ones some minutes. After an interruption, the next run continues at the same game.
`python examples/atlas.py --games=kuhn_poker` computes only the named games. A test computes a tenth of the games of up
to 20,000 histories, another tenth each time.

## Columns

- *infosets*: the number of each player's infosets. "own" marks infosets that are the player's own observations and
  actions (`infostate="history"`) instead of OpenSpiel's information states.
- *histories*, *terminals*: the numbers of all histories and of terminal ones. "public" marks numbers of public states,
  in vector form.
- *value*: the value for player 0 of a two-player constant-sum game. All digits shown are proven.
- *fraction*: a fraction with a denominator of up to 2,000 within the bounds of the value, if these are narrower than
  10^-12.
- *uniform*: NashConv of the uniform policy. In two-player games, exploitability is half of it.
- *solution*: NashConv of a solution, and its method in brackets: a linear program (`lp`), a solver of the
  [catalogue](solvers.md) with its number of iterations, or the [quantal response](quantal_responses.md) equilibrium of
  the given rationality.
- *unique*: "yes" if all equilibrium strategies of a player have the same sequence form, to 10^-5, by linear programs.
  Player 0 comes first, then player 1.

## Games by other names

- `NAME.efg` is a game of Gambit's catalogue or tests, or of a paper, rewritten so that OpenSpiel reads it.
  `atlas.load("nau_2004_4.efg")` returns it. The number after the year is a figure or a section.
- `river_...` and `turn_...` are endgames of hold'em. `spiel_cfr.atlas.sources.ENDGAMES` has their ranges, pots and
  stacks. Bets are half the pot, the pot, or all-in.
- `dice_endgame` is liar's dice with a number of dice for each player, see
  [below](#published-values-of-liars-dice).

## Games that are missing

- Abrupt phantom_ttt and dark_hex(board_size=3): [private moves](private_moves.md) has their numbers.
- negotiation: OpenSpiel samples its chance moves inside the game, so that there are no exact numbers.
- tiny_bridge_4p: it has about 10^10 histories and no compact form.
- Games of perfect information: they need no equilibrium.

## Published values of liar's dice

Thomas Ahle's tables (github.com/thomasahle/snyd) have values of liar's dice with one die against one, two against one
and one against two, of 2 to 6 sides, by three rules: normal, joker and stairs. `dice_endgame` is this game, and the
last section compares the values. For games of 12 to 20 bids, `tests/independent/test_published_dice.py` bounds the
value with a solver of its own. All published values agree.

The rule "stairs" has two readings. As it is written, dice that are a permutation of 1, 2 and so on count as one die
more, of any face. The program behind the tables compares dice in the order in which they were rolled: 1 and 2 count, 2
and 1 do not. So its values are those of `rule=ordered_stairs`; `rule=stairs` is the rule as it is written. The table
below has both. With one die each there is no difference.

An older readme of the tables has -3/35 for one die of five sides against one, by the normal rule. The output of its
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
