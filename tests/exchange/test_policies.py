"""Policies that are written to tables come back as they were, and other files are refused by name."""

import numpy as np
import pytest
import random_games

import spiel_cfr
from spiel_cfr import errors, policies

SUFFIXES = pytest.mark.parametrize("suffix", [".csv", ".json"])


@SUFFIXES
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_round_trip(tmp_path, suffix, seed):
  source = "leduc_poker" if seed is None else random_games.random_game(seed, 3)
  compiled = spiel_cfr.compile_game(source)
  chances = policies.behavioral_form(compiled, np.random.default_rng(0).random(compiled.end))
  table = policies.to_dict(compiled, chances)
  path = tmp_path / f"policy{suffix}"
  spiel_cfr.save_policy(compiled, table, path)
  assert path.read_text().count("\n") > len(compiled.rows)
  read = spiel_cfr.load_policy(compiled, path)
  assert policies.to_dict(compiled, policies.from_policy(compiled, read)) == table


def test_what_is_left_out_is_not_played(tmp_path):
  rows = [f"{card}{history},1,1" for card in "012" for history in ("", "b", "p", "pb")]
  (tmp_path / "policy.csv").write_text("\n".join(["infostate,action,probability", *rows]))
  read = spiel_cfr.load_policy("kuhn_poker", tmp_path / "policy.csv")
  assert spiel_cfr.expected_values("kuhn_poker", read) == pytest.approx([0, 0], abs=1e-12)


BROKEN = {
  "no table": ("", "[1]"),
  "binary": (b"\xff\xfe", b"\xff\xfe"),
  "no number": ("infostate,action,probability\n0,bet,1\n", '{"0": {"bet": 1}}'),
  "cut": ("infostate,action,probability\n0,1\n", '{"0": {"0": 0.5'),
  "twice or no object": ("infostate,action,probability\n0,1,1\n0,1,1\n", '{"0": 1}'),
  "deep": ("infostate,action\n", "[" * 100_000),
}


@pytest.mark.parametrize("name", BROKEN)
@SUFFIXES
def test_what_is_no_table(tmp_path, name, suffix):
  content = BROKEN[name][suffix == ".json"]
  path = tmp_path / f"policy{suffix}"
  path.write_bytes(content if isinstance(content, bytes) else content.encode())
  with pytest.raises(errors.FileFormatError, match="is not a table of a policy"):
    spiel_cfr.load_policy("kuhn_poker", path)


@SUFFIXES
def test_other_games(tmp_path, suffix):
  path = tmp_path / f"policy{suffix}"
  uniform = spiel_cfr.CFRSolver("kuhn_poker").average_policy()
  spiel_cfr.save_policy("kuhn_poker", uniform, path)
  with pytest.raises(errors.PolicyError, match="another game"):
    spiel_cfr.load_policy("leduc_poker", path)
  with pytest.raises(OSError, match="nothing"):
    spiel_cfr.load_policy("kuhn_poker", tmp_path / f"nothing{suffix}")


def test_other_suffixes(tmp_path):
  for call in (
    lambda path: spiel_cfr.load_policy("kuhn_poker", path),
    lambda path: spiel_cfr.save_policy("kuhn_poker", {}, path),
  ):
    with pytest.raises(errors.ArgumentError, match=r"\.csv or \.json"):
      call(tmp_path / "policy.txt")
