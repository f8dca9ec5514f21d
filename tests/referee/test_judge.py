"""Judgements of policies, agents, bots and networks equal OpenSpiel's."""

import re

import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as open_spiel_policy
from open_spiel.python import rl_environment
from open_spiel.python.algorithms import expected_game_score, exploitability, tabular_qlearner

import spiel_cfr
from spiel_cfr import errors

GAMES = [
  "kuhn_poker",
  "leduc_poker",
  "liars_dice(numdice=1,dice_sides=2)",
  "kuhn_poker(players=3)",
  "first_sealed_auction(max_value=4)",
  "goofspiel(num_cards=3,imp_info=True)",
]


@pytest.fixture(scope="module")
def leduc():
  return spiel_cfr.compile_game("leduc_poker")


def network(tensors, legal_actions):
  """Logits of an untrained network."""
  weights = np.random.default_rng(tensors.shape[1]).standard_normal(
    (tensors.shape[1], legal_actions.shape[1])
  )
  return np.float32(tensors @ weights)


def softmax(logits, legal_actions):
  weights = np.where(legal_actions, np.exp(logits), 0)
  return weights / weights.sum(axis=1, keepdims=True)


class NetworkPolicy(open_spiel_policy.Policy):
  """The same network as users of OpenSpiel wrap it."""

  def action_probabilities(self, state, player_id=None):
    legal = np.array(state.legal_actions_mask())[None] > 0
    shown = np.array(state.information_state_tensor(), np.float32)[None]
    if isinstance(state, pyspiel.TurnBasedSimultaneousState):
      state = state.simultaneous_game_state()
      shown = shown[:, -state.get_game().information_state_tensor_size() :]
    (chances,) = softmax(network(shown, legal), legal)
    return {action: float(chances[action]) for action in np.flatnonzero(legal)}


class Tensor:
  """A stand-in for a PyTorch tensor on a GPU that requires gradients."""

  def __init__(self, numbers, steps=("detach", "cpu")):
    self._numbers, self._steps = numbers, steps

  def detach(self):
    return Tensor(self._numbers, self._steps[1:])

  def cpu(self):
    assert self._steps == ("cpu",)
    return Tensor(self._numbers, ())

  def __array__(self, dtype=None, copy=None):
    assert not self._steps, "Can't convert a tensor on a GPU, or one that requires grad"
    return np.array(self._numbers, dtype)


@pytest.mark.parametrize("name", GAMES)
def test_openspiel_says_the_same(name):
  compiled = spiel_cfr.compile_game(name)
  verdict = spiel_cfr.judge(compiled, network, answers="logits", batch_size=7)
  policy = NetworkPolicy(compiled.game, list(range(compiled.num_players)))
  nash_conv = exploitability.nash_conv(
    compiled.game, policy, return_only_nash_conv=False, use_cpp_br=False
  )
  assert verdict.nash_conv == pytest.approx(nash_conv.nash_conv, abs=1e-6)
  gains = verdict.best_response_values - verdict.expected_values
  assert gains == pytest.approx(nash_conv.player_improvements, abs=1e-6)
  values = expected_game_score.policy_value(
    compiled.game.new_initial_state(), [policy] * compiled.num_players
  )
  assert verdict.expected_values == pytest.approx(values, abs=1e-6)
  again = spiel_cfr.judge(compiled, policy)
  assert again.nash_conv == pytest.approx(verdict.nash_conv, abs=1e-6)
  assert spiel_cfr.nash_conv(compiled, verdict.policy) == pytest.approx(verdict.nash_conv)


@pytest.mark.parametrize("name", GAMES)
def test_gains_of_infosets_sum_to_the_players_gains(name):
  compiled = spiel_cfr.compile_game(name)
  verdict = spiel_cfr.judge(compiled, network, answers="logits")
  gains = verdict.best_response_values - verdict.expected_values
  assert (verdict.gains > -1e-12).all()
  for player in range(compiled.num_players):
    own = verdict.gains[compiled.infoset_rows(player)]
    assert own.sum() == pytest.approx(gains[player], abs=1e-12)
  worst = verdict.worst(3)
  assert [each.gain for each in worst] == sorted(verdict.gains, reverse=True)[:3]
  for each in worst:
    row = compiled.infostates[each.player].index(each.infostate)
    assert verdict.gains[compiled.infoset_rows(each.player)][row] == each.gain


def test_a_fault_shows_where_it_is_punished():
  """Folding a king to a bet lowers the guarantee, at no cost unless the opponent bets all hands."""
  solved = spiel_cfr.solve_lp("kuhn_poker").policy_dict()
  verdict = spiel_cfr.judge("kuhn_poker", solved | {"2b": {0: 1.0, 1: 0.0}})
  assert verdict.value_gaps == pytest.approx([0, verdict.nash_conv], abs=1e-9)
  assert {(each.player, each.best) for each in verdict.worst()} == {(0, 1)}
  assert sum(each.gain for each in verdict.worst()) == pytest.approx(verdict.nash_conv)
  assert "52.9% player 0 plays the best action, Bet, with probability 0 at '0'" in str(verdict)
  assert not spiel_cfr.judge("kuhn_poker", solved).worst()


