"""Bounds on best responses in vector form: floating-point values widened by a bound on their rounding errors.

Every value is a sum of products, each of which passes at most K roundings. Let u = 2^-53 be the unit roundoff, and
g(K) = K u / (1 - K u). The error is at most g(K) times the sum of the absolute values of the products.
docs/theory/certificates.md has the proof and the counts.
"""

import math
from fractions import Fraction

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.certificates.fixed_point import Bounds, Interval
from spiel_cfr.certificates.listed_bounds import PolicyBounds
from spiel_cfr.evaluation import evaluate
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.sequence_form.treeplex import ACTIONS
from spiel_cfr.games.vector.public_tree_game import PublicTreeGame
from spiel_cfr.games.vector.typed_tree import TypedTree
from spiel_cfr.poker.hand_tree import HandTree
from spiel_cfr.policies import forms

_ROUNDOFF = Fraction(1, 1 << 53)
# The largest difference of payoffs that count as equal, relative to a pattern's largest: `private_types.rounded`.
_ALIKE = Fraction(1, 10**13)
# Roundings of a product that do not grow with the game: payoff, factor, pattern, 16 columns.
_FEW = 50
# The number of roundings for a product with a float that stands for a rational within 2^-50.
_READING = 9
# The largest relative difference of sums of returns that count as constant: `vector.tree_pieces`.
_SAME_SUM = Fraction(2, 10**9)
# The number of sums over all hands of the opponent in a showdown's value; see `poker.showdown_kernels`.
_SUMS_OF_HANDS = 16


def needs_rounding(compiled: CompiledGame, max_nodes: int) -> bool:
  """Returns True if a game is in vector form and has too many histories to be listed."""
  if not isinstance(compiled, PublicTreeGame):
    return False
  tree = compiled.tree
  deals = len(tree.deals.weights) if isinstance(tree, TypedTree) else math.prod(tree.num_types)
  return compiled.num_states * deals > max_nodes


def rounded_bounds(compiled: CompiledGame, probabilities: Float64s) -> PolicyBounds:
  """Returns bounds on the values of a policy in a game in vector form.

  Args:
    compiled: the game.
    probabilities: the policy in behavioral form, shape (sequences,).

  Raises:
    UnsupportedGameError: the game is not in vector form, or computes in float32.
  """
  if not isinstance(compiled, PublicTreeGame) or compiled.dtype != np.float64:
    raise errors.UnsupportedGameError(
      f"{compiled} is not in vector form with float64, the only form with a bound on rounding errors. Raise max_nodes, "
      "or compile it with vector_form=True."
    )
  played = forms.sequence_form(compiled, forms.behavioral_form(compiled, probabilities))
  found = evaluate.evaluate(compiled, played)
  width = _error(compiled)
  widened = [
    Bounds.around([Interval(Fraction(each) - width, Fraction(each) + width)]).intervals()[0]
    for each in [*found.expected_values.tolist(), *found.best_response_values.tolist()]
  ]
  return PolicyBounds(widened[:2], widened[2:], _constant_sum(compiled), True)


def _constant_sum(compiled: PublicTreeGame) -> Interval | None:
  """Returns bounds on the constant sum of payoffs; None if there is none. Opposite payoffs sum to exactly 0."""
  if compiled.constant_sum is None:
    return None
  tree, total = compiled.tree, Fraction(compiled.constant_sum)
  if not isinstance(tree, TypedTree) or (tree.matrices[:, 0] == -tree.matrices[:, 1]).all():
    return Interval(Fraction(0), Fraction(0))
  slack = _SAME_SUM * _largest(compiled)
  return Interval(total - slack, total + slack)


def _largest(compiled: CompiledGame) -> Fraction:
  return max(abs(Fraction(each)) for each in compiled.payoff_range) * (1 + _READING * _ROUNDOFF)


def _error(compiled: PublicTreeGame) -> Fraction:
  """Returns a bound on the error of any computed value."""
  tree, most_actions = compiled.tree, int(compiled.groups[:, ACTIONS].max())
  depth = len(tree.levels())
  roundings = depth * (3 * most_actions + 10) + compiled.end + compiled.num_terminals + _FEW
  if isinstance(tree, TypedTree):
    deals = len(tree.deals.weights)
    pairs = tree.num_types[0] * tree.num_types[1]
    # The probability of a pair of types is at most the number of deals times the largest probability of a deal.
    alike = pairs * deals * Fraction(float(tree.weights.max())) * _ALIKE
    mass, roundings = Fraction(1), roundings + deals + _READING * tree.deals.paths.shape[1]
  else:
    assert isinstance(tree, HandTree)
    masses = [Fraction(float(reaches.sum())) for reaches in tree.deal.reaches]
    boards = Fraction(sum(board.probability for board in tree.boards))
    mass = _SUMS_OF_HANDS * boards * masses[0] * masses[1] / Fraction(tree.deal.total)
    alike, roundings = Fraction(0), roundings + 4 * len(tree.deal.hands)
  steps = roundings * _ROUNDOFF
  return _largest(compiled) * (mass * steps / (1 - steps) + alike)
