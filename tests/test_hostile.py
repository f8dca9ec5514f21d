"""Any input gives a result or a named error: nothing crashes, hangs, is executed or is lost."""

import json
import math
import pathlib
import re
from typing import Any

import hostile
import hypothesis
import numpy as np
import pyspiel
import pytest
import random_games
from hypothesis import strategies as st

import spiel_cfr
from spiel_cfr import errors

MANY = hypothesis.settings(max_examples=2 * hypothesis.settings().max_examples)
FEW = hypothesis.settings()


@st.composite
def spoiled(draw: Any, content: bytes) -> bytes:
  """Content with a few pieces cut out, put in, doubled or moved."""
  result = bytearray(content)
  for _ in range(draw(st.integers(1, 4))):
    start = draw(st.integers(0, len(result)))
    end = min(len(result), start + draw(st.sampled_from([0, 1, 4, 40])))
    piece = bytes(result[start:end])
    where = draw(st.integers(0, len(result)))
    new = draw(
      st.binary(max_size=8)
      | st.sampled_from([b"", piece * 2, b"-1", b"1e400", b"nan", b"inf", b'"', b"{", b"}", b"\0"])
      | st.integers().map(lambda number: str(number).encode())
    )
    result[start:end] = new
    if draw(st.booleans()):
      result[where:where] = piece
  return bytes(result)


# Game strings and files of games.

_VALUES = st.one_of(
  st.integers(1, 4).map(str),
  st.integers(-3, 4).map(str),
  st.sampled_from(["1e9", "nan", "", "true", "9" * 30, "kuhn_poker()"]),
)


@st.composite
def game_strings(draw: Any) -> str:
  """A game string with the right parameters, some with wrong values."""
  game_type = draw(st.sampled_from(_SMALL_GAMES))
  parameters = draw(
    st.dictionaries(
      st.sampled_from(sorted(game_type.parameter_specification) or ["players"]),
      _VALUES,
      max_size=2,
    )
  )
  text = ",".join(f"{name}={value}" for name, value in parameters.items())
  return f"{game_type.short_name}({text})"


_SMALL_GAMES = [
  game_type
  for game_type in pyspiel.registered_games()
  if re.match(
    "kuhn|leduc|goofspiel|liars_dice|matrix_rps|tiny_hanabi|nim|misere", game_type.short_name
  )
]


@pytest.mark.slow
@hypothesis.settings(max_examples=500)
@hypothesis.given(game_strings())
def test_game_strings(string: str) -> None:
  hypothesis.event(str(hostile.compiles(string)))


