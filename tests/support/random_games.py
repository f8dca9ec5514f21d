"""Random extensive-form games with perfect recall.

A game is grown as a tree, written in Gambit's extensive form file format (Gambit manual, "The
extensive game (.efg) file format") and loaded by OpenSpiel, so that it takes the same way into a
solver as any other game. Perfect recall is Kuhn's (1953, "Extensive games and the problem of
information"): two histories share an infoset of a player only if that player passed the same
infosets and took the same actions in both.

The trees are deliberately odd. An infoset may hold histories of different lengths, two infosets may
be met in either order, one player may move several times in a row, an infoset may have a single
action, and the action ids of an infoset have gaps.
"""

import collections
import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyspiel
from hypothesis import strategies as st

_CHANCE = -1
_TERMINAL = -2

_STOP_PROBABILITY = 0.15
_CHANCE_PROBABILITY = 0.2
_MERGE_PROBABILITY = 0.6

# Powers of two, so that the payoffs of a zero-sum game add up to 0 without rounding.
_PAYOFF_STEPS = 2**19
_PAYOFF_DENOMINATOR = 2**16

# Probabilities that are not simple fractions, and whose digits sum to 0.9999999999999999.
ODD_CHANCES = """EFG 2 R "odd chances" { "0" "1" } ""
c "" 1 "" { "a" 0.3183098861837907 "b" 0.1234567890123457 "c" 0.5582333248038635 } 0
p "" 1 1 "first" { "a" "b" } 0
t "" 1 "" { 1 -1 }
t "" 2 "" { 2 -2 }
p "" 1 1 "first" { "a" "b" } 0
t "" 3 "" { 3 -3 }
t "" 4 "" { 1 -1 }
p "" 2 1 "second" { "a" "b" } 0
t "" 5 "" { 5 -5 }
t "" 6 "" { -6 6 }
"""


@dataclasses.dataclass
class _Node:
  """A history; `last` has each player's last (infoset number, action index), None before it."""

  depth: int
  last: tuple[tuple[int, int] | None, ...]
  player: int = _TERMINAL
  infoset: int = 0
  children: list["_Node"] = dataclasses.field(default_factory=list)


def _grow(
  rng: np.random.Generator,
  num_players: int,
  max_depth: int,
  max_histories: int,
  max_actions: int,
  chance_root: bool,
  idle_player: bool,
) -> tuple[_Node, int]:
  """Returns the root of a random tree and how many leaves it has."""
  movers = list(range(num_players))
  if idle_player:
    movers.pop(rng.integers(num_players))
  infosets: dict[Any, list[tuple[int, int]]] = collections.defaultdict(list)
  infoset_counts = [0] * num_players
  root = _Node(0, (None,) * num_players)
  frontier = [root]
  room = max_histories - 1
  num_leaves = 1
  while frontier:
    node = frontier.pop(rng.integers(len(frontier)))
    # No game is without a decision: the first one is at the root or right below a chance root.
    opening = node.depth <= chance_root
    if not room or node.depth == max_depth:
      continue
    if not opening and rng.random() < _STOP_PROBABILITY:
      continue
    width = min(room, int(rng.integers(2 if node is root else 1, max_actions + 1)))
    if chance_root if node is root else not opening and rng.random() < _CHANCE_PROBABILITY:
      node.player = _CHANCE
    else:
      player = node.player = movers[rng.integers(len(movers))]
      # With perfect recall the last infoset and action stand for everything before them.
      known = infosets[player, node.last[player]]
      fitting = [infoset for infoset in known if infoset[1] <= room]
      if fitting and rng.random() < _MERGE_PROBABILITY:
        node.infoset, width = fitting[rng.integers(len(fitting))]
      else:
        infoset_counts[player] += 1
        node.infoset = infoset_counts[player]
        known.append((node.infoset, width))
    for action in range(width):
      last = list(node.last)
      if node.player != _CHANCE:
        last[node.player] = (node.infoset, action)
      node.children.append(_Node(node.depth + 1, tuple(last)))
    frontier += node.children
    room -= width
    num_leaves += width - 1
  return root, num_leaves


def _payoffs(
  rng: np.random.Generator, num_leaves: int, num_players: int, zero_sum: bool, ties: bool
) -> list[list[str]]:
  """Returns the text of every leaf's payoffs; the sums differ between leaves unless zero-sum."""
  shape = (num_leaves, num_players)
  if ties:
    steps, denominator = rng.integers(-2, 3, shape), 1
  else:
    steps = rng.choice(2 * _PAYOFF_STEPS + 1, shape, replace=False) - _PAYOFF_STEPS
    denominator = _PAYOFF_DENOMINATOR
  sums = steps.sum(axis=1)
  if zero_sum:
    steps[:, -1] -= sums
  elif (sums == sums[0]).all():
    steps[0, 0] += 1
  return [[f"{step}/{denominator}" for step in leaf] for leaf in steps]


