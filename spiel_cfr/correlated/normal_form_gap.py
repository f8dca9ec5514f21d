"""Normal-form gap of a mixture of profiles: the mediator tells each player a strategy before the game.

The mediator draws profile k with probability share_k, and from it a pure strategy for each player: an action at every
infoset. A player who is told the pure strategy s weights the profiles by share_k P_k(s). With g_k its gradient against
profile k, it gains

    sum over s of  max over x of <sum over k of share_k P_k(s) g_k, x>   -   its expected payoff by following

The gap is 0 in a correlated equilibrium (Aumann 1974). Pure strategies with proportional weights give the player the
same information, and are merged. A player who is told the mixed strategy of profile k has more information; that gap,
OpenSpiel's `ce_dist`, is at least as large.
"""

from collections.abc import Sequence

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.correlated.gaps import (
  MIXED_NORMAL_FORM,
  NORMAL_FORM,
  CorrelatedGap,
  check_exact,
  make_gap,
)
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.counterfactual_values import gradients
from spiel_cfr.games.sequence_form.treeplex import Treeplex
from spiel_cfr.policies import forms

# The most weights of strategies at once, and the most utilities.
_MOST_WEIGHTS, _MOST_UTILITIES = 1 << 18, 1 << 20
# Weights are proportional if they agree in this number of digits.
_DIGITS = 12


def normal_form_gap(
  game: CompiledGame, profiles: Sequence[Float64s], shares: Float64s, kind: str
) -> CorrelatedGap:
  """Returns the gap of a mixture from a correlated equilibrium.

  Args:
    game: the game.
    profiles: strategy profiles in behavioral form, each of shape (sequences,).
    shares: the probability of each profile, shape (profiles,).
    kind: "normal-form" for pure strategies, "mixed normal-form" for mixed ones.

  Raises:
    AbstractionError: the game is a lossy abstraction.
    GameTooLargeError: the profiles have too many pure strategies.
  """
  check_exact(game)
  strategies = np.array(profiles)[shares > 0]
  shares = shares[shares > 0]
  reaches = [forms.sequence_form(game, each) for each in strategies]
  utilities = np.array([gradients(game, each) for each in reaches]) * shares[:, None]
  expected, best = np.zeros((2, game.num_players))
  for player, tree in enumerate(game.treeplexes):
    part = slice(tree.root, tree.end)
    expected[player] = (np.array(reaches)[:, part] * utilities[:, part]).sum()
    mixed = kind == MIXED_NORMAL_FORM
    likelihoods = _mixed(tree, strategies) if mixed else _pure(game, tree, strategies)
    step = max(1, _MOST_UTILITIES // (tree.end - tree.root))
    for start in range(0, len(likelihoods), step):
      weighted = likelihoods[start : start + step] @ utilities[:, part]
      best[player] += _best_values(tree, weighted).sum()
  return make_gap(best - expected, expected, kind)


def _mixed(tree: Treeplex, strategies: Float64s) -> Float64s:
  """Returns 1 where a profile contains a mixed strategy of the player, else 0; shape (strategies, profiles)."""
  groups = [sequences.ravel() for sequences, _ in tree.infoset_groups()]
  if not groups:
    return np.ones((1, len(strategies)))
  _, number = np.unique(strategies[:, np.concatenate(groups)], axis=0, return_inverse=True)
  return np.asarray(np.arange(number.max() + 1)[:, None] == number.ravel(), np.float64)


def _pure(game: CompiledGame, tree: Treeplex, strategies: Float64s) -> Float64s:
  """Returns the probability of each pure strategy in each profile, shape (strategies, profiles).

  Strategies with proportional probabilities are merged.

  Raises:
    GameTooLargeError: there are too many pure strategies.
  """
  likelihoods = np.ones((1, len(strategies)))
  for sequences, _ in tree.infoset_groups():
    for column in sequences.T:
      chances = strategies[:, column].T
      if (chances == chances[:, :1]).all():
        continue
      likelihoods = (likelihoods[:, None] * chances).reshape(-1, len(strategies))
      likelihoods = likelihoods[likelihoods.any(axis=1)]
      if likelihoods.size > _MOST_WEIGHTS:
        likelihoods = _merge_proportional(likelihoods)
      if likelihoods.size > _MOST_WEIGHTS:
        raise errors.GameTooLargeError(
          f"In {game} a player of these {len(strategies)} profiles has more than {len(likelihoods):,} pure "
          f"strategies. The gap {MIXED_NORMAL_FORM!r} needs no list of them and is at least the gap {NORMAL_FORM!r}."
        )
  return _merge_proportional(likelihoods)


def _merge_proportional(likelihoods: Float64s) -> Float64s:
  """Returns the rows, with proportional ones replaced by their sum."""
  proportions = np.round(likelihoods / likelihoods.sum(axis=1, keepdims=True), _DIGITS)
  order = np.lexsort(proportions.T)
  differs = (np.diff(proportions[order], axis=0) != 0).any(axis=1)
  starts = np.concatenate([[0], np.flatnonzero(differs) + 1])
  return np.asarray(np.add.reduceat(likelihoods[order], starts))


def _best_values(tree: Treeplex, utilities: Float64s) -> Float64s:
  """Returns the values of best responses, shape (n,), to gradients of shape (n, sequences of the player)."""
  values = utilities.T.copy()
  for sequences, infosets in reversed(list(tree.infoset_groups())):
    best = values[sequences - tree.root].max(axis=0)
    np.add.at(values, tree.parent[infosets] - tree.root, best)
  return np.asarray(values[0])
