"""Notes of what infosets do over time."""

import collections
import itertools
import json
import re
from typing import Any

import numpy as np
import pytest
import samplers

import spiel_cfr
from spiel_cfr import RegretMatching, errors


@pytest.mark.parametrize("engine", ["compiled", "states"])
def test_tracker_notes_what_infosets_do(engine: Any, tmp_path: Any) -> None:
  path = tmp_path / "notes.jsonl"
  options: Any = {"minimizer": RegretMatching.discounted(1.0, 1.0), "seed": 4, "engine": engine}
  solver = spiel_cfr.ExternalSamplingSolver("leduc_poker", **options)
  tracker = spiel_cfr.mccfr.Tracker(solver, r"Private: 5.*Round 1", every=40, path=path)
  tracker.run(30)
  tracker.run(100)
  untracked = spiel_cfr.ExternalSamplingSolver("leduc_poker", **options)
  untracked.run(130)
  assert samplers.tables(untracked) == samplers.tables(solver)
  assert {note.iteration for note in tracker.snapshots} <= {0, 40, 80, 120}
  last = [note for note in tracker.snapshots if note.iteration == 120]
  assert len(last) > 5
  lines = [json.loads(line) for line in path.read_text().splitlines()]
  assert lines == [note._asdict() for note in tracker.snapshots]
  stopped = spiel_cfr.ExternalSamplingSolver("leduc_poker", **options)
  stopped.run(120)
  average, current = stopped.average_policy_dict(), stopped.current_policy_dict()
  for note in last:
    assert "Private: 5" in note.infostate and "Round 1" in note.infostate
    assert dict(zip(note.actions, note.average, strict=True)) == average[note.infostate]
    assert note.current == pytest.approx(list(current[note.infostate].values()))
    assert note.nodes_touched == stopped.nodes_touched
    positive = np.maximum(note.regret, 0)
    if positive.any():
      assert note.current == pytest.approx(positive / positive.sum(), abs=1e-9)


def test_tracked_regrets_are_discounted_where_samples_have_not_been() -> None:
  minimizer = RegretMatching.discounted(1.0, 1.0)
  solver = spiel_cfr.ExternalSamplingSolver("leduc_poker", minimizer=minimizer)
  tracker = spiel_cfr.mccfr.Tracker(solver, every=1)
  tracker.run(25)
  assert solver.iteration == 25
  by_name = collections.defaultdict(list)
  for note in tracker.snapshots:
    by_name[note.infostate].append(note)
  idle = 0
  for notes in by_name.values():
    for before, after in itertools.pairwise(notes):
      scaled = np.array(before.regret) * before.iteration / (before.iteration + 1)
      idle += any(before.regret) and bool(np.allclose(after.regret, scaled, rtol=1e-9, atol=0))
  changes = sum(note.regret != [0.0] * len(note.regret) for note in tracker.snapshots)
  assert idle > 0.7 * changes


def test_tracker_takes_a_list_a_pattern_or_all() -> None:
  names = ["0", "1pb"]
  for infosets, wanted in (
    (names, set(names)),
    (re.compile("^0"), {"0", "0pb", "0p", "0b"}),
    ("^0p", {"0pb", "0p"}),
    (None, set(spiel_cfr.compile_game("kuhn_poker").rows)),
  ):
    tracker = spiel_cfr.mccfr.Tracker(
      spiel_cfr.OutcomeSamplingSolver("kuhn_poker"), infosets, every=5
    )
    tracker.run(5)
    assert {note.infostate for note in tracker.snapshots} == wanted
    assert len(tracker.snapshots) == 2 * len(wanted)


@pytest.mark.parametrize(
  ("arguments", "message"),
  [
    ({"infosets": ["7pb"]}, "7pb"),
    ({"infosets": "x+"}, "x\\+"),
    ({"infosets": "("}, "regular expression"),
    ({"every": 0}, "every"),
  ],
)
def test_tracker_names_bad_arguments(arguments: Any, message: str) -> None:
  solver = spiel_cfr.ExternalSamplingSolver("kuhn_poker")
  with pytest.raises(errors.ArgumentError, match=message):
    spiel_cfr.mccfr.Tracker(solver, **arguments)
  with pytest.raises(errors.ArgumentError, match="7pb"):
    solver.snapshot(0, "7pb")
