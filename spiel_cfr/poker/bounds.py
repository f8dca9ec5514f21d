"""Bounds on the payoffs of a poker game in vector form, for step sizes of solvers that need them.

Games with lists of payoffs have these bounds exactly, see `solvers.step_sizes`. Here a showdown counts as if nobody
could tie, and all rivers after a player has last acted as if they agreed, so that sums over hands suffice.
"""

import math

import numpy as np

from spiel_cfr.kernels.arrays import Float64s
from spiel_cfr.poker.layout import TERMINALS
from spiel_cfr.poker.public_game import PublicGame


def counterfactual_bounds(game: PublicGame, player: int) -> Float64s:
  """Bounds the counterfactual utility of each of a player's sequences, whatever anybody plays.

  That is the largest payoff times the probability that chance deals the hand, and the board.

  Returns:
    Shape (end - root,), from the empty sequence on.
  """
  layout = game.layout
  largest = max(map(abs, game.payoff_range))
  root = layout.roots[player]
  bounds = np.zeros(layout.roots[player + 1] - root)
  bounds[0] = largest
  for number, board in enumerate(layout.boards):
    probability = board.probability * _mass(game, player, number, 1)
    for node in layout.decisions(player, number):
      bounds[game.sequences(number, node) - root] = largest * probability
  return bounds


def payoff_norm(game: PublicGame, player: int) -> float:
  """Bounds the spectral norm of the payoff matrix of both players' sequences.

  It is at most the Frobenius norm, and at most the root of the largest row sum times the largest column sum.
  """
  layout = game.layout
  sums = [np.zeros(game.end), np.zeros(game.end)]
  frobenius: dict[int, float] = {}
  for number, board in enumerate(layout.boards):
    masses = [_mass(game, each, number, 1) for each in (0, 1)]
    squares = _mass(game, player, number, 2).sum()
    for node in layout.terminals(number, *TERMINALS):
      payoff = abs(layout.nodes[node].payoff) * board.probability
      rows = [layout.row_above(each, number, node) for each in (0, 1)]
      for each, row in enumerate(rows):
        np.add.at(sums[each], row.first + row.lanes, payoff * masses[each])
      norm = payoff * math.sqrt(squares)
      before = frobenius.get(node, 0.0)
      # Matrices of different rows add their squares; those of the same rows at most their norms.
      apart = all(row.board == number for row in rows)
      frobenius[node] = math.hypot(before, norm) if apart else before + norm
  row_sum, column_sum = (float(each.max()) for each in sums)
  return min(math.hypot(*frobenius.values()), math.sqrt(row_sum * column_sum))


def _mass(game: PublicGame, player: int, board: int, power: int) -> Float64s:
  """Returns the sum, over the opponent's hands, of chance's probability of a pair to a power, for a board's hands."""
  deal, hands = game.layout.deal, game.layout.boards[board].hands
  others = np.zeros(len(deal.hands))
  others[hands[1 - player]] = deal.reaches[1 - player, hands[1 - player]] ** power
  own = deal.reaches[player, hands[player]] ** power
  return np.asarray(own * deal.compatible_mass(others)[hands[player]] / deal.total**power)
