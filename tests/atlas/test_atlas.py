"""The atlas: its numbers, computed again, and its page."""

import json
import os
import pathlib
import random
import subprocess
import sys
from fractions import Fraction

import pyspiel
import pytest

import spiel_cfr
from spiel_cfr import atlas, errors
from spiel_cfr.atlas.solved_games import from_json
from spiel_cfr.evaluation import evaluate, solve_lp
from spiel_cfr.exploitation.guaranteed import GuaranteedStrategies

_ROOT = pathlib.Path(__file__).parents[2]
sys.path.append(str(_ROOT / "examples"))
import atlas_numbers  # noqa: E402
import atlas_page  # noqa: E402

_FILE = pathlib.Path(atlas.__file__).parent / "atlas.json"


def recompute_a_tenth(most_states):
  """Computes a tenth of the games again, which differ from run to run."""
  known = [solved for solved in atlas.games() if solved.num_states <= most_states]
  wrong = []
  seed = random.SystemRandom().randrange(10**6)
  for solved in random.Random(seed).sample(known, len(known) // 10):
    wrong += atlas_numbers.changes(solved, atlas_numbers.recompute(solved.compile()))
  assert not wrong, f"seed {seed}"


def test_a_tenth_of_small_games():
  recompute_a_tenth(500)


@pytest.mark.slow
def test_a_tenth_of_all_games():
  # Larger games take up to minutes each; `make atlas` has them all.
  recompute_a_tenth(20_000)


def test_changes_are_seen():
  solved = atlas.find("kuhn_poker")
  text = json.loads(_FILE.read_text())[0]
  numbers = {name: text[name] for name in text if name not in ("game", "facts", "published")}
  assert atlas_numbers.changes(solved, numbers) == []
  for name, other in (
    ("num_states", 57),
    ("value", ["0.1", "0.2"]),
    ("value", None),
    ("solution_nash_conv", ["0.1", "0.1"]),
    ("uniform_nash_conv", ["0.9", "0.91"]),
    ("solution", "lp 2"),
    ("unique", [True, True]),
    ("form", "vector"),
    ("polytope", [3, 5, 6]),
    ("best_efce", 1.0),
    ("efce_bound", 1.0),
  ):
    assert len(atlas_numbers.changes(solved, numbers | {name: other})) == 1


def test_the_page_matches_the_file():
  page = (_ROOT / "docs" / "atlas.md").read_text()
  version = page.partition("Computed with OpenSpiel ")[2].partition(".\n")[0]
  assert page == atlas_page.page(page, atlas.games(), version), "run `make atlas`"


def test_there_are_eighty_games_and_the_file_is_small():
  assert len(atlas.games()) >= 80
  assert len({solved.game for solved in atlas.games()}) == len(atlas.games())
  assert _FILE.stat().st_size < 200_000


def test_published_values_agree():
  verdicts = [
    published.agrees_with(solved.value)
    for solved in atlas.games()
    if solved.value is not None
    for published in solved.published
  ]
  assert len(verdicts) > 10 and all(verdicts)
  wrong = from_json(
    json.loads(_FILE.read_text())[0] | {"published": [{"value": "-0.0600", "source": "nowhere"}]}
  )
  assert not wrong.published[0].agrees_with(wrong.value)


def test_games_are_found_by_any_string():
  for name in ("leduc_poker", "leduc_poker()", "leduc_poker(players=2)"):
    assert atlas.find(name).game == "leduc_poker"
  assert atlas.find("misere(game=kuhn_poker(players=2))").game == "misere(game=kuhn_poker())"
  assert atlas.find("matrix_rps").value.low <= 0
  with pytest.raises(errors.ArgumentError, match="does not have"):
    atlas.find("leduc_poker(players=3)")
  with pytest.raises(errors.ArgumentError, match="does not have"):
    atlas.find("restricted_nash_response(game=kuhn_poker(),p=0.25)")
  with pytest.raises(errors.UnknownGameError):
    atlas.find("no_game")


def test_games_by_other_names():
  assert atlas.find("koller_1994.efg").compile().num_players == 2
  shorter = "dice_endgame(sides=2,dice=1 2,rule=normal)"
  assert atlas.find(shorter).game == "dice_endgame(dice=1 2,sides=2,rule=normal)"
  assert atlas.load("kuhn_poker").num_players() == 2
  for solved in atlas.games():
    if solved.num_states <= 200 and solved.form == "list":
      compiled = solved.compile()
      assert compiled.num_states == solved.num_states
      assert tuple(tree.num_infosets for tree in compiled.treeplexes) == solved.num_infosets
  with pytest.raises(errors.ArgumentError, match="no file"):
    atlas.load("nowhere.efg")
  with pytest.raises(errors.ArgumentError, match="no file"):
    atlas.load("../atlas.json.efg")


def test_values_are_those_of_the_theory():
  assert (
    atlas.find("kuhn_poker").value.low <= Fraction(-1, 18) <= atlas.find("kuhn_poker").value.high
  )
  for solved in atlas.games():
    assert solved.solution_nash_conv.high >= 0 and solved.uniform_nash_conv.high >= 0
    assert solved.solution_nash_conv.low <= solved.uniform_nash_conv.high + Fraction(1, 10**12)
    if solved.value is not None and solved.is_rational:
      assert (
        0
        <= solved.value.high - solved.value.low
        <= solved.solution_nash_conv.high + Fraction(1, 10**20)
      )


def test_sizes_are_open_spiels():
  for name in ("kuhn_poker", "tiny_hanabi", "matrix_bos"):
    histories, stack = 0, [spiel_cfr.compile_game(name).view.new_initial_state()]
    while stack:
      state = stack.pop()
      histories += 1
      if not state.is_terminal():
        stack += [state.child(action) for action in state.legal_actions()]
    assert atlas.find(name).num_states == histories
  assert pyspiel.load_game("kuhn_poker").num_players() == 2


def test_the_bluffing_range_of_kuhn_poker():
  """The first player bets the lowest card with a probability from 0 to 1/3, the highest three times as often."""
  game = spiel_cfr.compile_game("kuhn_poker")
  strategies, value = GuaranteedStrategies(game, 0), solve_lp(game).value
  names = [
    (name, action)
    for name, count in zip(game.infostates[0], game.num_actions[0], strict=True)
    for action in range(count)
  ]
  sequences = dict(zip(names, game.all_action_sequences.tolist(), strict=False))
  for card, most in (("0", 1 / 3), ("1", 0.0), ("2", 1.0)):
    bounds = []
    for sign in (-1.0, 1.0):
      worth = evaluate.aligned_zeros(game.end)
      worth[sequences[card, 1]] = sign
      found = strategies.best(worth, value - 1e-10)
      bounds.append(found[sequences[card, 1]])
      if card == "0":
        assert found[sequences["2", 1]] == pytest.approx(3 * bounds[-1], abs=1e-6)
    assert bounds == pytest.approx([0.0, most], abs=1e-6)


def in_a_copy_of_the_project(folder, games, *arguments):
  """Runs examples/atlas.py on other games; returns what it prints."""
  for name in ("examples", "docs", "spiel_cfr/atlas"):
    (folder / name).mkdir(parents=True, exist_ok=True)
  modules = ("atlas", "atlas_numbers", "atlas_page", "correlated_polytope")
  for name in (*(f"examples/{module}.py" for module in modules), "docs/atlas.md"):
    (folder / name).write_text((_ROOT / name).read_text())
  (folder / "spiel_cfr" / "atlas" / "atlas.json").write_text(json.dumps(games))
  return subprocess.run(
    [
      sys.executable,
      folder / "examples" / "atlas.py",
      f"--done={folder / 'done.jsonl'}",
      *arguments,
    ],
    env=os.environ | {"PYTHONPATH": str(_ROOT)},
    capture_output=True,
    text=True,
    check=True,
  ).stdout


@pytest.mark.slow
def test_an_interrupted_run_continues_and_changes_are_printed(tmp_path):
  games = [each for each in json.loads(_FILE.read_text()) if each["game"].startswith("matrix_")]
  right, known, interrupted = games[:3]
  wrong = right | {"num_states": 1}
  # The run has computed the second game, with another number than ever, and was killed while it wrote the third.
  strange = known | {"num_states": 2}
  lines = [json.dumps([known["game"], {name: strange[name] for name in strange if name != "game"}])]
  lines.append(json.dumps([interrupted["game"], interrupted])[:50])
  (tmp_path / "done.jsonl").write_text("\n".join(lines))
  printed = in_a_copy_of_the_project(tmp_path, [wrong, known, interrupted])
  assert f"{right['game']}: num_states was 1, is {right['num_states']}" in printed
  assert f"{known['game']}: num_states was {known['num_states']}, is 2" in printed
  assert f"changed: {interrupted['game']}" not in printed and "2 games changed" in printed
  written = json.loads((tmp_path / "spiel_cfr" / "atlas" / "atlas.json").read_text())
  assert [each["num_states"] for each in written] == [
    right["num_states"],
    2,
    interrupted["num_states"],
  ]
  assert right["game"] in (tmp_path / "docs" / "atlas.md").read_text()
  assert not (tmp_path / "done.jsonl").exists()
