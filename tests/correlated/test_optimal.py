"""The best correlated equilibria, against a program over all pairs of pure strategies, and numbers known by hand."""

import itertools
import signal
import threading

import numpy as np
import pyspiel
import pytest
import random_games
import scipy.optimize

import spiel_cfr
from spiel_cfr import correlated, errors, evaluation

CONCEPTS = ("EFCE", "EFCCE", "NFCCE")
SHERIFF = "sheriff(item_penalty=1.0,item_value=5.0,max_bribe=1,max_items=2,num_rounds=1,sheriff_penalty=1.0)"
OBJECTIVES = ("welfare", "fairness", 0, 1)


def pure_strategies(owner, above):
  """Returns all reduced pure strategies, shape (strategies, sequences), of sequences by infoset and what is above."""

  def choices(sequence):
    """Yields the sets of sequences that follow one."""
    below = [
      [{action} | rest for action in np.flatnonzero(owner == infoset) for rest in choices(action)]
      for infoset in np.flatnonzero(above == sequence)
    ]
    for parts in itertools.product(*below):
      yield set().union(*parts)

  found = list(choices(0))
  result = np.zeros((len(found), len(owner)))
  result[:, 0] = 1
  for row, chosen in enumerate(found):
    result[row, list(chosen)] = 1
  return result


def below(infoset, owner, above):
  """Returns which sequences are of an infoset or follow it."""
  result = owner == infoset
  for sequence in range(1, len(owner)):
    result[sequence] |= result[above[owner[sequence]]]
  return result


def shape(game, player):
  """Returns the infoset of each sequence, and the sequence above each infoset, from the rows of the constraints."""
  rows = evaluation.constraint_matrix(game, player).toarray()[1:]
  owner = np.full(rows.shape[1], -1)
  owner[1:] = np.argmax(rows[:, 1:] == 1, axis=0) if len(rows) else -1
  above = np.argmin(rows, axis=1) if len(rows) else np.zeros(0, int)
  return owner, above


def best_by_listing(game, concept, objective):
  """Returns the best equilibrium's objective by a program over pairs of pure strategies, all deviations listed."""
  shapes = [shape(game, player) for player in (0, 1)]
  plans = [pure_strategies(*each) for each in shapes]
  utilities = [
    plans[0] @ evaluation.payoff_matrix(game, player).toarray() @ plans[1].T for player in (0, 1)
  ]
  inequalities = []
  for player, (owner, above) in enumerate(shapes):
    own = plans[player]
    payoffs = evaluation.payoff_matrix(game, player).toarray()
    to_others = (payoffs @ plans[1].T) if player == 0 else (payoffs.T @ plans[0].T)
    told = own @ to_others
    triggers = {
      "EFCE": [(infoset, action) for action, infoset in enumerate(owner) if infoset >= 0],
      "EFCCE": [(infoset, above[infoset]) for infoset in range(len(above))],
      "NFCCE": [(None, 0)],
    }[concept]
    for infoset, sequence in triggers:
      inside = np.ones(len(owner), bool) if infoset is None else below(infoset, owner, above)
      # The possible continuations from there on.
      comes = own[:, 0 if infoset is None else above[infoset]] > 0
      for continuation in np.unique(own[comes] * inside, axis=0):
        gains = np.where(
          own[:, [sequence]] > 0, (own * ~inside + continuation) @ to_others - told, 0
        )
        inequalities.append(gains if player == 0 else gains.T)
  size = utilities[0].size
  columns = np.array([each.ravel() for each in inequalities]).reshape(-1, size)
  columns = np.hstack([columns, np.zeros((len(columns), 1))])
  costs = np.zeros(size + 1)
  if objective == "fairness":
    least = np.hstack([[-each.ravel() for each in utilities], np.ones((2, 1))])
    columns, costs[-1] = np.vstack([columns, least]), -1
  else:
    costs[:-1] = -(sum(utilities) if objective == "welfare" else utilities[objective]).ravel()
  found = scipy.optimize.linprog(
    costs,
    A_ub=columns,
    b_ub=np.zeros(len(columns)),
    A_eq=np.append(np.ones(size), 0)[None],
    b_eq=[1],
    bounds=[(0, None)] * size + [(None, None)],
  )
  assert found.status == 0
  return -found.fun


def small_game(seed):
  return spiel_cfr.compile_game(
    random_games.random_game(
      seed,
      zero_sum=False,
      chance_root=bool(seed % 2),
      max_depth=5,
      max_histories=28,
      max_actions=3,
      payoff_ties=True,
    )
  )


@pytest.mark.parametrize("seed", range(12))
def test_against_all_pairs_of_pure_strategies(seed):
  game = small_game(seed)
  concept = CONCEPTS[seed % 3]
  for objective in OBJECTIVES:
    found = correlated.optimal_equilibrium(game, concept, objective)
    expected = best_by_listing(game, concept, objective)
    assert found.gains == pytest.approx([0, 0], abs=1e-8)
    if found.is_exact:
      assert found.value == pytest.approx(expected, abs=1e-7)
    else:
      assert found.value > expected - 1e-7