def random_efg(
  seed: int,
  num_players: int = 2,
  zero_sum: bool = True,
  *,
  max_depth: int = 6,
  max_histories: int = 300,
  max_actions: int = 4,
  chance_root: bool = True,
  idle_player: bool = False,
  payoff_ties: bool = False,
  zero_chance: bool = False,
) -> str:
  """Returns the Gambit text of a random game, the same text for the same arguments.

  Args:
    seed: of the `numpy.random.Generator` that draws everything.
    num_players: how many players the game has; by chance some of them may never move.
    zero_sum: whether the payoffs of every terminal add up to 0. If not, the game is general-sum.
    max_depth: the largest number of moves, of players and of chance, in a history; at least 2.
    max_histories: the largest number of histories, terminals and the root included; at least max_actions + 2.
    max_actions: the largest number of actions of an infoset and outcomes of a chance node; at least 2.
    chance_root: whether chance moves first. If not, a player does.
    idle_player: whether one player, drawn from all, never moves.
    payoff_ties: whether payoffs are small integers, many of them equal. If not, they are multiples
      of 2**-16 that all differ, except that in a zero-sum game the last player's may coincide.
    zero_chance: whether one outcome of every chance node that has two or more is impossible.
      OpenSpiel's Python CFR stops at these with an AssertionError.

  Raises:
    ValueError: a limit is too low to hold a game with a decision and two terminals.
  """
  if max_depth < 2 or max_actions < 2 or max_histories < max_actions + 2:
    raise ValueError(
      f"{max_depth=}, {max_actions=}, {max_histories=} may leave a game without a decision: use "
      "at least 2, 2 and max_actions + 2."
    )
  rng = np.random.default_rng(seed)
  root, num_leaves = _grow(
    rng, num_players, max_depth, max_histories, max_actions, chance_root, idle_player
  )
  payoffs = iter(_payoffs(rng, num_leaves, num_players, zero_sum, payoff_ties))
  numbers = itertools.count(1)
  action_ids: dict[str, int] = {}
  outcome_ids: dict[str, int] = {}
  labels_of_infoset: dict[tuple[int, int], list[str]] = {}

  def draw_labels(ids: dict[str, int], width: int) -> list[str]:
    labels = [f"a{i}" for i in rng.choice(max_actions + 2, width, replace=False)]
    # OpenSpiel numbers labels as they appear, then sorts the ids of a node but not its children.
    # Any other order here would give one id different labels at different nodes.
    return sorted(labels, key=lambda label: ids.setdefault(label, len(ids)))

  def write(node: _Node) -> Iterator[str]:
    width = len(node.children)
    if node.player == _TERMINAL:
      yield f't "" {next(numbers)} "" {{ {" ".join(next(payoffs))} }}'
    elif node.player == _CHANCE:
      weights = rng.choice(2 * max_actions, width, replace=False) + 1
      if zero_chance and width > 1:
        weights[rng.integers(width)] = 0
      labels = draw_labels(outcome_ids, width)
      outcomes = (
        f'"{label}" {w}/{weights.sum()}' for label, w in zip(labels, weights, strict=True)
      )
      yield f'c "" {next(numbers)} "" {{ {" ".join(outcomes)} }} 0'
    else:
      key = node.player, node.infoset
      if key not in labels_of_infoset:
        labels_of_infoset[key] = draw_labels(action_ids, width)
      actions = (f'"{label}"' for label in labels_of_infoset[key])
      name = f"player {node.player} infoset {node.infoset}"
      yield f'p "" {node.player + 1} {node.infoset} "{name}" {{ {" ".join(actions)} }} 0'
    for child in node.children:
      yield from write(child)

  players = " ".join(f'"{player}"' for player in range(num_players))
  return "\n".join([f'EFG 2 R "seed {seed}" {{ {players} }} ""', *write(root)]) + "\n"


def random_game(
  seed: int, num_players: int = 2, zero_sum: bool = True, **limits: Any
) -> pyspiel.Game:
  """Returns the game that OpenSpiel reads from `random_efg` of the same arguments.

  OpenSpiel can't load it again from its string; write the text to a file and load
  `efg_game(filename=...)` where that is needed.
  """
  return pyspiel.load_efg_game(random_efg(seed, num_players, zero_sum, **limits))


def games(**settings: Any) -> st.SearchStrategy[pyspiel.Game]:
  """Returns a Hypothesis strategy of random games, which shrinks towards small two-player ones.

  Args:
    **settings: arguments of `random_efg` to fix, each a value or a strategy. All others are drawn,
      except `zero_chance`, which stays False.
  """
  drawn = {
    "max_histories": st.integers(6, 300),
    "max_depth": st.integers(2, 7),
    "max_actions": st.integers(2, 4),
    "num_players": st.integers(2, 4),
    "zero_sum": st.sampled_from((True, False)),
    "chance_root": st.booleans(),
    "idle_player": st.booleans(),
    "payoff_ties": st.booleans(),
    "seed": st.integers(0, 2**32 - 1),
  }
  for name, value in settings.items():
    drawn[name] = value if isinstance(value, st.SearchStrategy) else st.just(value)
  return st.builds(random_game, **drawn)


def visiting_all(game):
  """Returns an enumerated game whose iterations leave no infoset out."""
  result = game.with_payoff(game.payoff)
  result.__dict__["decisions"] = result.every_infoset
  return result
