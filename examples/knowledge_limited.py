"""Search without common knowledge: knowledge-limited subgames in phantom games, with exploitability before and after.

    python examples/knowledge_limited.py
    python examples/knowledge_limited.py --games=1 --orders=1,2 --iterations=100

In dark hex and phantom tic-tac-toe, the players have so little common knowledge that every public state is as large as
the game. A knowledge-limited subgame begins at one infoset of the searcher (Zhang and Sandholm, "Subgame Solving
Without Common Knowledge", 2021). A subgame of order 1 contains the private states that the opponent may have at this
infoset, and all histories with these private states. The searcher is free at the infoset and below, and plays the
blueprint elsewhere. In a subgame of order 2, the searcher is also free at its other infosets in these histories.

The opponent's expected payoff at each of its private states may not exceed its payoff against the blueprint. A linear
program maximizes a tenth of the smallest margin, plus nine tenths of the mean margin in play of the blueprint. The
first number is the exploitability after the second decisions of both players are re-solved, each infoset separately.
The last number is that of continual search, which re-solves later decisions from the latest solution.
"""

from results import chosen, markdown, start

import functools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyspiel
import scipy.optimize
import scipy.sparse
from absl import flags

# A game; the number of public moves before a position, whose cells both players know; the number of random positions.
_GAMES: dict[str, tuple[str, int, int]] = {
  "dark_hex_2x2": ("dark_hex(board_size=2)", 0, 1),
  "dark_hex_2x3": ("dark_hex(num_rows=2,num_cols=3)", 0, 1),
  "dark_hex_3x3, 5 cells left": ("dark_hex(board_size=3)", 4, 20),
  "dark_hex_3x3, 6 cells left": ("dark_hex(board_size=3)", 3, 2),
  "phantom_ttt, 5 cells left": ("phantom_ttt", 4, 20),
  "phantom_ttt, 6 cells left": ("phantom_ttt", 3, 2),
}
_CHOSEN = flags.DEFINE_list(
  "games", [str(each) for each in range(len(_GAMES))], f"games, by number from 0: {[*_GAMES]}"
)
_ITERATIONS = flags.DEFINE_list("iterations", ["10", "100"], "iterations of CFR of the blueprints")
_ORDERS = flags.DEFINE_list("orders", ["1"], "orders of knowledge")
_SEED = flags.DEFINE_integer("seed", 0, "the seed of positions", 0)
Floats = npt.NDArray[np.float64]
# Probabilities of actions by the number of the observation at which a player decides.
Policy = dict[int, Floats]
# The part of the objective that is the mean margin.
_MIXED = 0.9
_UNLIKELY = 1e-9


class PrivateTree:
  """A player's observations and actions as the nodes of a tree, parents first.

  Attributes:
    parent: list of int. The node above each node; -1 at the root.
    is_action: list of bool.
    actions: dict. By the node of a decision: the nodes of its actions.
    depth: list of int. The number of own actions before or at each node.
  """

  def __init__(self) -> None:
    self.parent, self.is_action, self.depth = [-1], [False], [0]
    self.actions: dict[int, list[int]] = {}
    self._children: dict[tuple[int, Any], int] = {}

  def child(self, node: int, key: int | str) -> int:
    """Returns the node after an action (an int) or an observation (a string)."""
    if (node, key) not in self._children:
      self._children[node, key] = len(self.parent)
      self.parent.append(node)
      self.is_action.append(isinstance(key, int))
      self.depth.append(self.depth[node] + isinstance(key, int))
    return self._children[node, key]

  def below(self, roots: Iterable[int]) -> npt.NDArray[np.bool_]:
    """Returns whether each node is one of `roots`, or below one."""
    marked = np.zeros(len(self.parent), bool)
    marked[list(roots)] = True
    for node, above in enumerate(self.parent[1:], 1):
      marked[node] |= marked[above]
    return marked

  def uniform(self) -> Policy:
    """Returns the uniform policy."""
    return {node: np.full(len(own), 1 / len(own)) for node, own in self.actions.items()}

  def reach(self, policy: Policy) -> Floats:
    """Returns the probability with which the player plays to each node."""
    result = np.ones(len(self.parent))
    for node, own in self.actions.items():
      result[own] = policy[node]
    for node, above in enumerate(self.parent[1:], 1):
      result[node] *= result[above]
    return result

  def values(self, payoffs: Floats, policy: Policy | None = None) -> Floats:
    """Returns the counterfactual value of each node, by a policy or by a best response."""
    result = payoffs.copy()
    for node in range(len(self.parent) - 1, -1, -1):
      if node in self.actions:
        own = result[self.actions[node]]
        result[node] += own.max() if policy is None else policy[node] @ own
      if node and not self.is_action[node]:
        result[self.parent[node]] += result[node]
    return result