@pytest.mark.parametrize("vector_form", [False, True])
def test_long_infostates_are_told_apart(vector_form):
  """Infostates are printed whole; actions have names if a state is known."""
  solver = spiel_cfr.CFRSolver(spiel_cfr.compile_game("leduc_poker", vector_form=vector_form))
  solver.run(5)
  lines = str(spiel_cfr.judge(solver.compiled_game, solver)).splitlines()[-5:]
  assert len(set(lines)) == 5
  infostates = [re.search(r"'(\[Observer.*)'$", line)[1] for line in lines]
  assert set(infostates) <= set(solver.average_policy_dict())
  action = r"\d" if vector_form else "(Fold|Call|Raise)"
  assert all(re.search(f"best action, {action}, with", line) for line in lines)


def test_every_way_to_hand_a_policy_over(leduc):
  wanted = spiel_cfr.judge(leduc, network, answers="logits")
  table = wanted.policy
  plain = {
    name: {action: chance for action, chance in enumerate(table.policy_for_key(name)) if chance}
    for name in table.state_lookup
  }
  own = [{name: plain[name] for name in names} for names in leduc.infostates]
  bots = [spiel_cfr.PolicyBot(plain, player) for player in range(2)]
  shown = []

  def by_strings(strings, legal_actions):
    shown.append(len(strings))
    return np.array([table.policy_for_key(name) for name in strings])

  def by_states(states, legal_actions):
    rows = [table.policy_for_key(state.information_state_string()) for state in states]
    for state in states:
      state.apply_action(state.legal_actions()[0])
    return np.array(rows)

  def by_tensors(tensors, legal_actions):
    result = softmax(network(tensors, legal_actions), legal_actions)
    tensors[:] = legal_actions[:] = 0
    return Tensor(np.float32(result))

  for policy, observes in (
    (by_tensors, "tensors"),
    (by_strings, "strings"),
    (by_states, "states"),
    ([by_strings, table], "strings"),
    (plain, "tensors"),
    (own, "tensors"),
    (bots, "tensors"),
    (spiel_cfr.policies.to_pyspiel(leduc, wanted.probabilities), "tensors"),
  ):
    for _ in range(2):
      found = spiel_cfr.judge(leduc, policy, observes=observes, batch_size=100)
      assert found.nash_conv == pytest.approx(wanted.nash_conv, abs=1e-6)
  assert max(shown) == 100


def test_solvers_and_solutions():
  solver = spiel_cfr.CFRSolver("kuhn_poker")
  solver.run(10)
  solution = spiel_cfr.solve("kuhn_poker", iterations=10, solver="cfr", progress=False)
  theirs = pyspiel.CFRSolver(pyspiel.load_game("kuhn_poker"))
  for _ in range(10):
    theirs.evaluate_and_update_policy()
  for each in (solver, solution, theirs):
    assert spiel_cfr.judge("kuhn_poker", each).nash_conv == pytest.approx(solver.nash_conv())


def q_learners(name, episodes=200):
  environment = rl_environment.Environment(name)
  environment.seed(1)
  agents = [
    tabular_qlearner.QLearner(player, environment.action_spec()["num_actions"])
    for player in range(environment.num_players)
  ]
  for _ in range(episodes):
    step = environment.reset()
    while not step.last():
      if environment.is_turn_based:
        moves = [agents[step.observations["current_player"]].step(step).action]
      else:
        moves = [agent.step(step).action for agent in agents]
      step = environment.step(moves)
    for agent in agents:
      agent.step(step)
  return agents


@pytest.mark.parametrize("name", ["kuhn_poker", "goofspiel(num_cards=3,imp_info=True)"])
def test_agents_of_open_spiel(name):
  """Tabular agents look infosets up by their environment's observations."""
  agents = q_learners(name)
  assert all(len(agent._q_values) > 5 for agent in agents)
  verdict = spiel_cfr.judge(name, agents)
  assert all(agent._prev_info_state is None for agent in agents)
  # An agent that is asked about a new infoset stores it, under its name in play.
  infostates = verdict.compiled_game.infostates
  assert [len(agent._q_values) for agent in agents] == list(map(len, infostates))
  with pytest.raises(errors.PolicyError, match="plays as player 1"):
    spiel_cfr.judge(name, agents[::-1])
  with pytest.raises(errors.PolicyError, match="one for each player"):
    spiel_cfr.judge(name, agents[0])


def wrong(change):
  def function(tensors, legal_actions):
    rows = legal_actions / legal_actions.sum(axis=1, keepdims=True)
    return change(rows)

  return function


