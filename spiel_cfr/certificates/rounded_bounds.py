"""Bounds on best responses of large games: floating-point values, widened by a bound on their rounding errors.

A value is a sum of products. Let K be the largest number of roundings that a product passes, u = 2^-53 the unit
roundoff, and g(K) = K u / (1 - K u). Then the error is at most g(K) times the sum of the absolute values of the
products. docs/theory/certificates.md has the proof and the counts.
"""

import math
from fractions import Fraction

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.certificates.fixed_point import Interval, IntervalArray
from spiel_cfr.certificates.listed_bounds import PolicyBounds
from spiel_cfr.evaluation import evaluate
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.openspiel.state_checks import longest_history
from spiel_cfr.games.payoffs.typed_patterns import TypedPatterns
from spiel_cfr.games.payoffs.utility_bounds import check_payoffs
from spiel_cfr.games.private_moves.private_moves_game import PrivateMovesGame
from spiel_cfr.games.sequence_form.treeplex import ACTIONS
from spiel_cfr.games.vector.public_tree_game import PublicTreeGame
from spiel_cfr.games.vector.typed_tree import TypedTree
from spiel_cfr.poker.hand_tree import HandTree
from spiel_cfr.policies import forms

_ROUNDOFF = Fraction(1, 1 << 53)
# The largest difference of payoffs that `private_types.rounded` makes equal, relative to the largest of a pattern.
_ALIKE = Fraction(1, 10**13)
# The number of roundings of a product that does not grow with the game: payoff, factor, pattern, 16 columns.
_FIXED_ROUNDINGS = 100
# The number of roundings that covers a float which stands for all numbers within 2^-48 of its size.
_ROUNDINGS_OF_READ_FLOAT = 33
# The largest relative difference of sums of returns that `vector.tree_pieces` takes as constant.
_SAME_SUM = Fraction(2, 10**9)
# The number of sums over all hands of the opponent in a showdown's value; see `poker.showdown_kernels`.
_SUMS_OF_HANDS = 16


def needs_floats(compiled: CompiledGame, max_nodes: int) -> bool:
  """Returns True if a game has too many histories for integers."""
  deals = 1
  if isinstance(compiled, PublicTreeGame):
    tree = compiled.tree
    deals = len(tree.deals.weights) if isinstance(tree, TypedTree) else math.prod(tree.num_types)
  return compiled.num_states * deals > max_nodes


def rounded_bounds(compiled: CompiledGame, probabilities: Float64s) -> PolicyBounds:
  """Returns bounds on the values of a policy.

  Args:
    compiled: the game.
    probabilities: the policy in behavioral form, shape (sequences,).

  Raises:
    UnsupportedGameError: the game computes in float32.
    InvalidPayoffError: the payoffs are too large or too small to compute with.
    NoStatesError: the game was made of arrays.
  """
  if compiled.dtype != np.float64:
    raise errors.UnsupportedGameError(
      f"{compiled} computes in float32, for which there is no bound on rounding errors. Compile it with float64, or "
      "raise max_nodes."
    )
  check_payoffs(compiled.name, compiled.payoff_range)
  width = _error(compiled)
  played = forms.sequence_form(compiled, forms.behavioral_form(compiled, probabilities))
  evaluation = evaluate.evaluate(compiled, played)
  expected, best = (
    IntervalArray.around(
      Interval(Fraction(value) - width, Fraction(value) + width) for value in values.tolist()
    ).intervals()
    for values in (evaluation.expected_values, evaluation.best_response_values)
  )
  return PolicyBounds(expected, best, _constant_sum(compiled), is_rational=False)


def _constant_sum(compiled: CompiledGame) -> Interval | None:
  """Returns bounds on the constant sum of payoffs; None if there is none. Opposite payoffs sum to exactly 0."""
  if compiled.constant_sum is None:
    return None
  slack = Fraction(0) if _are_opposite(compiled) else _SAME_SUM * _largest(compiled)
  total = Fraction(compiled.constant_sum)
  return Interval(total - slack, total + slack)


def _are_opposite(compiled: CompiledGame) -> bool:
  """Returns whether each stored payoff of player 1 is the negative of player 0's."""
  if isinstance(compiled, PublicTreeGame):
    tree = compiled.tree
    if not isinstance(tree, TypedTree):
      return True
    first, second = tree.matrices[:, 0], tree.matrices[:, 1]
  elif isinstance(compiled, PrivateMovesGame):
    first, second = compiled.payoff.payoffs
  else:
    return False
  return bool((first == -second).all())


def _largest(compiled: CompiledGame) -> Fraction:
  """Returns a bound on the size of any payoff."""
  largest = max(abs(Fraction(bound)) for bound in compiled.payoff_range)
  return largest * (1 + _ROUNDINGS_OF_READ_FLOAT * _ROUNDOFF)


def _error(compiled: CompiledGame) -> Fraction:
  """Returns a bound on the error of any computed value."""
  most_actions = int(compiled.groups[:, ACTIONS].max(initial=0))
  mass, alike = Fraction(1), Fraction(0)
  if not isinstance(compiled, PublicTreeGame):
    payoff, depth = compiled.payoff, longest_history(compiled.view)
    # Every number of the payoff's arrays has at least four bytes.
    sums = compiled.end + payoff.num_bytes // 4
    if not isinstance(compiled, PrivateMovesGame):
      sums += compiled.num_terminals
    if isinstance(payoff, TypedPatterns):
      alike = compiled.num_terminals * Fraction(float(np.abs(payoff.arrays.values).max())) * _ALIKE
  elif isinstance(tree := compiled.tree, TypedTree):
    depth, deals = len(tree.levels()), len(tree.deals.weights)
    pairs = tree.num_types[0] * tree.num_types[1]
    # The probability of a pair of types is at most the number of deals times the largest probability of a deal.
    alike = _largest(compiled) * pairs * deals * Fraction(float(tree.weights.max())) * _ALIKE
    sums = compiled.end + compiled.num_terminals + deals
    sums += _ROUNDINGS_OF_READ_FLOAT * tree.deals.paths.shape[1]
  else:
    assert isinstance(tree, HandTree)
    depth = len(tree.levels())
    masses = [Fraction(float(reaches.sum())) for reaches in tree.deal.reaches]
    boards = Fraction(sum(board.probability for board in tree.boards))
    mass = _SUMS_OF_HANDS * boards * masses[0] * masses[1] / Fraction(tree.deal.total)
    sums = compiled.end + compiled.num_terminals + 4 * len(tree.deal.hands)
  per_level = 3 * most_actions + 2 + _ROUNDINGS_OF_READ_FLOAT
  steps = (depth * per_level + sums + _FIXED_ROUNDINGS) * _ROUNDOFF
  return _largest(compiled) * mass * steps / (1 - steps) + alike
