"""Ranges and endgames as people type them."""

import doctest
import re

import numpy as np
import pytest

import spiel_cfr
from spiel_cfr import errors
from spiel_cfr.poker import cards, ranges


def hands(text):
  """Returns the hands of a range as sets of cards, with their weights."""
  weights = ranges.parse_range(text)
  names = [
    frozenset(cards.card_name(card) for card in hand) for hand in cards.file_hands().tolist()
  ]
  return {name: weight for name, weight in zip(names, weights.tolist(), strict=True) if weight}


@pytest.mark.parametrize(
  ("text", "count"),
  [
    ("AA", 6), ("AK", 16), ("KA", 16), ("AKs", 4), ("AKo", 12), ("TT+", 30), ("A9s+", 20), ("99-66", 24),
    ("66-99", 24), ("A5s-A2s", 16), ("AhKh", 1), ("random", 1326), ("22+", 78), ("AA, KK ,AKs:0.5", 16),
    ("random,AA:0", 1320), ("KQ+", 32), ("K2o+", 132),
  ],
)  # fmt: skip
def test_counts(text, count):
  assert (ranges.parse_range(text) > 0).sum() == count


@pytest.mark.parametrize(
  ("text", "names"),
  [
    # Connectors: a plus raises both ranks. That of other hands raises the lower rank.
    ("T9o+", "T9o,JTo,QJo,KQo,AKo"), ("T9s+", "T9s,JTs,QJs,KQs,AKs"), ("KQ+", "KQ,AK"), ("AKs+", "AKs"),
    ("9To+", "T9o,JTo,QJo,KQo,AKo"), ("32s+:0.5", "32s:0.5,43s:0.5,54s:0.5,65s:0.5,76s:0.5,87s:0.5,98s:0.5,T9s:0.5,"
     "JTs:0.5,QJs:0.5,KQs:0.5,AKs:0.5"),
    ("T8s+", "T8s,T9s"), ("AJo+", "AJo,AQo,AKo"), ("A2s+", "A2s,A3s,A4s,A5s,A6s,A7s,A8s,A9s,ATs,AJs,AQs,AKs"),
    ("QQ+", "QQ,KK,AA"), ("AA+", "AA"),
    # The same distance between ranks, in both orders.
    ("98o-65o", "98o,87o,76o,65o"), ("65o-98o", "98o,87o,76o,65o"), ("T9s-76s", "T9s,98s,87s,76s"),
    ("KQ-JT", "KQ,QJ,JT"), ("AKs-QJs:0.25", "AKs:0.25,KQs:0.25,QJs:0.25"), ("T8s-75s", "T8s,97s,86s,75s"),
    ("75s-T8s", "T8s,97s,86s,75s"), ("A5o-K4o", "A5o,K4o"), ("88-55", "88,77,66,55"), ("99-99", "99"),
    # The same higher rank.
    ("A5s-A2s", "A5s,A4s,A3s,A2s"), ("A2s-A5s", "A5s,A4s,A3s,A2s"), ("KQo-KTo", "KQo,KJo,KTo"), ("T9s-T9s", "T9s"),
  ],
)  # fmt: skip
def test_plus_and_dash_are_those_of_postflop_solver(text, names):
  """Of these, postflop-solver refuses a lower rank first and ranges in ascending order or of one hand."""
  assert hands(text) == hands(names)