def test_the_sheriff_s_game():
  """The three concepts differ, and the listing of all pairs finds the same values."""
  game = spiel_cfr.compile_game(SHERIFF)
  values = []
  for concept in CONCEPTS:
    found = correlated.optimal_equilibrium(game, concept)
    assert found.is_exact
    assert found.value == pytest.approx(best_by_listing(game, concept, "welfare"), abs=1e-7)
    assert found.value == pytest.approx(found.expected_values.sum())
    values.append(found.value)
  assert values == pytest.approx([10 / 7, 2.5268817204, 70 / 13])


def test_two_rounds_with_the_sheriff():
  """Bribes are passwords: two items for a bribe of 2, as much as the sheriff would get by inspecting."""
  found = correlated.optimal_equilibrium(
    "sheriff(item_penalty=1.0,item_value=5.0,max_bribe=2,max_items=5,num_rounds=2,sheriff_penalty=1.0)"
  )
  assert found.expected_values == pytest.approx([8, 2])


def test_units_do_not_matter():
  """Payoffs in other units have values in these."""
  payoffs = [[0.0, 7.0], [2.0, 6.0]]
  for factor in (1e-6, 1e6):
    rows = factor * np.array(payoffs)
    game = pyspiel.create_matrix_game(rows.tolist(), rows.T.tolist())
    found = correlated.optimal_equilibrium(game)
    # Aumann's game of chicken: the best correlated equilibrium has 5.25 for each.
    assert found.value == pytest.approx(10.5 * factor)
    assert found.expected_values == pytest.approx([5.25 * factor] * 2)


def test_shapley_s_game():
  """Its best correlated equilibrium is a sixth off the diagonal each (Shoham and Leyton-Brown 2009)."""
  found = correlated.optimal_equilibrium("matrix_shapleys_game", "EFCE")
  assert found.expected_values == pytest.approx([0.5, 0.5])
  assert (
    "<EFCE of turn_based_simultaneous_game(game=matrix_shapleys_game()): welfare 1, leaving"
    in repr(found)
  )


def test_battleship():
  """No ship is lost with probability 5/18: our own first result, to notice changes."""
  found = correlated.optimal_equilibrium(
    "battleship(board_height=3,board_width=1,ship_sizes=[1],ship_values=[1.0],num_shots=2,allow_repeated_shots=False,"
    "loss_multiplier=2.0)"
  )
  # Sinking a ship gives 1 to the player, and -2 to its owner: welfare is minus the probability that one is lost.
  assert found.value == pytest.approx(-13 / 18)
  assert found.expected_values == pytest.approx([-1 / 9, -11 / 18])


def xor_game():
  """Two players with private bits a and b win if their actions are the same unless a = b = 1."""
  lines = ['EFG 2 R "xor" { "0" "1" } ""', 'c "" 1 "" { "00" 1/4 "01" 1/4 "10" 1/4 "11" 1/4 } 0']
  for number, (a, b) in enumerate(itertools.product((0, 1), repeat=2)):
    lines.append(f'p "" 1 {a + 1} "a{a}" {{ "l" "r" }} 0')
    for x in (0, 1):
      lines.append(f'p "" 2 {b + 1} "b{b}" {{ "l" "r" }} 0')
      for y in (0, 1):
        wins = int((x ^ y) == (a & b))
        lines.append(f't "" {4 * number + 2 * x + y + 1} "" {{ {wins} {wins} }}')
  return pyspiel.load_efg_game("\n".join(lines) + "\n")


def test_private_types_have_a_bound():
  """Clauser, Horne, Shimony and Holt's game: shared randomness wins 3/4 of it.

  Correlation plans only require that no player learns the other's bit, and always win.
  """
  game = spiel_cfr.compile_game(xor_game())
  found = correlated.optimal_equilibrium(game)
  assert not found.is_exact
  assert found.value == pytest.approx(2)
  assert best_by_listing(game, "EFCE", "welfare") == pytest.approx(1.5)
  assert "at most 2" in repr(found)


def test_games_without_correlation_plans_are_refused():
  """Each refusal says what to do."""
  with pytest.raises(errors.UnsupportedGameError, match="see MixturePolicy"):
    correlated.optimal_equilibrium("kuhn_poker(players=3)")
  with pytest.raises(errors.ArgumentError, match="'EFCE', 'EFCCE', 'NFCCE'"):
    correlated.optimal_equilibrium("kuhn_poker", "CE")
  with pytest.raises(errors.ArgumentError, match="objective"):
    correlated.optimal_equilibrium("kuhn_poker", objective=2)
  with pytest.raises(errors.GameTooLargeError, match="max_nodes=10"):
    correlated.optimal_equilibrium("kuhn_poker", max_histories=10)


def test_games_too_large_are_refused_before_the_work():
  for ask in (correlated.optimal_equilibrium, lambda game: spiel_cfr.solve_qre(game, 3.0)):
    with pytest.raises(errors.GameTooLargeError, match="max_nodes=100,000"):
      ask("tic_tac_toe")


def test_an_interrupt_ends_the_wait_for_a_linear_program(monkeypatch):
  """HiGHS looks at no signal."""
  done = threading.Event()

  def linprog(*arguments, **options):
    signal.raise_signal(signal.SIGINT)
    done.wait(60)

  monkeypatch.setattr(scipy.optimize, "linprog", linprog)
  for ask in (correlated.optimal_equilibrium, spiel_cfr.solve_lp):
    with pytest.raises(KeyboardInterrupt):
      ask("kuhn_poker")
  done.set()
