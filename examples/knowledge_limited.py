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
  "games", [str(number) for number in range(len(_GAMES))], f"games, by number from 0: {[*_GAMES]}"
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
    is_action: list of bool. True for an action, False for an observation.
    actions: dict, int -> list of int. The nodes of the actions after each node at which the player decides.
    depth: list of int. The number of the player's actions on the way to each node, its own included.
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
    """Returns bool (nodes,): whether a node is one of `roots` or below one of them."""
    marked = np.zeros(len(self.parent), bool)
    marked[list(roots)] = True
    for node, above in enumerate(self.parent[1:], 1):
      marked[node] |= marked[above]
    return marked

  def uniform(self) -> Policy:
    """Returns the uniform policy."""
    return {node: np.full(len(after), 1 / len(after)) for node, after in self.actions.items()}

  def reach(self, policy: Policy) -> Floats:
    """Returns the probability with which the player plays to each node."""
    result = np.ones(len(self.parent))
    for node, actions in self.actions.items():
      result[actions] = policy[node]
    for node, above in enumerate(self.parent[1:], 1):
      result[node] *= result[above]
    return result

  def values(self, payoffs: Floats, policy: Policy | None = None) -> Floats:
    """Returns the counterfactual value of each node, by a policy or by a best response."""
    result = payoffs.copy()
    for node in range(len(self.parent) - 1, -1, -1):
      if node in self.actions:
        values = result[self.actions[node]]
        result[node] += values.max() if policy is None else policy[node] @ values
      if node and not self.is_action[node]:
        result[self.parent[node]] += result[node]
    return result


