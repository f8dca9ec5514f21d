"""Policy tables are read back unchanged, also by OpenSpiel's C++; other files are refused by name."""

import json

import numpy as np
import pyspiel
import pytest
import random_games

import spiel_cfr
from spiel_cfr import errors, policies


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_round_trip(tmp_path, seed):
  source = "leduc_poker" if seed is None else random_games.random_game(seed, 3)
  compiled = spiel_cfr.compile_game(source)
  chances = policies.behavioral_form(compiled, np.random.default_rng(0).random(compiled.end))
  table = policies.to_dict(compiled, chances)
  path = tmp_path / "policy.json"
  spiel_cfr.save_policy(compiled, table, path)
  assert path.read_text().count("\n") > len(compiled.table_rows)
  read = spiel_cfr.load_policy(compiled, path)
  assert policies.to_dict(compiled, policies.from_policy(compiled, read)) == table


def test_open_spiel_reads_tables(tmp_path):
  """Its C++ knows nothing of ours: JSON's own words make its policy."""
  game = pyspiel.load_game("leduc_poker")
  solver = spiel_cfr.CFRSolver(game)
  solver.run(20)
  spiel_cfr.save_policy(game, solver.average_policy(), tmp_path / "policy.json")
  table = json.loads((tmp_path / "policy.json").read_text())
  theirs = pyspiel.TabularPolicy(
    {name: [(int(action), chance) for action, chance in own.items()] for name, own in table.items()}
  )
  assert pyspiel.nash_conv(game, theirs) == pytest.approx(solver.nash_conv(), abs=1e-12)


def test_left_out_actions_are_not_played(tmp_path):
  table = {f"{card}{history}": {"1": 1} for card in "012" for history in ("", "b", "p", "pb")}
  (tmp_path / "policy.json").write_text(json.dumps(table))
  read = spiel_cfr.load_policy("kuhn_poker", tmp_path / "policy.json")
  assert spiel_cfr.expected_values("kuhn_poker", read) == pytest.approx([0, 0], abs=1e-12)


BROKEN = {
  "no table": b"[1]",
  "binary": b"\xff\xfe",
  "no number": b'{"0": {"bet": 1}}',
  "cut": b'{"0": {"0": 0.5',
  "no object": b'{"0": 1}',
  "deep": b"[" * 100_000,
}


@pytest.mark.parametrize("name", BROKEN)
def test_invalid_tables_are_refused(tmp_path, name):
  path = tmp_path / "policy.json"
  path.write_bytes(BROKEN[name])
  with pytest.raises(errors.FileFormatError, match="is not a table of a policy"):
    spiel_cfr.load_policy("kuhn_poker", path)


def test_other_games(tmp_path):
  path = tmp_path / "policy.json"
  uniform = spiel_cfr.CFRSolver("kuhn_poker").average_policy()
  spiel_cfr.save_policy("kuhn_poker", uniform, path)
  with pytest.raises(errors.PolicyError, match="another game"):
    spiel_cfr.load_policy("leduc_poker", path)
  with pytest.raises(OSError, match="nothing"):
    spiel_cfr.load_policy("kuhn_poker", tmp_path / "nothing.json")
