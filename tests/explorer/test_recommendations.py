"""Pages of mediators: values of obeying and of the best deviation, against gaps."""

import explorer_pages
import numpy as np
import pytest
import random_games

import spiel_cfr
from spiel_cfr import correlated, errors
from spiel_cfr.explorer import recommendations

SHERIFF = "sheriff(item_penalty=1.0,item_value=5.0,max_bribe=1,max_items=2,num_rounds=1,sheriff_penalty=1.0)"


def mixture(source):
  game, rng, profiles = spiel_cfr.compile_game(source), np.random.default_rng(0), []
  for _ in range(4):
    drawn = rng.random(game.end) * (rng.random(game.end) < 0.7)
    profiles.append(spiel_cfr.policies.behavioral_form(game, drawn))
  return correlated.MixturePolicy(game, profiles, [1, 2, 3, 4])


def mediated(policy):
  game, obeying = recommendations.game_with_mediator(policy, 100_000)
  table = spiel_cfr.policies.to_dict(game, obeying)
  return spiel_cfr.expected_values(game, table), spiel_cfr.evaluation.nash_conv(
    game, table, return_only_nash_conv=False
  )


@pytest.mark.parametrize(
  "source",
  [
    SHERIFF,
    "kuhn_poker",
    "kuhn_poker(players=3)",
    "matrix_shapleys_game",
    random_games.random_game(6, num_players=3, zero_sum=False, max_histories=150),
  ],
  ids=str,
)
def test_leaving_the_mediator_gains_the_gap(source):
  policy = mixture(source)
  found = policy.gap("extensive-form")
  values, gains = mediated(policy)
  np.testing.assert_allclose(values, found.expected_values, atol=1e-9)
  np.testing.assert_allclose(gains.player_improvements, found.player_improvements, atol=1e-9)
  assert found.gap > 1e-3


@pytest.mark.parametrize("source", [SHERIFF, "kuhn_poker", "matrix_shapleys_game"])
def test_leaving_an_equilibrium_gains_nothing(source):
  found = correlated.optimal_equilibrium(source)
  values, gains = mediated(found.policy)
  np.testing.assert_allclose(values, found.expected_values, atol=1e-9)
  assert gains.nash_conv == pytest.approx(0, abs=1e-9)


def test_contents_of_the_page(tmp_path):
  found = correlated.optimal_equilibrium(SHERIFF)
  page = spiel_cfr.explore(found.policy, tmp_path / "page.html")
  content = explorer_pages.read(page.path)
  assert content["header"]["title"] == "Sheriff (…)"
  assert content["header"]["game"] == SHERIFF
  assert content["header"]["policy"].startswith("players obey the mediator")
  np.testing.assert_allclose(content["header"]["values"], found.expected_values, atol=1e-9)
  table, names = content["infosets"], content["names"]
  begins = np.cumsum(table["num_actions"]) - table["num_actions"]
  obeyed = [row for row, name in enumerate(content["infostates"]) if "[told " in name]
  for row in obeyed:
    told = content["infostates"][row].partition("[told ")[2].partition("]")[0]
    actions = range(begins[row], begins[row] + table["num_actions"][row])
    assert [names[table["move"][a]] for a in actions if table["probability"][a] == 1] == [told]
    # In an equilibrium no deviation gains.
    assert table["best_value"][row] == pytest.approx(table["value"][row], abs=1e-3)
  # The sheriff sees a bribe, and not what the smuggler was told.
  labels = [content["labels"][row] for row in obeyed if table["player"][row] == 1]
  assert labels
  assert not any("P0" in label for label in labels)
  with pytest.raises(errors.GameTooLargeError, match="max_nodes=50"):
    spiel_cfr.explore(found.policy, tmp_path / "page.html", max_nodes=50)


def test_leavers_play_best_responses(tmp_path):
  page = spiel_cfr.explore(mixture(SHERIFF), tmp_path / "page.html")
  content = explorer_pages.read(page.path)
  left = ["[left " in name for name in content["infostates"]]
  value, best = (content["infosets"][name] for name in ("value", "best_value"))
  np.testing.assert_array_equal(value[left], best[left])
  assert (value < best - 0.1).sum() > 2


def test_words_in_another_order_elsewhere(monkeypatch):
  def name(_, state, action):
    return str(1 - action if state.move_number() > 2 else action)

  monkeypatch.setattr(recommendations.MoveNames, "name", name)
  policy = mixture("kuhn_poker")
  _, gains = mediated(policy)
  assert gains.nash_conv == pytest.approx(policy.gap("extensive-form").gap, abs=1e-9)


def test_words_that_a_file_could_not_have(monkeypatch):
  """Quotes, backslashes and line breaks; and actions of one name."""
  monkeypatch.setattr(recommendations.MoveNames, "name", lambda *_: 'a "b"\\\n c')
  policy = mixture("kuhn_poker")
  _, gains = mediated(policy)
  assert gains.nash_conv == pytest.approx(policy.gap("extensive-form").gap, abs=1e-9)
  game, _ = recommendations.game_with_mediator(policy, 10_000)
  state = game.view.new_initial_state()
  assert state.action_to_string(-1, 0) == "a 'b'/ c (0)"