class Game:
  """A game from a position on, as both players' private trees.

  Attributes:
    trees: both players' trees.
    payoffs: per player, sparse array (player's nodes, opponent's nodes). The player's payoff at the end of the game.
    ends: per player, sparse array (player's nodes, opponent's nodes). The number of histories that end there.
    faced: per player, dict, int -> set of int. The opponent's possible nodes when the player decides at a node.
  """

  def __init__(self, state: Any, public: set[int]) -> None:
    """Walks the histories after a state. No player moves to the public cells."""
    self.trees = PrivateTree(), PrivateTree()
    self.faced: tuple[dict[int, set[int]], dict[int, set[int]]] = {}, {}
    self._public, self._ends = public, list[tuple[int, int, float]]()
    self._walk(state, [0, 0], ["", ""])
    rows, columns, payoffs = map(np.array, zip(*self._ends, strict=True))
    shape = len(self.trees[0].parent), len(self.trees[1].parent)
    matrix = scipy.sparse.csr_matrix((payoffs, (rows, columns)), shape)
    count = scipy.sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), shape)
    self.payoffs, self.ends = (matrix, -matrix.T.tocsr()), (count, count.T.tocsr())

  def _walk(self, state: Any, nodes: list[int], latest: list[str]) -> None:
    if state.is_terminal():
      self._ends.append((nodes[0], nodes[1], state.returns()[0]))
      return
    nodes, latest = nodes.copy(), latest.copy()
    for player, tree in enumerate(self.trees):
      observation = state.observation_string(player)
      if observation != latest[player] or tree.is_action[nodes[player]]:
        nodes[player], latest[player] = tree.child(nodes[player], observation), observation
    mover = state.current_player()
    self.faced[mover].setdefault(nodes[mover], set()).add(nodes[1 - mover])
    tree, node = self.trees[mover], nodes[mover]
    legal = [action for action in state.legal_actions() if action not in self._public]
    tree.actions[node] = [tree.child(node, action) for action in legal]
    for action, after in zip(legal, tree.actions[node], strict=True):
      nodes[mover] = after
      self._walk(state.child(action), nodes, latest)

  def facing(self, player: int, policy: Policy) -> Floats:
    """Returns a player's payoffs at its nodes, against a policy of the opponent."""
    return np.asarray(self.payoffs[player] @ self.trees[1 - player].reach(policy))

  def exploitability(self, policies: list[Policy]) -> float:
    """Returns the exploitability of a pair of policies: half of the sum of both best responses' values."""
    best = [
      self.trees[player].values(self.facing(player, policies[1 - player]))[0] for player in (0, 1)
    ]
    return float(sum(best)) / 2

  @functools.cached_property
  def facing_infosets(self) -> tuple[dict[int, set[int]], dict[int, set[int]]]:
    """Per player, the inverse of `faced`: the player's possible infosets when the opponent is at a node."""
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
    {node: np.zeros(len(after)) for node, after in tree.actions.items()} for tree in game.trees
  ]
  sums = [np.zeros(len(tree.parent)) for tree in game.trees]
  for _ in range(iterations):
    for player, tree in enumerate(game.trees):
      policy = policies[player]
      sums[player] += tree.reach(policy)
      values = tree.values(game.facing(player, policies[1 - player]), policy)
      for node, actions in tree.actions.items():
        regrets[player][node] += values[actions] - policy[node] @ values[actions]
        policy[node] = _normalized(np.maximum(regrets[player][node], 0))
  return [
    {node: _normalized(total[actions]) for node, actions in tree.actions.items()}
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
  """The searches of one player, from one blueprint.

  Attributes:
    game: `Game`. The game.
    player: int. The searcher.
    tree: `PrivateTree`. The searcher's tree.
    other: `PrivateTree`. The opponent's tree.
    reach: float64 (searcher's nodes,). The blueprint's probability of playing to each node.
    range: float64 (opponent's nodes,). The opponent's blueprint's probability of playing to each node.
    bounds: float64 (opponent's nodes,). The counterfactual values of a best response to the searcher's blueprint.
    mass: float64 (opponent's nodes,). The searcher's probability of playing to each of the opponent's nodes.
  """

  def __init__(self, game: Game, player: int, policies: list[Policy]) -> None:
    self.game, self.player, self._policy = game, player, policies[player]
    self.tree, self.other = game.trees[player], game.trees[1 - player]
    self.reach = self.tree.reach(policies[player])
    self.range = self.other.reach(policies[1 - player])
    self.bounds = self.other.values(game.facing(1 - player, policies[player]))
    # In a game in which all payoffs are 1, values are probabilities. No strategy of the opponent changes them.
    ones = np.asarray(game.ends[1 - player] @ self.reach)
    self.mass = self.other.values(ones, self.other.uniform())

  def roots(self, infoset: int, order: int) -> tuple[set[int], set[int]]:
    """Returns the topmost free infosets of the searcher, and the topmost private states of the opponent."""
    facing, faced_at = self.game.facing_infosets[self.player], self.game.faced[self.player]
    free, faced = {infoset}, set(faced_at[infoset])
    for _ in range(order - 1):
      free |= {decision for node in faced for decision in facing[node]}
      faced |= {node for decision in free for node in faced_at[decision]}
    above = self.tree.parent[infoset]
    while above >= 0:
      free.discard(above)
      above = self.tree.parent[above]
    return _highest(self.tree, free), _highest(self.other, faced)

  def solve(self, infoset: int, order: int) -> Policy:
    """Returns the strategy at an infoset and below it.

    The strategy is empty if the opponent never comes to the subgame, or if the linear program has no solution.
    """
    program = SubgameProgram(self, *self.roots(infoset, order))
    plays = program.solve() if program.reached else None
    if plays is None:
      return {}
    inside, actions = self.tree.below([infoset]), self.tree.actions
    return {
      node: self._policy[node]
      if plays[node] < _UNLIKELY
      else _normalized(np.maximum([plays[action] for action in actions[node]], 0))
      for node in plays
      if inside[node] and node in actions
    }


class SubgameProgram:
  """The linear program of a knowledge-limited subgame.

  Its variables are the searcher's sequences, the values of the opponent's nodes, the values of the opponent's
  decisions, and the smallest margin.

  Attributes:
    reached: set of int. The opponent's topmost private states that the searcher plays to.
  """

  def __init__(self, search: Search, free: set[int], faced: set[int]) -> None:
    """Numbers the variables.

    Args:
      search: the search.
      free: the topmost free infosets of the searcher.
      faced: the topmost private states of the opponent.
    """
    self._search, self._free = search, free
    self.reached = {node for node in faced if search.mass[node] > _UNLIKELY}
    self._is_free = search.tree.below(free)
    ours = np.flatnonzero(self._is_free).tolist()
    theirs = np.flatnonzero(search.other.below(faced)).tolist()
    deciding = [node for node in theirs if node in search.other.actions]
    self._margin = len(ours) + len(theirs) + len(deciding)
    variables = iter(range(self._margin))
    self._plays, self._values, self._best = (
      dict(zip(nodes, variables, strict=False)) for nodes in (ours, theirs, deciding)
    )

  def solve(self) -> dict[int, float] | None:
    """Returns the searcher's probability of playing to each free node; None if there is no solution."""
    equal, most = Equations(self._margin + 1), Equations(self._margin + 1)
    self._add_strategy(equal)
    self._add_values(equal, most)
    self._add_margins(most)
    num_values = len(self._values) + len(self._best)
    limits = [(0, None)] * len(self._plays) + [(None, None)] * num_values + [(0, None)]
    solution = scipy.optimize.linprog(
      self._costs(), most.matrix(), most.right, equal.matrix(), equal.right, limits
    )
    if solution.status:
      return None
    return {node: solution.x[variable] for node, variable in self._plays.items()}

  def _add_strategy(self, equal: Equations) -> None:
    """Adds the constraints of the searcher's sequence form."""
    plays, tree = self._plays, self._search.tree
    for node in plays:
      if node in self._free:
        equal.add([(1, plays[node])], self._search.reach[node])
      elif not tree.is_action[node]:
        equal.add([(1, plays[node]), (-1, plays[tree.parent[node]])], 0)
      if node in tree.actions:
        equal.add([(1, plays[action]) for action in tree.actions[node]] + [(-1, plays[node])], 0)

  def _add_values(self, equal: Equations, most: Equations) -> None:
    """Adds the opponent's values: sums over observations, and the best action at each decision."""
    search, other, values = self._search, self._search.other, self._values
    payoffs = search.game.payoffs[1 - search.player].tocsr()[list(values)]
    by_blueprint = payoffs @ np.where(self._is_free, 0.0, search.reach)
    by_subgame = payoffs[:, list(self._plays)].tolil()
    observations: dict[int, list[int]] = {}
    for node in values:
      if not other.is_action[node]:
        observations.setdefault(other.parent[node], []).append(node)
    for row, node in enumerate(values):
      factors = zip(by_subgame.data[row], by_subgame.rows[row], strict=True)
      terms = [(-payoff, variable) for payoff, variable in factors]
      terms += [(-1, values[after]) for after in observations.get(node, [])]
      terms += [(-1, self._best[node])] if node in self._best else []
      equal.add([(1, values[node]), *terms], by_blueprint[row])
      for action in other.actions.get(node, []):
        most.add([(1, values[action]), (-1, self._best[node])], 0)

  def _add_margins(self, most: Equations) -> None:
    """Adds a constraint for each private state: its value plus the smallest margin is at most its bound."""
    search = self._search
    for node in self.reached:
      most.add([(1, self._values[node]), (search.mass[node], self._margin)], search.bounds[node])

  def _costs(self) -> Floats:
    """Returns the objective to minimize: minus the weighted mean of the mean and the smallest margin."""
    search, costs = self._search, np.zeros(self._margin + 1)
    total = sum(search.range[node] * search.mass[node] for node in self.reached)
    for node in self.reached if total > 0 else ():
      costs[self._values[node]] = _MIXED * search.range[node] / total
    costs[self._margin] = _MIXED - 1
    return costs


def _highest(tree: PrivateTree, nodes: set[int]) -> set[int]:
  """Returns the nodes that are not below other nodes of the set."""
  inside = tree.below(nodes)
  return {node for node in nodes if node == 0 or not inside[tree.parent[node]]}


def searched(game: Game, policies: list[Policy], player: int, decision: int, order: int) -> Policy:
  """Returns a player's policy after its infosets with `decision` earlier decisions are re-solved, each separately."""
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
  return [game.exploitability(pair) for pair in (policies, cut, latest)]


def positions(name: str, num_moves: int, count: int) -> Iterator[Game]:
  """Yields games that begin at random positions, after public moves to empty cells."""
  rng = np.random.default_rng(_SEED.value)
  while count:
    state, public = pyspiel.load_game(name).new_initial_state(), set[int]()
    while len(public) < num_moves and not state.is_terminal():
      move = int(rng.choice([cell for cell in state.legal_actions() if cell not in public]))
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
        pairs = zip(games, policies, strict=True)
        measured = np.array([measure(game, pair, order) for game, pair in pairs])
        worse = (measured[:, 1:] > measured[:, :1] + 1e-9).sum(axis=0)
        cells = [f"{mean:z.5f}" for mean in measured.mean(axis=0)]
        cells += [f"{number}" for number in worse]
        rows[f"{name}, CFR {iterations}, order {order}"] = cells
        print(name, iterations, order, *cells, flush=True)
  columns = ["alone", "one cut", "continual", "worse, one cut", "worse, continual"]
  print("\n" + markdown("policy", columns, rows))


if __name__ == "__main__":
  start(main)
