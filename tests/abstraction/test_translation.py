"""Policies of filtered games in the whole game, against a walk over histories."""

import numpy as np
import poker_games
import pyspiel
import pytest

import spiel_cfr
from spiel_cfr import errors, policies
from spiel_cfr.poker import bet_filters

# Four cards, two rounds, any bet up to five chips.
_GAME = (
  "universal_poker(betting=nolimit,bettingAbstraction=fullgame,numPlayers=2,numRounds=2,blind=1 1,firstPlayer=1 1,"
  "numSuits=1,numRanks=4,numHoleCards=1,numBoardCards=0 1,stack=5 5)"
)
_SIZES = (2, 5)


def _few(state, actions):
  """Fold, call, and raises to two or five chips, where they are legal; all others if neither is."""
  kept = [action for action in actions if action in (0, 1, *_SIZES)]
  return kept or actions


def _translate(state, action):
  """Translates a raise to the kept raises around it, or to a call."""
  kept = [each for each in _few(state, state.legal_actions()) if each > 1]
  below = [each for each in kept if each < action]
  above = [each for each in kept if each > action]
  if not below:
    return {above[0]: 1.0} if above else {1: 1.0}
  if not above:
    return {below[-1]: 1.0}
  small = spiel_cfr.abstraction.pseudo_harmonic(action, below[-1], above[0])
  return {below[-1]: small, above[0]: 1 - small}


@pytest.fixture(scope="module")
def games():
  whole = spiel_cfr.compile_game(_GAME)
  filtered = spiel_cfr.compile_game(_GAME, action_filter=_few)
  assert filtered.num_infosets < whole.num_infosets
  return whole, filtered


def _value(state, taken, mixed, answer, player, filtered):
  """Returns what a policy gets against another by a walk over histories, its translations drawn at each step."""
  if state.is_terminal():
    return state.player_return(player)
  mover = state.current_player()
  if taken is not None and taken.current_player() != mover:
    taken = None

  def after(action, kept):
    below = None if taken is None else taken.child(kept)
    return _value(state.child(action), below, mixed, answer, player, filtered)

  if state.is_chance_node():
    return sum(chance * after(action, action) for action, chance in state.chance_outcomes())
  if mover == player:
    legal = state.legal_actions()
    if taken is None:
      return sum(after(action, None) for action in legal) / len(legal)
    own = mixed[taken.information_state_string()]
    return sum(chance * after(action, action) for action, chance in own.items() if chance)
  total = 0.0
  for action, chance in answer[state.information_state_string()].items():
    known = taken is None or action in filtered.view.legal_actions(taken)
    found = {action: 1.0} if known else _translate(taken, action)
    total += sum(chance * part * after(action, kept) for kept, part in found.items())
  return total


def test_only_raises_of_others_are_translated(games):
  def translate(state, action):
    # A player who takes a bet for a check may fold, although a check has no such answer.
    assert action > 1
    return {1: 1.0}

  whole, filtered = games
  policy = spiel_cfr.CFRSolver(filtered).average_policy()
  spiel_cfr.abstraction.translated_policy(whole, filtered, policy, translate)


@pytest.mark.parametrize("player", [0, 1])
def test_value_against_random_policies(games, player):
  """Values of the policy against one that plays all actions equal a walk that draws the translations of each bet."""
  whole, filtered = games
  solver = spiel_cfr.CFRPlusSolver(filtered)
  solver.run(100)
  found_policy = spiel_cfr.abstraction.translated_policy(
    whole, filtered, solver.average_policy(), _translate
  )
  rng = np.random.default_rng(player)
  random = {
    infostate: dict(zip(entries, rng.dirichlet(np.ones(len(entries))).tolist(), strict=True))
    for infostate, entries in spiel_cfr.CFRSolver(whole).average_policy_dict().items()
  }
  pair = [random, random]
  pair[player] = found_policy
  found = spiel_cfr.expected_values(whole, pair)[player]
  root = whole.game.new_initial_state()
  expected = _value(root, root, solver.average_policy_dict(), random, player, filtered)
  assert found == pytest.approx(expected, abs=1e-12)


def test_a_filter_that_keeps_all_translates_nothing(games):
  whole, _ = games
  solver = spiel_cfr.CFRPlusSolver(whole)
  solver.run(20)

  def never(state, action):
    raise AssertionError("nothing is off the tree")

  found_policy = spiel_cfr.abstraction.translated_policy(
    whole, whole, solver.average_policy(), never
  )
  found = spiel_cfr.nash_conv(whole, found_policy)
  assert found == pytest.approx(solver.nash_conv(), abs=1e-12)


def test_mixing_between_sizes_helps(games):
  """Fewer sizes cost something in the whole game, though both policies are equilibria of their filtered games."""
  whole, filtered = games
  solver = spiel_cfr.RestartedCFRSolver(filtered)
  spiel_cfr.run(solver, 5000, target_exploitability=1e-6, progress=False)
  found_policy = spiel_cfr.abstraction.translated_policy(
    whole, filtered, solver.average_policy(), _translate
  )
  assert spiel_cfr.exploitability(whole, found_policy) > 1e-3


