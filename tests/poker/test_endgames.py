"""Endgame files, units and predicted memory.

No other reader of endgame files in Python exists; OpenSpiel checks the resulting games.
"""

import numpy as np
import poker_games
import pytest

import spiel_cfr
from spiel_cfr import errors
from spiel_cfr.poker import bet_filters, cards


def _write(path, **changes):
  """Writes an endgame file, with some lines changed; None leaves one out."""
  endgame = poker_games.random_endgame(0, 30)
  fields = {
    "round": "4",
    "board": endgame.board,
    "pot": "400",
    "reach": " ".join(map(repr, endgame.reaches.ravel().tolist())),
  } | changes
  lines = [f"-{key} {value}" for key, value in fields.items() if value is not None]
  path.write_text("\n".join(lines) + "\n")
  return path


def test_files_are_read_and_written(tmp_path):
  endgame = poker_games.random_endgame(1, 30, poker_games.TURN, pot=500, stack=20_000)
  endgame.save(tmp_path / "endgame.txt")
  again = spiel_cfr.load_endgame(tmp_path / "endgame.txt")
  assert (again.round, again.board, again.pot) == (3, poker_games.TURN, 500)
  np.testing.assert_array_equal(again.reaches, endgame.reaches)
  assert again.game_string() == endgame.game_string()


def test_hands_are_in_the_order_of_the_files():
  names = [
    "".join(
      cards.card_name(card) for card in sorted(hand, key=lambda card: (card // 4, 3 - card % 4))
    )
    for hand in cards.file_hands().tolist()
  ]
  # The beginning and the end, as the description of the files has them.
  assert names[:5] == ["2s2h", "2s2d", "2s2c", "2s3s", "2s3h"]
  assert [names[50], names[51], names[-1]] == ["2sAc", "2h2d", "AdAc"]


def test_reaches_are_those_of_open_spiel():
  """A deal's probability in OpenSpiel is proportional to the reaches that the file gives for both hands."""
  endgame = poker_games.random_endgame(2, 12)
  game = endgame.load()
  hands = [tuple(hand) for hand in cards.file_hands().tolist()]
  root = game.new_initial_state()
  outcomes = {action: chance for action, chance in root.chance_outcomes() if chance > 0}
  ratios = []
  for action, chance in outcomes.items():
    state = root.child(action)
    reach = 1.0
    for player in (0, 1):
      text = state.information_state_string(player).partition("[Private: ")[2][:4]
      reach *= endgame.reaches[player, hands.index(tuple(sorted(cards.parse_cards(text))))]
    ratios.append(chance / reach)
  assert len(ratios) > 20
  np.testing.assert_allclose(ratios, ratios[0])


@pytest.mark.parametrize(
  ("changes", "message"),
  [
    ({"reach": "0.5 " * 2651}, "2651"),
    ({"reach": "0.5 " * 2653}, "2653"),
    ({"reach": "0.5 " * 2651 + "-0.5"}, "Reach 1326 of player 1 is -0.5"),
    ({"reach": "nan " + "0.5 " * 2651}, "Reach 1 of player 0 is nan"),
    ({"reach": "inf " + "0.5 " * 2651}, "Reach 1 of player 0 is inf"),
    ({"reach": "x " * 2652}, "x"),
    ({"reach": "0 " * 2652}, "No pair of hands"),
    # Only 2s2h and 2s2d, which share a card.
    ({"reach": "1 " + "0 " * 1325 + "0 1 " + "0 " * 1324}, "No pair of hands"),
    # Only 4s4h against 4d4c, where 4s is on the board.
    ({"reach": " ".join("1" if i in (2 * 1326 - 1, 0) else "0" for i in range(2652))}, "No pair"),
    ({"board": "4s8hTc9h4s"}, "twice"),
    ({"board": "4s8hTc9x2s"}, "9x"),
    ({"board": "4s8hTc9h"}, "round 4"),
    ({"board": "4s8h"}, "2 cards"),
    ({"round": "3"}, "round 3"),
    ({"round": "river"}, "river"),
    ({"pot": "401"}, "even"),
    ({"pot": "-400"}, "pot"),
    ({"pot": "0"}, "pot"),
    ({"pot": "40000"}, "something to bet"),
    ({"pot": "400.5"}, "whole number"),
    ({"pot": "nan"}, "whole number"),
    ({"pot": None}, "no line -pot"),
    ({"blind": "1"}, "-blind"),
  ],
  ids=lambda value: str(value)[:40],
)
def test_bad_files_are_named(tmp_path, changes, message):
  path = _write(tmp_path / "bad.txt", **changes)
  with pytest.raises(errors.EndgameError, match=message) as error:
    spiel_cfr.load_endgame(path)
  assert "bad.txt" in str(error.value)
  assert isinstance(error.value, errors.GameError)


def test_a_file_that_is_no_text_is_named(tmp_path):
  path = _write(tmp_path / "bad.txt")
  path.write_bytes(path.read_bytes().replace(b"-pot", b"\xff"))
  with pytest.raises(errors.EndgameError, match=r"bad\.txt is not a text file"):
    spiel_cfr.load_endgame(path)


def test_saving_is_all_or_nothing(tmp_path, monkeypatch):
  def fail(*_):
    raise OSError("the disk is full")

  endgame = poker_games.random_endgame(0, 30)
  endgame.save(tmp_path / "endgame.txt")
  before = (tmp_path / "endgame.txt").read_bytes()
  monkeypatch.setattr("os.fsync", fail)
  with pytest.raises(OSError, match="full"):
    poker_games.random_endgame(1, 30).save(tmp_path / "endgame.txt")
  assert [path.read_bytes() for path in tmp_path.iterdir()] == [before]


def test_good_file(tmp_path):
  assert spiel_cfr.load_endgame(_write(tmp_path / "good.txt")).pot == 400


def test_units():
  endgame = poker_games.random_endgame(0, 10, big_blind=100)
  assert endgame.milli_big_blinds(250) == 2500


def test_memory_estimate():
  endgame = poker_games.random_endgame(3, 20, poker_games.TURN)
  game = endgame.load()
  for options in ({"dtype": "float64"}, {"dtype": "float32"}, {"partitioned": False}):
    options = {"partitioned": True} | options
    compiled = spiel_cfr.poker.compile_public_game(game, bet_filters.few_bets, **options)
    estimate = compiled.memory_estimate()
    solver = spiel_cfr.DCFRSolver(compiled)
    arrays = [value for value in solver.state_dict().values() if isinstance(value, np.ndarray)]
    kept = sum(array.nbytes for array in arrays)
    assert kept < estimate < 2 * kept