class Game:
  """A game from a position on, as both players' private trees.

  Attributes:
    trees: both players' trees.
    payoffs: by player, sparse (own nodes, the opponent's nodes). The player's payoff where the game ends.
    ends: the same shape. The number of histories that end, for each pair of nodes.
    faced: by player, dict. By the node of a decision: the set of the opponent's nodes there.
  """

  def __init__(self, state: Any, public: set[int]) -> None:
    """Walks the histories after a state. No player moves to the public cells."""
    self.trees = PrivateTree(), PrivateTree()
    self.faced: tuple[dict[int, set[int]], dict[int, set[int]]] = {}, {}
    self._public, self._ends = public, list[tuple[int, int, float]]()
    self._walk(state, [0, 0], ["", ""])
    one, other, payoff = map(np.array, zip(*self._ends, strict=True))
    shape = len(self.trees[0].parent), len(self.trees[1].parent)
    first = scipy.sparse.csr_matrix((payoff, (one, other)), shape)
    count = scipy.sparse.csr_matrix((np.ones(len(one)), (one, other)), shape)
    self.payoffs, self.ends = (first, -first.T.tocsr()), (count, count.T.tocsr())

  def _walk(self, state: Any, nodes: list[int], seen: list[str]) -> None:
    if state.is_terminal():
      self._ends.append((nodes[0], nodes[1], state.returns()[0]))
      return
    nodes, seen = nodes.copy(), seen.copy()
    for player, tree in enumerate(self.trees):
      observation = state.observation_string(player)
      if observation != seen[player] or tree.is_action[nodes[player]]:
        nodes[player], seen[player] = tree.child(nodes[player], observation), observation
    mover = state.current_player()
    self.faced[mover].setdefault(nodes[mover], set()).add(nodes[1 - mover])
    tree, node = self.trees[mover], nodes[mover]
    legal = [action for action in state.legal_actions() if action not in self._public]
    tree.actions[node] = [tree.child(node, action) for action in legal]
    for action, after in zip(legal, tree.actions[node], strict=True):
      nodes[mover] = after
      self._walk(state.child(action), nodes, seen)

  def facing(self, player: int, policy: Policy) -> Floats:
    """Returns a player's payoffs at its nodes, against a policy of the opponent."""
    return np.asarray(self.payoffs[player] @ self.trees[1 - player].reach(policy))

  def exploitability(self, policies: list[Policy]) -> float:
    """Returns half of the sum of both players' best responses."""
    best = [
      self.trees[player].values(self.facing(player, policies[1 - player]))[0] for player in (0, 1)
    ]
    return float(sum(best)) / 2

  @functools.cached_property
  def facing_infosets(self) -> tuple[dict[int, set[int]], dict[int, set[int]]]:
    """By player: for each node of the opponent, the player's decisions at which the opponent may be there."""
    result: tuple[dict[int, set[int]], dict[int, set[int]]] = {}, {}
    for player in (0, 1):
      for infoset, nodes in self.faced[player].items():
        for node in nodes:
          result[player].setdefault(node, set()).add(infoset)
    return result


def cfr(game: Game, iterations: int) -> list[Policy]:
  """Returns the average policies of both players after iterations of CFR."""
  policies = [tree.uniform() for tree in game.trees]
  regrets = [
    {node: np.zeros(len(own)) for node, own in tree.actions.items()} for tree in game.trees
  ]
  sums = [np.zeros(len(tree.parent)) for tree in game.trees]
  for _ in range(iterations):
    for player, tree in enumerate(game.trees):
      policy = policies[player]
      sums[player] += tree.reach(policy)
      values = tree.values(game.facing(player, policies[1 - player]), policy)
      for node, own in tree.actions.items():
        regrets[player][node] += values[own] - policy[node] @ values[own]
        policy[node] = _normalized(np.maximum(regrets[player][node], 0))
  return [
    {node: _normalized(total[own]) for node, own in tree.actions.items()}
    for tree, total in zip(game.trees, sums, strict=True)
  ]