def with_first(number):
  def change(rows):
    rows[3, 0] = number
    return rows

  return change


@pytest.mark.parametrize(
  ("change", "message"),
  [
    (lambda rows: rows[1:], r"shape \(5, 2\).*be \(6, 2\)"),
    (lambda rows: rows[:, :1], r"shape \(6, 1\).*a number for each action"),
    (lambda rows: rows[0], r"shape \(2,\).*a row for each infoset"),
    (lambda rows: rows * 1.1, "not a distribution"),
    (lambda rows: None, "shape"),
    (lambda rows: "x", "an array of numbers"),
    (with_first(np.nan), "not a distribution"),
    (with_first(np.inf), "not a distribution"),
    (with_first(-0.5), "not a distribution"),
  ],
)
def test_wrong_answers(change, message):
  with pytest.raises(errors.PolicyError, match=message):
    spiel_cfr.judge("kuhn_poker", wrong(change))


def test_errors_quote_the_infoset(leduc):
  def plays_anything(tensors, legal_actions):
    return np.full(legal_actions.shape, 1 / 3)

  with pytest.raises(errors.PolicyError, match=r"infostate '\[Observer: 0.*not legal.*answers="):
    spiel_cfr.judge(leduc, plays_anything)
  for bad in (np.nan, np.inf, -np.inf):
    with pytest.raises(errors.PolicyError, match="not logits"):
      spiel_cfr.judge(leduc, lambda _, mask, bad=bad: np.full(mask.shape, bad), answers="logits")


def test_logits_of_illegal_actions_count_for_nothing(leduc):
  wanted = spiel_cfr.judge(leduc, network, answers="logits").nash_conv
  for illegal in (-np.inf, 1e9, np.nan):
    found = spiel_cfr.judge(
      leduc,
      lambda tensors, mask, illegal=illegal: np.where(mask, 1000 + network(tensors, mask), illegal),
      answers="logits",
    )
    assert found.nash_conv == pytest.approx(wanted, abs=1e-4)


class Silent(pyspiel.Bot):
  """A bot that does not reveal its policy."""

  def __init__(self):
    super().__init__()

  def provides_policy(self):
    return False


def test_wrong_policies():
  half = dict(list(spiel_cfr.solve_lp("kuhn_poker").policy_dict().items())[:6])
  random = pyspiel.make_uniform_random_bot
  for policy, message in (
    (half, "no probabilities for infostate"),
    ([half], "1 policies for a game of 2 players"),
    (7, "is not a policy"),
    (random(0, 1), "one for each player"),
    ([Silent(), Silent()], "does not provide"),
  ):
    with pytest.raises(errors.PolicyError, match=message):
      spiel_cfr.judge("kuhn_poker", policy)
  with pytest.raises(errors.FeaturesError, match="no information state tensors"):
    spiel_cfr.judge("coordinated_mp", network)


def test_values():
  assert spiel_cfr.judge("kuhn_poker", network, answers="logits").value == pytest.approx(-1 / 18)
  large = spiel_cfr.judge("kuhn_poker", network, answers="logits", value=0.25)
  assert large.value_gaps is not None
  assert large.value_gaps.sum() == pytest.approx(large.nash_conv)
  assert large.value_gaps[0] == pytest.approx(0.25 + large.best_response_values[1])
  three = spiel_cfr.judge("kuhn_poker(players=3)", network, answers="logits")
  assert three.value is three.value_gaps is three.guaranteed is None
  assert "0 in a Nash" in str(three)
  with pytest.raises(errors.UnsupportedGameError):
    _ = three.exploitability
  with pytest.raises(errors.UnsupportedGameError):
    spiel_cfr.judge("kuhn_poker(players=3)", network, answers="logits", value=0.25)


def test_page(tmp_path, leduc):
  verdict = spiel_cfr.judge(leduc, network, answers="logits")
  page = spiel_cfr.explore(verdict, tmp_path / "page.html", title="a network")
  assert page.num_infosets == 936
  assert repr(verdict).startswith("<Verdict on a policy of leduc_poker")


def test_games_without_states_take_strings():
  pennies = spiel_cfr.games.game_from_arrays(
    [[0], [0]], [[2], [2]], [[1, 1, 2, 2], [1, 2, 1, 2]], [1, -1, -1, 1]
  )

  def always_first(strings, legal_actions):
    return np.eye(2)[[0]]

  verdict = spiel_cfr.judge(pennies, always_first, observes="strings")
  assert (verdict.nash_conv, verdict.value) == (2, 0)
  with pytest.raises(errors.NoStatesError):
    spiel_cfr.judge(pennies, always_first)


def test_bots_that_remember_are_told_where_they_are():
  game = pyspiel.load_game("kuhn_poker")
  bots = [pyspiel.make_stateful_random_bot(game, player, 1) for player in range(2)]
  assert spiel_cfr.judge(game, bots).nash_conv == pytest.approx(11 / 12)
