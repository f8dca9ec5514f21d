"""Faults that attacks have found do not return."""

import copy
import hashlib
import json
import pathlib
import pickle
import sys

import numpy as np
import pyspiel
import pytest
from attacks import scales, targets

import spiel_cfr
from spiel_cfr import atlas, errors, exploitation, poker, search

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "examples"))
import check_certificate

_COUNTS = np.ones(24)


@pytest.mark.parametrize("unit", [1e-100, 1e-12, 1e12, 1e100])
def test_commitments_do_not_depend_on_the_unit_of_payoffs(unit):
  values = [exploitation.commit(scales.pennies(each)).expected_values for each in (1.0, unit)]
  np.testing.assert_allclose(values[1] / unit, values[0], atol=1e-9)


@pytest.mark.parametrize("unit", [1e-100, 1e-12, 1e12, 1e100])
def test_safe_exploiters_do_not_depend_on_the_unit_of_payoffs(unit):
  players = [exploitation.SafeExploiter(scales.pennies(each), 0) for each in (1.0, unit)]
  for player in players:
    player.observe([0, 0])
  assert players[1].value / unit == pytest.approx(players[0].value, abs=1e-9)
  assert players[1].budget / unit == pytest.approx(players[0].budget, abs=1e-8)


def test_programs_do_not_compute_with_payoffs_that_have_no_digits():
  for call in (spiel_cfr.solve_lp, exploitation.commit):
    with pytest.raises(errors.InvalidPayoffError, match="Multiply"):
      call(scales.pennies(1e-310))


@pytest.mark.parametrize("observed", [-_COUNTS, _COUNTS * np.nan, _COUNTS * 1e300, None, "x", [{}]])
def test_observations_are_counts(observed):
  with pytest.raises(errors.ArgumentError, match="observed must be an array"):
    exploitation.data_biased_response("kuhn_poker", observed, 0)


@pytest.mark.parametrize("history", [None, 3, ["x"], [0.5], [[0]], np.array(1)])
def test_observed_games_are_lists_of_actions(history):
  with pytest.raises(errors.ArgumentError, match="Game 1 must be a list of actions"):
    exploitation.count_actions("kuhn_poker", [history], 0)


@pytest.mark.parametrize("trusts", [[2.0], [None], [float("nan")], 3, [[0.5]]])
def test_trusts_are_probabilities(trusts):
  model = spiel_cfr.CFRSolver("kuhn_poker")
  with pytest.raises(errors.ArgumentError, match="trust"):
    exploitation.frontier("kuhn_poker", model, trusts=trusts)


@pytest.mark.parametrize("bets", ["9" * 400 + "%", "9" * 5000 + "c", "1" * 20 + "e", "50%%"])
def test_bets_have_as_many_digits_as_chips(bets):
  with pytest.raises(errors.ArgumentError, match="no size of a bet"):
    poker.bet_sizes(bets)


def test_reaches_are_numbers():
  with pytest.raises(errors.EndgameError):
    poker.Endgame("7s9h9cTc2d", 200, np.full((2, 1326), 10**400), 300)


def test_policies_in_files_are_numbers(tmp_path):
  table = spiel_cfr.CFRSolver("kuhn_poker").average_policy_dict()
  table["0"] = {"0": 10**400, "1": 0}
  (tmp_path / "policy").write_text(json.dumps(table))
  with pytest.raises(errors.FileFormatError, match="too large"):
    spiel_cfr.load_policy("kuhn_poker", tmp_path / "policy")


@pytest.mark.parametrize("claim", ["1e999999999", "1E999999999", ["0", "1e999999999"]])
def test_claims_without_end_are_refused(claim, tmp_path):
  spiel_cfr.certify("kuhn_poker", spiel_cfr.CFRSolver("kuhn_poker")).save(tmp_path / "certificate")
  content = json.loads((tmp_path / "certificate").read_text())
  content |= {"claims": [claim, *content["claims"][1:]], "sha256": ""}
  text = json.dumps(content, sort_keys=True, separators=(",", ":"))
  content["sha256"] = hashlib.sha256(text.encode()).hexdigest()
  assert not check_certificate.check(content)


def test_games_of_the_atlas_are_asked_for_by_their_strings():
  with pytest.raises(errors.ArgumentError, match="game must be of type str"):
    atlas.find(pyspiel.load_game("kuhn_poker"))


def test_searches_say_what_their_arguments_must_be():
  state = search.public_states(targets.kuhn()).natural_cut()[0]
  for name in ("bounds", "leaf_values"):
    with pytest.raises(errors.ArgumentError, match=f"{name} must be"):
      search.Subgame(state, np.ones((2, 3)), **{name: 3})
  for solver in (0, "", False):
    with pytest.raises(errors.ArgumentError, match="solver must be one of"):
      search.resolve(targets.kuhn(), spiel_cfr.CFRSolver(targets.kuhn()), solver=solver)
    with pytest.raises(errors.ArgumentError, match="solver must be one of"):
      search.Subgame(state, np.ones((2, 3))).solve(solver)
  with pytest.raises(errors.ArgumentError, match="checkpoint must be a path"):
    search.resolve(targets.kuhn(), spiel_cfr.CFRSolver(targets.kuhn()), checkpoint=[])


@pytest.mark.parametrize("points", [b"x", "", None, [[10**400]], [[1.0], [1.0, 2.0]]])
def test_points_are_tables(points):
  with pytest.raises(errors.ArgumentError, match="points must be"):
    spiel_cfr.abstraction.k_means(points, 2)


def test_labels_of_hands_are_lists():
  game = poker.compile_public_game("leduc_poker")
  with pytest.raises(errors.ArgumentError, match="labels must be a list for each"):
    spiel_cfr.abstraction.hand_buckets(game, 10**400)


@pytest.mark.parametrize(
  "how", [copy.copy, copy.deepcopy, lambda thing: pickle.loads(pickle.dumps(thing))]
)
def test_exact_values_can_be_copied(how):
  values = search.SolvedValues(targets.kuhn())
  states = values.tree.natural_cut()
  ranges = np.ones((len(states), 2, 3))
  np.testing.assert_array_equal(how(values)(states, ranges), values(states, ranges))


def test_players_are_numbers_of_any_kind():
  state = search.public_states(targets.kuhn()).natural_cut()[0]
  solver = spiel_cfr.CFRSolver(targets.kuhn())
  for player in (0, 1):
    found = [search.Bounds.from_policy(state, solver, kind(player)) for kind in (int, np.uint8)]
    np.testing.assert_array_equal(found[0].values, found[1].values)
    assert type(found[1].searcher) is int


@pytest.mark.parametrize("bad", [None, 3, "x", np.ones((2, 2)), np.zeros(1), [[]]], ids=str)
def test_arrays_of_policies_are_checked(bad):
  game = spiel_cfr.compile_game("kuhn_poker")
  for convert in (game.to_actions, game.from_actions):
    with pytest.raises(errors.ArgumentError, match=r"must be \d+ numbers"):
      convert(bad)
  for form in (game, spiel_cfr.games.compile_private_moves_game("kuhn_poker")):
    with pytest.raises(errors.ArgumentError, match="of type slice"):
      form.tensors_of(0, bad)