def _normalized(numbers: Floats) -> Floats:
  total = numbers.sum()
  return numbers / total if total > 0 else np.full(len(numbers), 1 / len(numbers))


class Equations:
  """Rows of a linear program."""

  def __init__(self, size: int) -> None:
    self._size, self._places, self._numbers = size, list[tuple[int, int]](), list[float]()
    self.right: list[float] = []

  def add(self, terms: Iterable[tuple[float, int]], right: float) -> None:
    """Adds a row: the sum of factors times variables, and its right side."""
    for factor, variable in terms:
      self._places.append((len(self.right), variable))
      self._numbers.append(factor)
    self.right.append(right)

  def matrix(self) -> scipy.sparse.csr_matrix:
    """Returns the factors, shape (rows, variables)."""
    rows, columns = zip(*self._places, strict=True)
    return scipy.sparse.csr_matrix((self._numbers, (rows, columns)), (len(self.right), self._size))


class Search:
  """The searches of one player, from one blueprint."""

  def __init__(self, game: Game, player: int, policies: list[Policy]) -> None:
    self._game, self._player, self._policy = game, player, policies[player]
    own, self._other = game.trees[player], game.trees[1 - player]
    self._own = own
    self.reach, self._range = own.reach(policies[player]), self._other.reach(policies[1 - player])
    self._bounds = self._other.values(game.facing(1 - player, policies[player]))
    # The searcher's probability of playing to each of the opponent's nodes: a game in which all payoffs are 1. No
    # strategy of the opponent changes it.
    ones = np.asarray(game.ends[1 - player] @ self.reach)
    self._mass = self._other.values(ones, self._other.uniform())

  def roots(self, infoset: int, order: int) -> tuple[set[int], set[int]]:
    """Returns the searcher's free infosets and the opponent's private states, none below another."""
    free, faced = {infoset}, set(self._game.faced[self._player][infoset])
    for _ in range(order - 1):
      free |= {each for node in faced for each in self._game.facing_infosets[self._player][node]}
      faced |= {node for each in free for node in self._game.faced[self._player][each]}
    above = self._own.parent[infoset]
    while above >= 0:
      free.discard(above)
      above = self._own.parent[above]
    return _highest(self._own, free), _highest(self._other, faced)

  def solve(self, infoset: int, order: int) -> Policy:
    """Returns the strategy at an infoset and below; empty if the opponent never comes there, or without a solution."""
    own, other = self._own, self._other
    free, faced = self.roots(infoset, order)
    rows, columns = own.below(free), other.below(faced)
    faced = {node for node in faced if self._mass[node] > _UNLIKELY}
    if not faced:
      return {}
    ours, theirs = np.flatnonzero(rows).tolist(), np.flatnonzero(columns).tolist()
    # Variables: the searcher's sequences, the values of the opponent's nodes and of its decisions, the least margin.
    deciding = [node for node in theirs if node in other.actions]
    variables = iter(range(len(ours) + len(theirs) + len(deciding) + 1))
    plays, worth, best = (
      dict(zip(nodes, variables, strict=False)) for nodes in (ours, theirs, deciding)
    )
    margin = len(ours) + len(theirs) + len(deciding)
    equal, most = Equations(margin + 1), Equations(margin + 1)
    for node in ours:
      if node in free:
        equal.add([(1, plays[node])], self.reach[node])
      elif not own.is_action[node]:
        equal.add([(1, plays[node]), (-1, plays[own.parent[node]])], 0)
      if node in own.actions:
        equal.add([(1, plays[each]) for each in own.actions[node]] + [(-1, plays[node])], 0)
    payoffs = self._game.payoffs[1 - self._player].tocsr()[theirs]
    fixed = payoffs @ np.where(rows, 0.0, self.reach)
    below = payoffs[:, ours].tolil()
    children: dict[int, list[int]] = {}
    for node in theirs:
      if not other.is_action[node]:
        children.setdefault(other.parent[node], []).append(node)
    for place, node in enumerate(theirs):
      terms = [
        (-value, column) for value, column in zip(below.data[place], below.rows[place], strict=True)
      ]
      terms += [(-1, worth[each]) for each in children.get(node, [])]
      terms += [(-1, best[node])] if node in best else []
      equal.add([(1, worth[node]), *terms], fixed[place])
      for action in other.actions.get(node, []):
        most.add([(1, worth[action]), (-1, best[node])], 0)
    for node in faced:
      most.add([(1, worth[node]), (self._mass[node], margin)], self._bounds[node])
    costs = np.zeros(margin + 1)
    total = sum(self._range[node] * self._mass[node] for node in faced)
    for node in faced if total > 0 else ():
      costs[worth[node]] = _MIXED * self._range[node] / total
    costs[margin] = _MIXED - 1
    limits = [(0, None)] * len(ours) + [(None, None)] * (len(theirs) + len(deciding)) + [(0, None)]
    found = scipy.optimize.linprog(
      costs, most.matrix(), most.right, equal.matrix(), equal.right, limits
    )
    if found.status:
      return {}
    inside = own.below([infoset])
    return {
      node: self._policy[node]
      if found.x[plays[node]] < _UNLIKELY
      else _normalized(np.maximum(found.x[[plays[each] for each in own.actions[node]]], 0))
      for node in ours
      if inside[node] and node in own.actions
    }