def test_in_vector_form(games):
  """The vector form gives the same values as listed games."""
  whole, filtered = games
  vector = spiel_cfr.poker.compile_public_game(_GAME)
  solver = spiel_cfr.CFRPlusSolver(spiel_cfr.poker.compile_public_game(_GAME, _few))
  solver.run(50)
  found = spiel_cfr.abstraction.translated_policy(
    vector, solver.compiled_game, solver.average_policy(), _translate
  )
  listed = spiel_cfr.abstraction.translated_policy(
    whole, filtered, solver.average_policy_dict(), _translate
  )
  numbers = [policies.from_policy(whole, each) for each in (found, listed)]
  assert np.allclose(*numbers, rtol=0, atol=1e-12)
  lost = spiel_cfr.exploitability(vector, found)
  assert lost == pytest.approx(spiel_cfr.exploitability(whole, listed), abs=1e-12)
  assert lost > solver.exploitability() + 1e-3


def _by_pot(state, action):
  """Takes a raise of an endgame for the kept amounts around it, as multiples of what is in the middle before it."""
  kept = [each for each in bet_filters.few_bets(state, state.legal_actions()) if each > 1]
  below, above = max([each for each in kept if each < action], default=None), None
  above = min([each for each in kept if each > action], default=None)
  if below is None or above is None:
    return {above or below or 1: 1.0}
  small = spiel_cfr.abstraction.pseudo_harmonic(*(each / 400 for each in (action, below, above)))
  return {below: small, above: 1 - small}


@pytest.mark.slow
def test_of_an_endgame():
  """A river with few hands: the vector form evaluates the policy as the listed game does."""
  game = poker_games.random_endgame(3, 3).load()
  vector = spiel_cfr.poker.compile_public_game(game)
  listed = spiel_cfr.compile_game(game, vector_form=False)
  solver = spiel_cfr.CFRPlusSolver(spiel_cfr.poker.compile_public_game(game, bet_filters.few_bets))
  solver.run(100)
  assert solver.compiled_game.num_infosets < vector.num_infosets
  found = spiel_cfr.abstraction.translated_policy(
    vector, solver.compiled_game, solver.average_policy(), _by_pot
  )
  lost = spiel_cfr.nash_conv(vector, found)
  scale = max(map(abs, vector.payoff_range))
  assert lost == pytest.approx(spiel_cfr.nash_conv(listed, found), abs=1e-9 * scale)
  assert lost > solver.nash_conv()


def test_nearest_sizes(games):
  """Below and above the kept sizes it is the nearest one; a call is a size if one says so."""
  _, filtered = games
  translate = spiel_cfr.abstraction.nearest_sizes(filtered, lambda state, action: action or None)
  state = filtered.view.new_initial_state()
  for card in (0, 1):
    state.apply_action(card)
  for action in (3, 4):
    assert translate(state, action) == pytest.approx(_translate(state, action))
  state.apply_action(2)
  assert filtered.view.legal_actions(state) == [0, 1, 5]
  smaller = spiel_cfr.abstraction.pseudo_harmonic(3, 1, 5)
  assert translate(state, 3) == pytest.approx({1: smaller, 5: 1 - smaller})
  translate = spiel_cfr.abstraction.nearest_sizes(
    filtered, lambda state, action: action if action > 1 else None
  )
  assert translate(state, 3) == {5: 1.0}
  with pytest.raises(errors.AbstractionError, match="none to translate it to"):
    translate(state, 1)


def test_pseudo_harmonic():
  """One half at (A + B + 2AB) / (A + B + 2), all of it at the ends, and less the larger the bet."""
  for below, above in ((0.0, 1.0), (0.5, 2.0), (1.0, 7.5)):
    middle = (below + above + 2 * below * above) / (below + above + 2)
    assert spiel_cfr.abstraction.pseudo_harmonic(middle, below, above) == pytest.approx(0.5)
    assert spiel_cfr.abstraction.pseudo_harmonic(below, below, above) == 1
    assert spiel_cfr.abstraction.pseudo_harmonic(above, below, above) == 0
  for bad in ((2, 0.5, 1), (0.7, 1, 0.5), (float("nan"), 0, 1)):
    with pytest.raises(errors.ArgumentError):
      spiel_cfr.abstraction.pseudo_harmonic(*bad)


def _peek(state, action):
  """Looks at the card of player 0."""
  return {1: 1.0} if state.history()[0] % 2 else _translate(state, action)


def test_refusals(games):
  whole, filtered = games
  average = spiel_cfr.CFRSolver(filtered).average_policy()
  with pytest.raises(errors.AbstractionError, match="must return probabilities"):
    spiel_cfr.abstraction.translated_policy(
      whole, filtered, average, lambda state, action: {1: 0.5}
    )
  with pytest.raises(errors.AbstractionError, match="same infoset"):
    spiel_cfr.abstraction.translated_policy(whole, filtered, average, _peek)
  with pytest.raises(errors.AbstractionError, match="with an action filter"):
    spiel_cfr.abstraction.translated_policy(
      spiel_cfr.compile_game("kuhn_poker"), filtered, average, _translate
    )
  assert isinstance(whole.game, pyspiel.Game)
