"""Report of a public state of poker: EV, equity and frequencies of actions, by class of hands."""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util.doors import typed
from spiel_cfr.explorer.hand_moves import HandMoves
from spiel_cfr.poker import cards
from spiel_cfr.poker.betting_tree import Kind
from spiel_cfr.poker.solution import PokerSolution


class HandClass(NamedTuple):
  """A line of a report: hands of one class.

  Attributes:
    kind: str. "range" for all hands; "made hand" for the best five cards with the board; "ranks" for both cards.
    name: str. The name of the class: "all", "two pair" or "AKs".
    combos: float. The number of hands, each counted by its weight in the range.
    ev: float. The expected value, in chips won from here on. A fold wins 0.
    equity: float. The probability to win if betting ended, ties counted half.
    frequencies: float64 (actions,). The frequency of each action.
  """

  kind: str
  name: str
  combos: float
  ev: float
  equity: float
  frequencies: Float64s


@dataclasses.dataclass(frozen=True, eq=False)
class HandReport:
  """A report of a player's decision.

  Attributes:
    player: str. "OOP" or "IP".
    board: str. The public cards.
    actions: list of str. The names of the actions, by size.
    classes: list of `HandClass`. All hands, then made hands from the best on, then classes of ranks.
  """

  player: str
  board: str
  actions: list[str]
  classes: list[HandClass]

  def __str__(self) -> str:
    """Returns a table."""
    head = f"{self.player} on {self.board}"
    lines = [f"{head:22}{'combos':>8}{'EV':>9}{'equity':>8}"]
    lines[0] += "".join(f"  {name}" for name in self.actions)
    for found in self.classes:
      line = f"{found.name:22}{found.combos:z8.2f}{found.ev:z9.2f}{100 * found.equity:z7.1f}%"
      for name, share in zip(self.actions, found.frequencies.tolist(), strict=True):
        line += f"  {100 * share:z{len(name) - 1}.1f}%"
      lines.append(line)
    return "\n".join(lines)


@typed
def hand_report(solution: PokerSolution, moves: Sequence[int] = ()) -> HandReport:
  """Returns EV, equity and frequencies of the player to move, by class of hands.

  Args:
    solution: the solution of a game of hold'em.
    moves: OpenSpiel's actions of the players from the first board on: 0 folds, 1 checks or calls, a larger number is
      a player's total in the pot after a bet.

  Raises:
    ArgumentError: the moves do not lead to a decision on the first board.
    UnsupportedGameError: the game is not hold'em.
  """
  game = solution.compiled_game
  namer = HandMoves(game)
  spent = namer.spent_at_first()
  if spent is None:
    raise errors.UnsupportedGameError(f"{game.name} has no chips to report.")
  nodes, node = game.tree.nodes, 0
  for move in moves:
    found = nodes[node]
    if found.kind is not Kind.DECISION or move not in found.actions:
      raise errors.ArgumentError(f"moves {list(moves)} are no actions of the first board.")
    child = found.children[found.actions.index(move)]
    player, cost = namer.cost(0, node, child)
    spent[player] += cost
    node = child
  if nodes[node].kind is not Kind.DECISION:
    raise errors.ArgumentError(f"After the moves {list(moves)} no player decides.")
  board, order, player = solution.values.board(0), namer.order(0, node), nodes[node].player
  weights = board.ranges[player][board.street.place[node]]
  mass = weights * board.opponent_mass(player, node)
  values = np.nan_to_num(board.values(player, node)) + spent[player]
  equities = np.nan_to_num(board.equity(player, node))
  played = board.strategy(node)[order]
  hands = game.tree.deal.hands[board.hands[player]]

  def line(kind: str, name: str, chosen: Float64s) -> HandClass:
    share = mass * chosen
    total = share.sum()
    share = share / total if total > 0 else np.full(len(share), np.nan)
    return HandClass(
      kind,
      name,
      float(weights @ chosen),
      float(share @ values),
      float(share @ equities),
      played @ share,
    )

  made = cards.made_hands(hands, game.tree.deal.board, game.tree.deal.num_suits)
  ranks = [_ranks(hand, game.tree.deal.num_suits) for hand in hands.tolist()]
  classes = [line("range", "all", np.ones(len(hands)))]
  for name in reversed(cards.MADE_HANDS):
    if (made == name).any():
      classes.append(line("made hand", name, (made == name).astype(float)))
  for name in sorted(set(ranks), key=_strength, reverse=True):
    classes.append(line("ranks", name, np.array(ranks) == name))
  names = list(namer.names)
  return HandReport(
    player=("OOP", "IP")[player],
    board="".join(namer.board(0)),
    actions=[names[namer.moves(0, node)[place]] for place in order],
    classes=classes,
  )


def _ranks(hand: Sequence[int], num_suits: int) -> str:
  """Returns the class of cards by ranks, such as AKs; of one card, its rank."""
  suits = {card % num_suits for card in hand}
  ranks = [card // num_suits for card in sorted(hand, reverse=True)]
  suited = "" if len(set(ranks)) < 2 else "s" if len(suits) == 1 else "o"
  return "".join(cards.RANKS[rank] for rank in ranks) + suited


def _strength(name: str) -> tuple[bool, list[int], str]:
  """Returns a key that orders classes by strength: pairs first, then by ranks, suited before offsuit."""
  ranks = [cards.RANKS.index(rank) for rank in name.rstrip("so")]
  return len(ranks) == 2 and ranks[0] == ranks[1], ranks, name[-1]
