"""Random games of private types and public actions, written in Python as OpenSpiel has it, and some that almost are.

Chance deals each of two players a type, by several deals for some pairs of types that nobody tells apart, and what
follows is a random public tree. Odd on purpose: deals of unequal probabilities and of none, chance later on that is
more likely for some deals and rules others out, a player who moves twice in a row, forced moves, action numbers with
gaps, nodes and ends at all depths. Payoffs depend on everything: on the deal, and on each step of the way.

`FLAWS` are what makes such a game another one, at a single node at the greatest depth that has one.
"""

import dataclasses
import random
from typing import Any

import pyspiel
from python_games import game_type

_CHANCE, _END = -1, -4
_MOST_ACTIONS = 6

FLAWS = (
  "one type lacks an action",
  "chance is seen by nobody",
  "chance is seen by one player",
  "a move is seen by one player",
  "a player sees the other's type",
  "who moves depends on a type",
)


@dataclasses.dataclass
class Node:
  """A node of the public tree; one child may be below several edges, where what leads there is not seen.

  Attributes:
    player: who is to move, `_CHANCE` or `_END`.
    actions: ascending.
    children: one for each.
    chances: of a chance node, by deal, the probability of each action.
    flaw: what is wrong here, "" for nothing.
  """

  player: int
  actions: list[int] = dataclasses.field(default_factory=list)
  children: list["Node"] = dataclasses.field(default_factory=list)
  chances: list[list[float]] = dataclasses.field(default_factory=list)
  flaw: str = ""

  def __deepcopy__(self, memo: Any) -> "Node":
    """Returns the node itself: copies of states share the tree."""
    return self


class TypedGame(pyspiel.Game):
  """A random game.

  Attributes:
    deals: the types of both players and the probability of each deal.
    root: of the public tree.
    lie: what player 0 gets at a history besides what the game says; none by default.
  """

  def __init__(
    self,
    seed: int,
    flaw: str = "",
    *,
    max_depth: int = 5,
    zero_sum: bool = True,
    total: float = 0.0,
  ):
    """Draws a game, the same for the same arguments; if it is zero-sum, returns sum to `total`."""
    rng = self._rng = random.Random(seed)
    self.zero_sum, self.flaw, self.total = zero_sum, flaw, total
    self.lie: tuple[list[int], float] | None = None
    self.payoff_seed = rng.random()
    num_types = rng.choice([(2, 3), (3, 2), (9, 2), (3, 3), (2, 10), (2, 2) if flaw else (1, 4)])
    self.deals = []
    for own in range(num_types[0]):
      for other in range(num_types[1]):
        for _ in range(rng.choice([0, 1, 1, 1, 2])):
          self.deals.append((own, other, rng.choice([0, 1, 2, 3, 7])))
    # Every type is there, and the first two of each player whatever the other has.
    for own in range(num_types[0]):
      self.deals.append((own, 0, 1))
    for other in range(num_types[1]):
      self.deals += [(0, other, 2), (min(1, num_types[0] - 1), other, 1)]
    rng.shuffle(self.deals)
    weights = sum(deal[2] for deal in self.deals)
    self.deals = [(*types, weight / weights) for *types, weight in self.deals]
    # A deal is two moves of chance in some games, so that histories sort otherwise than numbers of deals.
    self.width = rng.choice([len(self.deals), 2, 3])
    # Whether chance lists what is impossible.
    self.lists_all = rng.random() < 0.5
    self.max_depth = max_depth
    while True:
      self.root = self._grow(0)
      if not flaw or self._spoil(flaw):
        break
    utility = pyspiel.GameType.Utility
    promise = utility.CONSTANT_SUM if total else utility.ZERO_SUM
    kind = game_type("typed_game", promise if zero_sum else utility.GENERAL_SUM)
    bounds = -9.0 + min(0, total), 9.0 + max(0, total)
    info = pyspiel.GameInfo(
      _MOST_ACTIONS, len(self.deals) + 9, 2, *bounds, total if zero_sum else None, max_depth + 2
    )
    super().__init__(kind, info, {})

  def _grow(self, depth: int) -> Node:
    rng = self._rng
    if depth == self.max_depth or (depth > 1 and rng.random() < 0.15):
      return Node(_END)
    if depth and rng.random() < 0.2:
      actions = sorted(rng.sample(range(1, 12), 2))
      # Of the first deal all is possible, and so that nothing hides a flaw, of the others too.
      some = [0.5, 0.25] if self.flaw else [0.5, 0.5, 0.25, 1.0]
      chances = [rng.choice(some) if k else 0.5 for k in range(len(self.deals))]
      children = [self._grow(depth + 1) for _ in actions]
      return Node(_CHANCE, actions, children, [[p, 1 - p] for p in chances])
    count = rng.choice([1, 2, 2, 3])
    actions = sorted(rng.sample(range(_MOST_ACTIONS), count))
    return Node(rng.randrange(2), actions, [self._grow(depth + 1) for _ in actions])

  def _spoil(self, flaw: str) -> bool:
    """Plants a flaw as deep as possible; returns whether that is possible."""
    rng = self._rng
    path = self._longest(self.root, flaw)
    if not path:
      return False
    node = path[-1]
    node.flaw = flaw
    if flaw.startswith("chance"):
      # Below a decision, so that who decides later has met the same whatever chance does.
      node.player = _CHANCE
      node.actions = [3, 8]
      node.chances = [[0.5, 0.5] for _ in self.deals]
    if flaw.startswith(("chance", "a move")):
      # Below is the same decision of both, whom nothing tells what has been done; the first alone may know.
      below = Node(rng.randrange(2), [0, 4], [Node(_END), Node(_END)])
      last = Node(1 - below.player, [1, 2], [below, Node(_END)])
      node.children = [last for _ in node.actions]
    return True

  def _longest(self, node: Node, flaw: str) -> list[Node]:
    """Returns the longest path down to a node that can have a flaw."""
    below = [self._longest(child, flaw) for child in node.children]
    best = max(below, key=len, default=[])
    if best:
      return [node, *best]
    return [node] if node.player >= 0 and len(node.actions) > 1 and node is not self.root else []

  def new_initial_state(self) -> "TypedState":
    """Returns the root."""
    return TypedState(self)

  def __deepcopy__(self, memo: Any) -> "TypedGame":
    """Returns the game itself, which is immutable."""
    return self

  def num_distinct_actions(self) -> int:
    """Returns the number of actions."""
    return _MOST_ACTIONS


