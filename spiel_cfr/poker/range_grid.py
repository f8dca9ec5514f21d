"""What a player does with each class of hands at a public state of hold'em: a 13 x 13 grid, as text and as a picture.

Pairs are on the diagonal from aces to deuces, suited hands above it, others below. Within a class, hands weigh as much
as the player plays them to that state.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.poker import cards
from spiel_cfr.poker.deal import Deal
from spiel_cfr.poker.public_game import PublicGame
from spiel_cfr.poker.public_tree import DEALT, PublicNode

_FOLD, _CALL = 0, 1
_ACTION_NAMES = {_FOLD: "fold", _CALL: "call", 2: "pot", 3: "all-in", 4: "half pot"}
_COLORS = {0: "#6baed6", 1: "#74c476", 2: "#fd8d3c", 3: "#cb181d", 4: "#fdd0a2"}
_SIZE = len(cards.RANKS)


@dataclasses.dataclass(frozen=True, eq=False)
class RangeGrid:
  """Action frequencies by class of hands.

  Attributes:
    title: the public state in words.
    actions: names of the actions.
    colors: of the actions.
    frequencies: shape (13, 13, actions); in each cell they sum to 1, or are NaN where there is no such hand.
    weights: shape (13, 13): how often the player is here with such a hand, in units of the largest cell.
    total: shape (actions,): frequencies over all hands.
  """

  title: str
  actions: tuple[str, ...]
  colors: tuple[str, ...]
  frequencies: Float64s
  weights: Float64s
  total: Float64s

  def __str__(self) -> str:
    """Returns the grid as text: in each cell the most frequent action's first letter, and its frequency in tenths."""
    letters = [name[0].upper() for name in self.actions]
    lines = [self.title]
    for name, letter, share in zip(self.actions, letters, self.total, strict=True):
      lines.append(f"  {letter} {name:8} {share:6.1%} of all hands")
    ranks = cards.RANKS[::-1]
    lines.append("     " + "   ".join(ranks))
    for row, rank in enumerate(ranks):
      cells = []
      for column in range(_SIZE):
        shares = self.frequencies[row, column]
        best = 0 if np.isnan(shares).any() else int(shares.argmax())
        tenths = "  ." if np.isnan(shares).any() else f"{letters[best]}{10 * shares[best]:.0f}"
        cells.append(tenths.rjust(3))
      lines.append(f"  {rank} " + " ".join(cells))
    lines.append("  Suited hands above the diagonal. Letter: most frequent action; number: tenths.")
    return "\n".join(lines)

  def draw(self, axes: Any) -> None:
    """Draws the grid into Matplotlib axes: each cell a bar of the actions, as high as the hands are frequent."""
    ranks = cards.RANKS[::-1]
    for row, column in np.ndindex(_SIZE, _SIZE):
      weight, left = self.weights[row, column], float(column)
      # Rare hands must still be seen.
      height = max(math.sqrt(weight), 0.15) if weight > 0 else 0.0
      for share, color in zip(self.frequencies[row, column], self.colors, strict=True):
        if weight > 0 and share > 0:
          axes.barh(row + 1 - height / 2, share, height, left, color=color, linewidth=0)
          left += share
      suffix = "" if row == column else "s" if column > row else "o"
      high, low = min(row, column), max(row, column)
      name = ranks[high] + ranks[low] + suffix
      color = "black" if weight > 0 else "0.7"
      axes.text(column + 0.5, row + 0.5, name, ha="center", va="center", size=7, color=color)
    axes.set(xlim=(0, _SIZE), ylim=(_SIZE, 0), aspect="equal", title=self.title)
    axes.set_xticks(range(_SIZE + 1), labels=[])
    axes.set_yticks(range(_SIZE + 1), labels=[])
    axes.grid(color="0.85", linewidth=0.6)
    axes.tick_params(length=0)
    for name, color, share in zip(self.actions, self.colors, self.total, strict=True):
      axes.barh(0, 0, color=color, label=f"{name} {share:.1%}")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.01), ncols=len(self.actions))


def class_of_hands(deal: Deal) -> tuple[Int64s, Int64s]:
  """Returns the row and the column of each hand of two cards in a grid of ranks, highest first; shape (hands,) each."""
  low, high = deal.hands.T
  suited = low % deal.num_suits == high % deal.num_suits
  ranks = deal.num_ranks - 1 - np.stack([high, low]) // deal.num_suits
  # Suited hands above the diagonal: the row is the higher rank, which comes first.
  row, column = np.where(suited, ranks, ranks[::-1])
  return row, column


def range_grid(game: PublicGame, sequence_form: Float64s, actions: Sequence[int]) -> RangeGrid:
  """Returns the grid of a public state.

  Args:
    game: two-card hold'em with 13 ranks.
    sequence_form: a policy, as `FullWidthSolver.average_sequence_form` returns it, shape (sequences,).
    actions: those that lead from the deal to the state; for a public card, its number as in OpenSpiel.

  Raises:
    ArgumentError: there is no such public state, or nobody decides there, or the game is not hold'em.
  """
  layout = game.layout
  if layout.deal.hand_size != 2 or layout.deal.num_ranks != _SIZE:
    raise errors.ArgumentError("Range grids are for games with two hole cards and 13 ranks.")
  board, node = game.find_public_state(actions)
  decision = layout.nodes[node]
  player, own = decision.player, layout.boards[board].hands[decision.player]
  played = sequence_form[game.layout.sequences(board, node)] * layout.deal.reaches[player, own]
  rows, columns = (place[own] for place in class_of_hands(layout.deal))
  mass = np.zeros((_SIZE, _SIZE, len(decision.actions)))
  np.add.at(mass, (rows, columns), played.T)
  weights = mass.sum(axis=2)
  with np.errstate(invalid="ignore"):
    frequencies = mass / weights[:, :, None]
    total = mass.sum(axis=(0, 1)) / weights.sum()
  title = f"Player {player}, board {''.join(map(cards.card_name, layout.boards[board].cards))}"
  words = [
    _action_name(layout.nodes[before], action)
    for before, action in zip(_nodes_above(game, node), decision.path, strict=True)
    if action != DEALT
  ]
  return RangeGrid(
    title=", ".join([title, *words]),
    actions=tuple(_action_name(decision, action) for action in decision.actions),
    colors=tuple(_COLORS.get(action, "#9e9ac8") for action in decision.actions),
    frequencies=frequencies,
    weights=weights / max(weights.max(), 1e-300),
    total=total,
  )


def _nodes_above(game: PublicGame, node: int) -> list[int]:
  """Returns the nodes before each action of a node's path; public cards dealt together count as one each."""
  nodes, path = game.layout.nodes, game.layout.nodes[node].path
  by_path = {other.path: index for index, other in enumerate(nodes)}
  return [by_path.get(path[:length], -1) for length in range(len(path))]


def _action_name(node: PublicNode, action: int) -> str:
  """Returns an action's name in OpenSpiel's betting abstractions; a call of nothing is a check."""
  if action == _CALL and _FOLD not in node.actions:
    return "check"
  return _ACTION_NAMES.get(action, f"action {action}")