@pytest.mark.parametrize("text", ["T9s+", "KQ+"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_eval7_does_not_raise_both_ranks_of_connectors(text):
  """In eval7, T9s+ is T9s alone, as its plus raises the lower rank only; and it refuses T9s-76s."""
  eval7 = pytest.importorskip("eval7", reason="eval7 is not installed: pip install .[dev]")
  theirs = {frozenset(map(str, hand)) for hand, _ in eval7.HandRange(text).hands}
  assert theirs == set(hands(text.removesuffix("+"))) < set(hands(text))
  with pytest.raises(eval7.rangestring.RangeStringError):
    eval7.HandRange("T9s-76s")


@pytest.mark.parametrize(
  "text",
  ["AA", "AK", "KA", "AKs", "AKo", "TT+", "A9s+", "99-66", "66-99", "A5s-A2s", "KTo-K8o", "AhKh", "22+", "K2o+",
   "QQ+:0.25,AKs,A5s-A2s:0.5,72o,AhQd:0.125"],
)  # fmt: skip
# It asks pyparsing by old names.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_ranges_are_those_of_eval7(text):
  """eval7 writes weights in front, 0.5(AKs); it does not read weights after a colon."""
  eval7 = pytest.importorskip("eval7", reason="eval7 is not installed: pip install .[dev]")
  parts = [part.partition(":") for part in text.split(",")]
  theirs = ",".join(f"{weight or 1}({name})" for name, _, weight in parts)
  found = {frozenset(map(str, hand)): chance for hand, chance in eval7.HandRange(theirs).hands}
  assert hands(text) == found


def test_hands_and_weights():
  assert hands("AhKs:0.25") == {frozenset(("Ah", "Ks")): 0.25}
  assert hands("KsAh") == hands("AhKs")
  assert hands("JTs:2") == {frozenset((f"J{suit}", f"T{suit}")): 2.0 for suit in "cdhs"}
  assert set(hands("33")) == {
    frozenset((f"3{a}", f"3{b}")) for a in "cdhs" for b in "cdhs" if a < b
  }
  assert hands("AA:0.5,AA:0.75")[frozenset(("Ah", "Ad"))] == 0.75


@pytest.mark.parametrize(
  "text",
  ["", "A", "AKx", "AAs", "AhAh", "A9s+-A2s", "99-A6", "A5s-K2s", "A5s-A2o", "T9s-76o", "T9s-75s", "T9-76s",
   "99-T9s", "A5s-A5o", "T9s-", "-T9s", "T9s-76s+", "T9s-87s-76s", "T9+s", "+T9", "AhKh+", "AhKh-AhQh",
   "AK:-1", "AK:nan", "AK:x", "1K",
   "AA:0", 5],
)  # fmt: skip
def test_invalid_ranges_are_named(text):
  with pytest.raises(errors.EndgameError, match="range"):
    ranges.parse_range(text)


@pytest.mark.parametrize("part", ["T9s-76o", "98o-64o:0.5", "T9s++", "AKs-QJ"])
def test_the_invalid_part_is_named(part):
  with pytest.raises(errors.EndgameError, match=re.escape(repr(part))):
    ranges.parse_range(f"QQ+, {part}, AKs")


def test_a_hand_is_solved():
  typed = ranges.endgame("QQ+:0.5,AKs", "JJ+", board="7s9h9cTc2d", pot=2000, stack=1000)
  assert (typed.round, typed.starting_stack) == (4, 2000)
  game = spiel_cfr.poker.compile_public_game(typed.load())
  solver = spiel_cfr.CFRPlusSolver(game)
  solver.run(200)
  assert typed.milli_big_blinds(solver.nash_conv()) < 100
  assert ranges.endgame("AA", "KK", board="7s9h9cTc", pot=2, stack=5).round == 3


@pytest.mark.parametrize(
  ("changes", "error"),
  [
    ({"board": "7s9h"}, errors.EndgameError),
    ({"board": "7s9h9cTx"}, errors.EndgameError),
    ({"pot": 3}, errors.EndgameError),
    ({"stack": 0}, errors.ArgumentError),
    ({"stack": 0.5}, errors.ArgumentError),
    ({"ip": "9s9d"}, None),
    ({"oop": "7s7h"}, errors.EndgameError),
  ],
)
def test_bad_hands_are_named(changes, error):
  given = {"oop": "AA", "ip": "KK", "board": "7s9h9cTc", "pot": 2, "stack": 5} | changes
  if error is None:
    assert np.isfinite(ranges.endgame(**given).reaches).all()
    return
  with pytest.raises(error):
    ranges.endgame(**given)


def test_examples_in_docstrings():
  assert doctest.testmod(ranges).failed == 0


def test_an_endgame_has_the_given_values():
  """The stack of `endgame`, and hands that share no card with the board."""
  endgame = ranges.endgame("AA,77", "KK", board="7s9h9cTc2d", pot=2000, stack=9000)
  assert repr(endgame) == "<Endgame: board 7s9h9cTc2d, pot 2,000, 9,000 chips behind, 9 x 6 hands>"


@pytest.mark.quick("1e307")
@pytest.mark.parametrize(
  "weight",
  [
    "1e307",
    "1e-101",
    *(pytest.param(weight, marks=pytest.mark.slow) for weight in ("1e101", "1e308", "5e-324")),
  ],
)
def test_weights_whose_products_are_no_numbers(weight):
  """Weights that overflow are refused: 1e307 was solved with a value of 0."""
  board = {"board": "7s9h9cTc2d", "pot": 2000, "stack": 9000}
  with pytest.raises(errors.EndgameError, match="reaches of player 0 must be weights"):
    ranges.endgame(f"AA:{weight}", "KK", **board)
  # The same in OpenSpiel's string, which needs no Endgame.
  text = ranges.endgame("AA:0.25", "KK", **board).game_string().replace("0.25", weight)
  # OpenSpiel itself refuses the smallest number there is.
  with pytest.raises(errors.SpielCFRError, match=r"handReaches must be weights|normalizer > 0"):
    spiel_cfr.compile_game(text, vector_form=True)


def test_weights_have_no_unit():
  values = []
  for weight in ("1", "1e90", "1e-90"):
    endgame = ranges.endgame(f"AA:{weight}", "KK,22", board="7s9h9cTc2d", pot=200, stack=100)
    values.append(spiel_cfr.solve_lp(spiel_cfr.compile_game(endgame.load())).value)
  assert values == pytest.approx([values[0]] * 3, rel=1e-9)