class TypedState(pyspiel.State):
  """A state: the moves of chance that make the deal, and then a node."""

  def __init__(self, game: TypedGame) -> None:
    """Begins before the deal."""
    super().__init__(game)
    self._game = game
    self._left = range(len(game.deals))
    self._dealing = True
    self._node = game.root
    # What each player has seen, and what has happened.
    self._seen = ["", ""]
    self._moves: tuple[int, ...] = ()

  def _hands(self) -> list[range]:
    """Returns, for each move of a deal, the deals that are then left."""
    left, width = self._left, self._game.width
    size = max(1, -(-len(left) // width))
    return [left[k : k + size] for k in range(0, len(left), size)]

  @property
  def _deal(self) -> tuple[int, int, float]:
    return self._game.deals[self._left[0]]

  def current_player(self) -> int:
    """Returns the player to move."""
    if self._dealing:
      return int(pyspiel.PlayerId.CHANCE)
    if self._node.flaw == "who moves depends on a type" and self._deal[0] == 0:
      return 1 - self._node.player
    if self._node.player == _END:
      return int(pyspiel.PlayerId.TERMINAL)
    return int(pyspiel.PlayerId.CHANCE) if self._node.player == _CHANCE else self._node.player

  def is_terminal(self) -> bool:
    """Returns whether it is over."""
    return self.current_player() == pyspiel.PlayerId.TERMINAL

  def is_chance_node(self) -> bool:
    """Returns whether chance is to move."""
    return self.current_player() == pyspiel.PlayerId.CHANCE

  def chance_outcomes(self) -> list[tuple[int, float]]:
    """Returns outcomes and probabilities."""
    if not self._dealing:
      listed = zip(self._node.actions, self._node.chances[self._left[0]], strict=True)
      return [(action, p) for action, p in listed if p or self._game.lists_all]
    weights = [sum(self._game.deals[k][2] for k in hand) for hand in self._hands()]
    total = sum(weights)
    if not total:
      return [(k, 1 / len(weights)) for k in range(len(weights))]
    return [(k, weight / total) for k, weight in enumerate(weights)]

  def _legal_actions(self, player: int) -> list[int]:
    if self._node.flaw == "one type lacks an action" and self._deal[player] == 0:
      return self._node.actions[:-1]
    return self._node.actions

  def legal_actions(self, player: Any = None) -> list[int]:
    """Returns the legal actions."""
    if self.is_terminal() or player not in (None, self.current_player()):
      return []
    if self.is_chance_node():
      return [action for action, _ in self.chance_outcomes()]
    return self._legal_actions(self.current_player())

  def _apply_action(self, action: int) -> None:
    if self._dealing:
      self._left = self._hands()[action]
      self._dealing = len(self._left) > 1
      return
    node, mover = self._node, self.current_player()
    self._moves += (action,)
    word = f"{mover} does {action}, "
    # No player sees the move of chance; or only player 0; or only the player to move.
    seers = {
      "chance is seen by nobody": (),
      "chance is seen by one player": (0,),
      "a move is seen by one player": (mover,),
    }.get(node.flaw, (0, 1))
    for player in seers:
      self._seen[player] += word
    self._node = node.children[node.actions.index(action)]
    if self._node.flaw == "a player sees the other's type":
      self._seen[self._node.player] += f"other {self._deal[1 - self._node.player]}, "

  def _action_to_string(self, player: int, action: int) -> str:
    return str(action)

  def information_state_string(self, player: int | None = None) -> str:
    """Returns a player's information state."""
    player = self.current_player() if player is None else player
    return f"Player {player} of type {self._deal[player]}: {self._seen[player]}"

  def returns(self) -> list[float]:
    """Returns random payoffs."""
    if not self.is_terminal():
      return [0.0, 0.0]
    rng = random.Random(f"{self._game.payoff_seed} {self._payoff_key()}")
    first, second = (rng.randrange(-72, 73) / 8 for _ in range(2))
    returns = [first, self._game.total - first if self._game.zero_sum else second]
    if self._game.lie is not None and self.history() == self._game.lie[0]:
      returns[0] += self._game.lie[1]
    return returns

  def _payoff_key(self) -> Any:
    """Returns the key of the payoffs."""
    return self._left[0], self._moves

  def __str__(self) -> str:
    return f"{self._left} {self._moves}"
