"""The best correlated equilibria, against a program over all pairs of pure strategies, and published numbers."""

import itertools

import numpy as np
import pyspiel
import pytest
import random_games
import scipy.optimize

import spiel_cfr
from spiel_cfr import correlated, errors, evaluation

CONCEPTS = ("EFCE", "EFCCE", "NFCCE")
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
      # What may be played from there on, by whoever comes there.
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