def _highest(tree: PrivateTree, nodes: set[int]) -> set[int]:
  """Returns the nodes that are not below others of them."""
  inside = tree.below(nodes)
  return {node for node in nodes if node == 0 or not inside[tree.parent[node]]}


def searched(game: Game, policies: list[Policy], player: int, decision: int, order: int) -> Policy:
  """Returns a player's policy after all its infosets with a number of earlier decisions are re-solved by themselves."""
  search, result = Search(game, player, policies), dict(policies[player])
  for infoset in game.trees[player].actions:
    if game.trees[player].depth[infoset] == decision and search.reach[infoset] > _UNLIKELY:
      result |= search.solve(infoset, order)
  return result


def measure(game: Game, policies: list[Policy], order: int) -> list[float]:
  """Returns exploitabilities: of the blueprint, after one cut, and after continual search."""
  cut = [searched(game, policies, player, 1, order) for player in (0, 1)]
  latest = cut.copy()
  for player, tree in enumerate(game.trees):
    for decision in range(2, max(tree.depth) + 1):
      pair = policies.copy()
      pair[player] = latest[player]
      latest[player] = searched(game, pair, player, decision, order)
  return [game.exploitability(each) for each in (policies, cut, latest)]


def positions(name: str, num_moves: int, count: int) -> Iterator[Game]:
  """Yields games that begin at random positions, after public moves to empty cells."""
  rng = np.random.default_rng(_SEED.value)
  while count:
    state, public = pyspiel.load_game(name).new_initial_state(), set[int]()
    while len(public) < num_moves and not state.is_terminal():
      move = int(rng.choice([each for each in state.legal_actions() if each not in public]))
      state.apply_action(move)
      public.add(move)
    if not state.is_terminal():
      count -= 1
      yield Game(state, public)


def main() -> None:
  rows = {}
  for name in chosen(_GAMES, _CHOSEN.value):
    games = [*positions(*_GAMES[name])]
    for iterations in map(int, _ITERATIONS.value):
      policies = [cfr(game, iterations) for game in games]
      for order in map(int, _ORDERS.value):
        found = np.array([measure(*each, order) for each in zip(games, policies, strict=True)])
        worse = (found[:, 1:] > found[:, :1] + 1e-9).sum(axis=0)
        cells = [f"{mean:z.5f}" for mean in found.mean(axis=0)] + [f"{each}" for each in worse]
        rows[f"{name}, CFR {iterations}, order {order}"] = cells
        print(name, iterations, order, *cells, flush=True)
  columns = ["alone", "one cut", "continual", "worse, one cut", "worse, continual"]
  print("\n" + markdown("policy", columns, rows))


if __name__ == "__main__":
  start(main)
