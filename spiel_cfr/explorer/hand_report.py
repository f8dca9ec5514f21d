"""Report of a poker decision: EV, equity and action frequencies of the player to move, by class of hands."""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.explorer.hand_moves import HandMoves
from spiel_cfr.poker import cards
from spiel_cfr.poker.betting_tree import NodeKind
from spiel_cfr.poker.hand_tree import HandTree
from spiel_cfr.poker.solution import PokerSolution


class HandClass(NamedTuple):
  """Line of a report: a class of hands.

  Attributes:
    kind: str. "range" for all hands; "made hand" for a class by the best five cards with the board; "ranks" for a class
      by the ranks of the hand.
    name: str. The name of the class, such as "all", "two pair" or "AKs".
    combos: float. The sum of the weights of the hands in the range.
    ev: float. The expected value, in chips won from here on. A fold wins 0.
    equity: float. The probability to win if betting ended here, a tie counted half.
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
  """Report of a player's decision, which `print` shows as a table.

  Attributes:
    player: str. The player to move, "OOP" or "IP".
    board: str. The public cards.
    actions: list of str. The names of the actions, in the order of their size in chips.
    classes: list of `HandClass`. All hands; then made hands, the best first; then classes of ranks.
  """

  player: str
  board: str
  actions: list[str]
  classes: list[HandClass]

  def __str__(self) -> str:
    """Returns a table with a line for each class."""
    head = f"{self.player} on {self.board}"
    lines = [f"{head:22}{'combos':>8}{'EV':>9}{'equity':>8}"]
    lines[0] += "".join(f"  {name}" for name in self.actions)
    for row in self.classes:
      line = f"{row.name:22}{row.combos:z8.2f}{row.ev:z9.2f}{100 * row.equity:z7.1f}%"
      for name, frequency in zip(self.actions, row.frequencies.tolist(), strict=True):
        line += f"  {100 * frequency:z{len(name) - 1}.1f}%"
      lines.append(line)
    return "\n".join(lines)


@typed
def hand_report(solution: PokerSolution, moves: Sequence[int] = ()) -> HandReport:
  """Returns EV, equity and action frequencies of the player to move, by class of hands.

  Args:
    solution: the solution of a game of hold'em.
    moves: OpenSpiel's actions of the players from the first board on: 0 folds, 1 checks or calls, a larger number is
      a player's total in the pot after a bet.

  Raises:
    ArgumentError: the moves do not lead to a decision on the first board.
    UnsupportedGameError: the game is not hold'em.
  """
  game = solution.compiled_game
  tree, namer = game.tree, HandMoves(game)
  spent = namer.spent_at_root()
  if spent is None:
    raise errors.UnsupportedGameError(
      f"hand_report is for hold'em, which is universal_poker; {game.name} has no chips in a pot."
    )
  node, spent = _follow(tree, namer, moves, spent)
  board, order, player = solution.values.board(0), namer.order(0, node), tree.nodes[node].player
  weights = board.ranges[player][board.street.position[node]]
  mass = weights * board.opponent_mass(player, node)
  values = np.nan_to_num(board.values(player, node)) + spent[player]
  equities = np.nan_to_num(board.equity(player, node))
  strategy = board.strategy(node)[order]
  hands = tree.deal.hands[board.hands[player]]

  def row(kind: str, name: str, is_in_class: Float64s) -> HandClass:
    """Returns the line of a class; `is_in_class` is 1 for each of its hands, else 0."""
    shares = mass * is_in_class
    total = shares.sum()
    shares = shares / total if total > 0 else np.full(len(shares), np.nan)
    return HandClass(
      kind=kind,
      name=name,
      combos=float(weights @ is_in_class),
      ev=float(shares @ values),
      equity=float(shares @ equities),
      frequencies=strategy @ shares,
    )

  made = cards.made_hands(hands, tree.deal.board, tree.deal.num_suits)
  ranks = [_ranks(hand, tree.deal.num_suits) for hand in hands.tolist()]
  classes = [row("range", "all", np.ones(len(hands)))]
  for name in reversed(cards.MADE_HANDS):
    if (made == name).any():
      classes.append(row("made hand", name, (made == name).astype(float)))
  for name in sorted(set(ranks), key=_strength, reverse=True):
    classes.append(row("ranks", name, np.array(ranks) == name))
  names = list(namer.names)
  return HandReport(
    player=("OOP", "IP")[player],
    board="".join(namer.board_cards(0)),
    actions=[names[namer.moves(0, node)[index]] for index in order],
    classes=classes,
  )


def _follow(
  tree: HandTree, namer: HandMoves, moves: Sequence[int], spent: Sequence[int]
) -> tuple[int, list[int]]:
  """Returns the decision after some moves on the first board, and the chips of each player in the pot there.

  Args:
    tree: the public tree.
    namer: the cost of moves.
    moves: the moves.
    spent: the chips of each player in the pot at the root.

  Raises:
    ArgumentError: the moves do not lead to a decision on the first board.
  """
  spent, node = list(spent), 0
  followed: list[int] = []
  for move in moves:
    move = arguments.integer(move, "A move")
    actions = tree.nodes[node].actions
    if move not in actions:
      legal = f"the actions there are {list(actions)}" if actions else "no player decides there"
      raise errors.ArgumentError(
        f"moves {list(moves)}: {move!r} is not possible after {followed} on the first board; {legal}."
      )
    child = tree.nodes[node].children[actions.index(move)]
    player, cost = namer.cost(0, node, child)
    spent[player] += cost
    node = child
    followed.append(move)
  if tree.nodes[node].kind is not NodeKind.DECISION:
    raise errors.ArgumentError(
      f"moves {list(moves)}: no player decides after them on the first board."
    )
  return node, spent


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
