"""The normal-form gap of a mixture of profiles: a player is told a whole strategy before the game.

The mediator draws profile k with its share and from it, for each player, a pure strategy: an action at every infoset. A
player who is told the pure strategy s weighs the profiles with share_k P_k(s), and gains, over all s,

    sum over s of  max over x of <sum over k of share_k P_k(s) g_k, x>   -   what it expects by following

g_k its gradient against profile k. A mixture has the gap 0 if it is a correlated equilibrium (Aumann 1974). Strategies
with weights in the same proportion tell the player the same, and count as one. Where the player is told the mixed
strategy of profile k instead, it knows more; that gap, of OpenSpiel's `ce_dist`, is at least as large.
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

# The most numbers in the weights of the strategies that a player may be told, and in the utilities of some at once.
_MOST_WEIGHTS, _MOST_UTILITIES = 1 << 18, 1 << 20
# Digits by which proportions of weights are told apart.
_DIGITS = 12


def normal_form_gap(
  game: CompiledGame, profiles: Sequence[Float64s], shares: Float64s, kind: str
) -> CorrelatedGap:
  """Returns how far a mixture is from a correlated equilibrium.

  Args:
    game: the game.
    profiles: each in behavioural form, shape (sequences,).
    shares: how likely each profile is, shape (profiles,).
    kind: "normal-form", or "mixed normal-form" where players are told mixed strategies.

  Raises:
    AbstractionError: the game is an abstraction that loses something.
    GameTooLargeError: a player may be told too many pure strategies.
  """
  check_exact(game)
  strategies = np.array(profiles)[shares > 0]
  shares = shares[shares > 0]
  reaches = [forms.sequence_form(game, each) for each in strategies]
  utilities = np.array([gradients(game, each) for each in reaches]) * shares[:, None]
  expected, best = np.zeros((2, game.num_players))
  for player, tree in enumerate(game.treeplexes):
    own = slice(tree.root, tree.end)
    expected[player] = (np.array(reaches)[:, own] * utilities[:, own]).sum()
    told = _mixed(tree, strategies) if kind == MIXED_NORMAL_FORM else _pure(game, tree, strategies)
    step = max(1, _MOST_UTILITIES // (tree.end - tree.root))
    for start in range(0, len(told), step):
      best[player] += _best_values(tree, told[start : start + step] @ utilities[:, own]).sum()
  return make_gap(best - expected, expected, kind)


def _mixed(tree: Treeplex, strategies: Float64s) -> Float64s:
  """Returns which profiles have each different mixed strategy of the player, shape (strategies, profiles)."""
  own = [sequences.ravel() for sequences, _ in tree.infoset_groups()]
  if not own:
    return np.ones((1, len(strategies)))
  _, which = np.unique(strategies[:, np.concatenate(own)], axis=0, return_inverse=True)
  return np.asarray(np.arange(which.max() + 1)[:, None] == which.ravel(), np.float64)


def _pure(game: CompiledGame, tree: Treeplex, strategies: Float64s) -> Float64s:
  """Returns how likely each pure strategy is in each profile, shape (strategies, profiles), proportional ones as one.

  Raises:
    GameTooLargeError: there are too many.
  """
  told = np.ones((1, len(strategies)))
  for sequences, _ in tree.infoset_groups():
    for column in sequences.T:
      chances = strategies[:, column].T
      if (chances == chances[:, :1]).all():
        continue
      told = (told[:, None] * chances).reshape(-1, len(strategies))
      told = told[told.any(axis=1)]
      if told.size > _MOST_WEIGHTS:
        told = _merged(told)
      if told.size > _MOST_WEIGHTS:
        raise errors.GameTooLargeError(
          f"In {game} a player of these {len(strategies)} profiles may be told more than {len(told):,} pure "
          f"strategies. The gap {MIXED_NORMAL_FORM!r} needs no list of them and is at least the gap {NORMAL_FORM!r}."
        )
  return _merged(told)


def _merged(told: Float64s) -> Float64s:
  """Returns the sums of rows that are proportional to one another."""
  proportions = np.round(told / told.sum(axis=1, keepdims=True), _DIGITS)
  order = np.lexsort(proportions.T)
  differs = (np.diff(proportions[order], axis=0) != 0).any(axis=1)
  starts = np.concatenate([[0], np.flatnonzero(differs) + 1])
  return np.asarray(np.add.reduceat(told[order], starts))


def _best_values(tree: Treeplex, utilities: Float64s) -> Float64s:
  """Returns the values of best responses, shape (n,), to utilities of shape (n, sequences of the player)."""
  values = utilities.T.copy()
  for sequences, infosets in reversed(list(tree.infoset_groups())):
    best = values[sequences - tree.root].max(axis=0)
    np.add.at(values, tree.parent[infosets] - tree.root, best)
  return np.asarray(values[0])
