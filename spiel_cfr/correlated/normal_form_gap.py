"""Gap of a mixture of profiles from a normal-form correlated equilibrium: players are told strategies before the game.

The mediator draws profile k with probability q_k, and from the profile a pure strategy for each player: an action at
every infoset. Let P_k(s) be the probability of pure strategy s in profile k, and g_k the player's gradient against the
profile. The player's best deviation gains

    sum over s of  max over x of <sum over k of q_k P_k(s) g_k, x>   -   its expected payoff if it follows

The gap is 0 in a correlated equilibrium (Aumann 1974). If the weights q_k P_k(s) of two pure strategies are
proportional, both tell the player the same about the profile, so they are merged. In the mixed kind of gap, OpenSpiel's
`ce_dist`, the mediator tells each player its mixed strategy of profile k. That is more information, so the gap is at
least as large.
"""

from collections.abc import Sequence

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.correlated.gap_kinds import MIXED_NORMAL_FORM
from spiel_cfr.correlated.gaps import CorrelatedGap, check_exact, make_gap
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.counterfactual_values import gradients
from spiel_cfr.games.sequence_form.treeplex import Treeplex
from spiel_cfr.policies import forms

# The largest numbers of elements of two arrays: probabilities of pure strategies in profiles, utilities of sequences.
_MOST_PROBABILITIES, _MOST_UTILITIES = 1 << 18, 1 << 20
# Strategies are merged if their relative weights agree to this number of decimals.
_DECIMALS = 12


def normal_form_gap(
  game: CompiledGame, profiles: Sequence[Float64s], probabilities: Float64s, kind: str
) -> CorrelatedGap:
  """Returns the gap of a mixture of profiles from a correlated equilibrium in normal form.

  Args:
    game: the game.
    profiles: strategy profiles in behavioral form, each of shape (sequences,).
    probabilities: the probability of each profile, shape (profiles,).
    kind: "normal-form" for pure strategies, "mixed normal-form" for mixed ones.

  Raises:
    AbstractionError: the game is a lossy abstraction.
    GameTooLargeError: the profiles have too many pure strategies.
  """
  check_exact(game)
  strategies = np.array(profiles)[probabilities > 0]
  probabilities = probabilities[probabilities > 0]
  reaches = [forms.sequence_form(game, strategy) for strategy in strategies]
  utilities = np.array([gradients(game, reach) for reach in reaches]) * probabilities[:, None]
  expected, best = np.zeros((2, game.num_players))
  for player, tree in enumerate(game.treeplexes):
    sequences_of_player = slice(tree.root, tree.end)
    expected[player] = (
      np.array(reaches)[:, sequences_of_player] * utilities[:, sequences_of_player]
    ).sum()
    if kind == MIXED_NORMAL_FORM:
      likelihoods = _mixed_strategies(tree, strategies)
    else:
      likelihoods = _pure_strategies(game, tree, strategies)
    step = max(1, _MOST_UTILITIES // (tree.end - tree.root))
    for start in range(0, len(likelihoods), step):
      weighted = likelihoods[start : start + step] @ utilities[:, sequences_of_player]
      best[player] += _best_values(tree, weighted).sum()
  return make_gap(best - expected, expected, kind)


def _mixed_strategies(tree: Treeplex, strategies: Float64s) -> Float64s:
  """Returns a matrix of a player's distinct mixed strategies, shape (strategies, profiles).

  An entry is 1 if the profile contains the mixed strategy, otherwise 0.
  """
  groups = [sequences.ravel() for sequences, _ in tree.infoset_groups()]
  if not groups:
    return np.ones((1, len(strategies)))
  _, number = np.unique(strategies[:, np.concatenate(groups)], axis=0, return_inverse=True)
  return np.asarray(np.arange(number.max() + 1)[:, None] == number.ravel(), np.float64)


def _pure_strategies(game: CompiledGame, tree: Treeplex, strategies: Float64s) -> Float64s:
  """Returns the probability of a player's pure strategies in each profile, shape (strategies, profiles).

  Strategies with proportional probabilities are merged.

  Raises:
    GameTooLargeError: there are too many pure strategies.
  """
  likelihoods = np.ones((1, len(strategies)))
  for sequences, _ in tree.infoset_groups():
    for column in sequences.T:
      probabilities = strategies[:, column].T
      # An infoset at which all profiles play alike gives the player no information.
      if (probabilities == probabilities[:, :1]).all():
        continue
      likelihoods = (likelihoods[:, None] * probabilities).reshape(-1, len(strategies))
      likelihoods = likelihoods[likelihoods.any(axis=1)]
      if likelihoods.size > _MOST_PROBABILITIES:
        likelihoods = _merge_proportional(likelihoods)
      if likelihoods.size > _MOST_PROBABILITIES:
        raise errors.GameTooLargeError(
          f"In {game} a player has more than {len(likelihoods):,} pure strategies in these {len(strategies)} profiles. "
          f"Take the kind {MIXED_NORMAL_FORM!r}, which needs no list of them; its gap is an upper bound."
        )
  return _merge_proportional(likelihoods)


def _merge_proportional(likelihoods: Float64s) -> Float64s:
  """Returns the rows of a matrix, with proportional rows replaced by their sum."""
  proportions = np.round(likelihoods / likelihoods.sum(axis=1, keepdims=True), _DECIMALS)
  order = np.lexsort(proportions.T)
  differs = (np.diff(proportions[order], axis=0) != 0).any(axis=1)
  starts = np.concatenate([[0], np.flatnonzero(differs) + 1])
  return np.asarray(np.add.reduceat(likelihoods[order], starts))


def _best_values(tree: Treeplex, utilities: Float64s) -> Float64s:
  """Returns the values of best responses to gradients of a player.

  Args:
    tree: the player's infosets.
    utilities: shape (n, sequences of the player). The gradients.

  Returns:
    Shape (n,).
  """
  values = utilities.T.copy()
  for sequences, infosets in reversed(list(tree.infoset_groups())):
    best = values[sequences - tree.root].max(axis=0)
    np.add.at(values, tree.parent[infosets] - tree.root, best)
  return np.asarray(values[0])