@hypothesis.settings(max_examples=hypothesis.settings.default.max_examples // 3)
@hypothesis.given(st.data(), st.integers(0, 100))
def test_extensive_form_files(data: Any, seed: int) -> None:
  text = random_games.random_efg(seed, max_histories=20).encode()
  assert hostile.compiles_efg(text)
  hypothesis.event(str(hostile.compiles_efg(data.draw(spoiled(text)))))


_NFG = b"""NFG 1 R "Prisoner's dilemma" { "one" "two" } { 2 2 }

5 5 10 0 0 10 1 1
"""


@FEW
@hypothesis.given(spoiled(_NFG))
def test_normal_form_files(text: bytes) -> None:
  hypothesis.event(str(hostile.compiles_nfg(text)))


def test_normal_form_file_as_it_should_be() -> None:
  assert hostile.compiles_nfg(_NFG)


@pytest.mark.parametrize(
  "text",
  [
    b"",
    b"EFG 2 R",
    b'EFG 2 R "" { } ""\n',
    b'EFG 2 R "" { "0" "1" } ""\n' + b'p "" 1 1 "" { "a" } 0\n' * 100_000,
    b'EFG 2 R "" { "0" "1" } ""\np "" 1 1 "" { "a" "b" } 0\nt "" 1 "" { nan 0 }\nt "" 2 "" { 0 0 }\n',
    b'EFG 2 R "" { "0" "1" } ""\nc "" 1 "" { "a" 1/2 "b" 1/3 } 0\nt "" 1 "" { 0 0 }\nt "" 2 "" { 0 0 }\n',
    b'EFG 2 R "" { "0" "1" } ""\np "" 7 1 "" { "a" } 0\nt "" 1 "" { 0 0 }\n',
    b"\xff\xfe" * 1000,
    b'EFG 2 R "" { "0" "1" } ""\np "" 1 1 "" { "a" "b" } 0\nt "" 1 "" { 0 0 }\n'
    b'p "" 2 1 "\xff" { "a" "b" } 0\nt "" 2 "" { 0 0 }\nt "" 3 "" { 0 0 }\n',
  ],
  ids=["empty", "cut", "nobody", "deep", "nan", "chance", "seventh player", "binary", "name"],
)
def test_broken_extensive_form_files(text: bytes) -> None:
  assert not hostile.compiles_efg(text)


# Policies.

_CHANCES = st.one_of(
  st.floats(),
  st.integers(-1, 2),
  st.sampled_from([0.5, 1.0, 0.0, None, "half", 10**400, 1j, [0.5], np.float32(0.5)]),
)
_INFOSET = st.one_of(
  st.dictionaries(st.integers(-1, 3) | st.sampled_from(["0", None, 0.5]), _CHANCES, max_size=3),
  st.lists(st.tuples(st.integers(-1, 3), _CHANCES), max_size=3),
  st.floats(0, 1).map(lambda chance: {0: chance, 1: 1 - chance}),
  st.sampled_from([None, 1, "x", [], {}]),
)


@MANY
@hypothesis.given(st.dictionaries(st.sampled_from(sorted(hostile.kuhn().table_rows)), _INFOSET))
def test_policies_in_dictionaries(changes: Any) -> None:
  policy = spiel_cfr.CFRSolver(hostile.kuhn()).average_policy_dict()
  assert hostile.evaluates(policy)
  fine = all(
    isinstance(entry, dict)
    and set(entry) <= {0, 1}
    and all(isinstance(chance, float) and 0 <= chance <= 1 for chance in entry.values())
    and math.isclose(sum(entry.values()), 1)
    for entry in changes.values()
  )
  accepted = hostile.evaluates(policy | changes)
  assert accepted or not fine
  hypothesis.event(str(accepted))


@MANY
@hypothesis.given(st.sets(st.sampled_from(sorted(hostile.kuhn().table_rows)), min_size=1))
def test_policies_with_infosets_left_out(missing: set[str]) -> None:
  policy = spiel_cfr.CFRSolver(hostile.kuhn()).average_policy_dict()
  rest = {infostate: entry for infostate, entry in policy.items() if infostate not in missing}
  with pytest.raises(errors.PolicyError, match="no probabilities"):
    spiel_cfr.nash_conv(hostile.kuhn(), rest)


@pytest.mark.parametrize(
  "array",
  [
    None,
    3.0,
    np.full((3, 2), 0.5),
    np.full((12, 1), 0.5),
    np.full(12, 0.5),
    np.full((12, 2), "half"),
    np.full((12, 2), None),
    np.full((12, 2), np.nan),
    np.full((12, 2), -0.5),
    np.full((12, 2), 0.6),
  ],
  ids=str,
)
def test_tabular_policies_with_a_wrong_array(array: Any) -> None:
  policy = spiel_cfr.CFRSolver(hostile.kuhn()).average_policy()
  assert hostile.evaluates(policy)
  policy.action_probability_array = array
  assert not hostile.evaluates(policy)


@pytest.mark.parametrize("player", [None, -1, 2, "0", 1.0])
def test_players_that_are_none(player: Any) -> None:
  policy = spiel_cfr.CFRSolver(hostile.kuhn()).average_policy()
  with pytest.raises(errors.ArgumentError, match="player"):
    spiel_cfr.best_response(hostile.kuhn(), policy, player)


# Files of ours. Flipped bits and missing bytes: see test_checkpoints and test_traces.


@pytest.fixture(scope="module")
def written(tmp_path_factory: Any) -> dict[str, bytes]:
  """A checkpoint and a trace of the same run."""
  folder: pathlib.Path = tmp_path_factory.mktemp("written")
  solver = spiel_cfr.CFRSolver(hostile.kuhn())
  paths = [folder / "trace.csv", folder / "solver.npz"]
  traces = [spiel_cfr.runs.TraceFile(paths[0])]
  spiel_cfr.run(solver, 10, traces=traces, progress=False)
  solver.save(paths[1])
  return {path.suffix: path.read_bytes() for path in paths}


@MANY
@hypothesis.given(st.data())
def test_checkpoints(written: Any, data: Any) -> None:
  assert hostile.restores(written[".npz"], forge=False)
  content = data.draw(spoiled(written[".npz"]))
  if content != written[".npz"]:
    assert not hostile.restores(content, forge=False)
  # A forger may have computed the checksum again.
  hypothesis.event(str(hostile.restores(content, forge=True)))


@MANY
@hypothesis.given(st.data())
def test_traces(written: Any, data: Any) -> None:
  assert hostile.reads_trace(written[".csv"])
  content = data.draw(spoiled(written[".csv"]))
  hypothesis.event(str(hostile.reads_trace(content)))


@FEW
@hypothesis.given(
  st.recursive(
    st.none() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
  )
)
def test_headers_of_any_json(header: Any) -> None:
  text = json.dumps(header).encode()
  assert not hostile.reads_trace(b"# " + text + b"\n\n")


def test_the_shortest_header() -> None:
  text = json.dumps({"kind": "trace of spiel_cfr", "format": 4}).encode()
  assert hostile.reads_trace(b"# " + text + b"\n\n")
