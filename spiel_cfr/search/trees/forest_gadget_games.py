"""Gadget games of public trees that list private states.

The searcher's infosets occur once in the game. The opponent's infosets occur once for each way to enter them, as a
*copy*: after its own move in front, and where its entrance is forced. A leaf is a pair of last sequences; the
opponent's sequence belongs to one copy.

Example: Kuhn poker after player 0's pass, re-solved for player 1, with the front "pick" and forced=0.9:

    opponent's infosets    pick: where to be      J = 0, 1, 2: sequences 1, 2, 3, each pays its bound
                           0pb, 1pb, 2pb          below sequences 1, 2, 3: sequences 4 to 9
                           forced: 0pb, ..., 2pb  below the empty sequence 0: sequences 10 to 15
    searcher's infosets    0p, 1p, 2p             sequences 1 to 6
    a leaf                 0pb-bet after 1p-bet   searcher's sequence 4 with 5, and with 11 for the forced copy
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s, concatenated_ranges
from spiel_cfr._numba.sort_columns import distinct_columns
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame, build_enumerated_game
from spiel_cfr.games.compiled.game_facts import GameFacts
from spiel_cfr.games.openspiel.history_list import NONE
from spiel_cfr.games.openspiel.walk import DiscoveredInfosets
from spiel_cfr.search.gadget_games import GadgetGame, GadgetGameBuilder, SubgameStart
from spiel_cfr.search.gadgets import Gadget
from spiel_cfr.search.trees.forest_tree import ForestTree
from spiel_cfr.search.trees.infoset_front import InfosetFront, opponent_roots
from spiel_cfr.search.trees.private_forest import SubforestInfosets

# The largest number of ends of the game in subgames that are solved as one game.
_MOST_END_PAIRS = 500_000


class _SubgameEnds(NamedTuple):
  """The ends of the game in subgames, as pairs of rows, subgame by subgame.

  Attributes:
    rows: int64 (2, ends). The row of each player at each end.
    payoffs: float64 (ends,). The searcher's payoff at each end, times chance's probability.
    weights: float64 (ends,). The product of both players' weights at the beginning of the subgame; above 0.
  """

  rows: Int64s
  payoffs: Float64s
  weights: Float64s


def _ends(
  tree: ForestTree, starts: Sequence[SubgameStart], roots: Sequence[Int64s]
) -> _SubgameEnds:
  """Returns the ends in subgames that both players may reach; `roots` as in `ForestGameBuilder.build`."""
  ends = [tree.end_pairs(tree.below(start.index)) for start in starts]
  first, second, payoffs = (np.concatenate(arrays) for arrays in zip(*ends, strict=True))
  rows = np.stack([first, second])
  weights = np.ones(len(payoffs))
  for player, root in enumerate(roots):
    weight_of_root = np.zeros(len(root))
    for start in starts:
      weight_of_root[tree.rows(start.index, player)] = start.weights[player]
    weights *= weight_of_root[root[rows[player]]]
  is_possible = weights > 0
  sign = 1 - 2 * starts[0].searcher
  return _SubgameEnds(rows[:, is_possible], sign * payoffs[is_possible], weights[is_possible])


class ForestGameBuilder(GadgetGameBuilder):
  """Makes the gadget games of a tree that lists private states."""

  def __init__(self, tree: ForestTree) -> None:
    """Takes the tree."""
    self._tree = tree

  def batches(
    self, starts: Iterable[SubgameStart], *, is_linear_program: bool
  ) -> Iterator[list[SubgameStart]]:
    batch: list[SubgameStart] = []
    size = 0
    for start in starts:
      more = len(self._tree.end_pairs(self._tree.below(start.index))[0])
      if batch and (is_linear_program or size + more > _MOST_END_PAIRS):
        yield batch
        batch, size = [], 0
      batch.append(start)
      size += more
    if batch:
      yield batch

  def build(
    self, starts: Sequence[SubgameStart], gadget: Gadget, *, is_linear_program: bool = False
  ) -> GadgetGame:
    tree, searcher = self._tree, starts[0].searcher
    opponent = 1 - searcher
    # By player, int64 (rows,): the row at the beginning of each row's subgame, `NONE` outside.
    roots = [
      forest.subtree_roots(np.concatenate([tree.rows(start.index, player) for start in starts]))
      for player, forest in enumerate(tree.forests)
    ]
    ends = _ends(tree, starts, roots)
    infosets = [
      SubforestInfosets(forest, root, rows)
      for forest, root, rows in zip(tree.forests, roots, ends.rows, strict=True)
    ]
    front, j_of_row = _front(tree, starts, gadget, is_linear_program, roots[opponent])
    opponent_side, values = _opponent_side(
      tree, opponent, front, infosets[opponent], ends, j_of_row
    )
    searcher_side = _searcher_side(tree, searcher, front, infosets[searcher], ends)
    game = _game(tree.name, searcher, searcher_side, opponent_side, values)
    counts = [len(own.slots) for own in infosets]
    # With the front "deal", the opponent has one copy and no move before it, so its strategy there may be written into
    # the policy, too.
    if gadget.has_bounds:
      counts[opponent] = 0
    actions = np.split(game.all_action_sequences, [len(game.actions[0])])
    first, second = (
      (sequences[:count], own.slots[:count])
      for sequences, own, count in zip(actions, infosets, counts, strict=True)
    )
    return GadgetGame(
      game,
      searcher,
      (first[0], second[0]),
      (first[1], second[1]),
      _subgame_of_action(tree, starts, roots[searcher], infosets[searcher]),
      front.bonus_in(game, opponent),
    )


class _Side(NamedTuple):
  """One player's side of a gadget game.

  Leaves of the gadget come first. The ends of the subgames follow, once for each copy of the opponent's infosets.

  Attributes:
    built: `_BuiltInfosets`. The player's infosets.
    last: int64 (leaves,). The player's last sequence at each leaf.
  """

  built: "_BuiltInfosets"
  last: Int64s


def _front(
  tree: ForestTree,
  starts: Sequence[SubgameStart],
  gadget: Gadget,
  is_linear_program: bool,
  root: Int64s,
) -> tuple[InfosetFront, Int64s]:
  """Returns the front of the subgames, and the J at the beginning of the subgame of each of the opponent's rows.

  Args:
    tree: the whole game.
    starts: the beginnings of the subgames.
    gadget: the gadget.
    is_linear_program: see `GadgetGameBuilder.build`.
    root: int64 (rows,). The opponent's row at the beginning of each row's subgame; `NONE` outside.
  """
  rows = [tree.rows(start.index, 1 - start.searcher) for start in starts]
  private_states = opponent_roots(starts, rows, gadget)
  j_of_root = np.full(len(root), NONE)
  j_of_root[private_states.row] = np.arange(len(private_states.row))
  return InfosetFront(private_states, gadget, is_linear_program), j_of_root[root]


def _searcher_side(
  tree: ForestTree,
  searcher: int,
  front: InfosetFront,
  infosets: SubforestInfosets,
  ends: _SubgameEnds,
) -> _Side:
  """Returns the searcher's side; the arguments are those of `_opponent_side`, with the searcher's infosets."""
  built = _BuiltInfosets(tree, searcher)
  built.add_infosets(infosets, "", 0)
  last = infosets.sequences(tree.forests[searcher].last[ends.rows[searcher]], 0)
  # The searcher has no move before leaves of the gadget. All copies of the subgames' ends repeat its last sequences.
  return _Side(built, np.append(np.zeros_like(front.sequences), np.tile(last, len(front.copies))))


def _opponent_side(
  tree: ForestTree,
  opponent: int,
  front: InfosetFront,
  infosets: SubforestInfosets,
  ends: _SubgameEnds,
  j_of_row: Int64s,
) -> tuple[_Side, Float64s]:
  """Returns the opponent's side, and the searcher's payoff at each leaf, times its probability.

  Args:
    tree: the whole game.
    opponent: the opponent.
    front: the front of the subgames.
    infosets: the opponent's infosets in the subgames.
    ends: the ends of the game in the subgames.
    j_of_row: int64 (rows,). The J at the beginning of the subgame that contains each of the opponent's rows.
  """
  built = _BuiltInfosets(tree, opponent)
  built.add_front(front)
  sequences, values = [front.sequences], [front.values]
  end_rows = ends.rows[opponent]
  last_slot, j_of_end = tree.forests[opponent].last[end_rows], j_of_row[end_rows]
  for copy in front.copies:
    begin = built.add_infosets(infosets, copy.label, copy.sequence[j_of_row[infosets.rows]])
    sequences.append(infosets.sequences(last_slot, copy.sequence[j_of_end], begin))
    values.append(ends.weights * copy.factor[j_of_end] * ends.payoffs)
  return _Side(built, np.concatenate(sequences)), np.concatenate(values)


def _subgame_of_action(
  tree: ForestTree,
  starts: Sequence[SubgameStart],
  root: Int64s,
  infosets: SubforestInfosets,
) -> Int64s:
  """Returns the position in `starts` of the subgame of each of the searcher's actions.

  Args:
    tree: the whole game.
    starts: the beginnings of the subgames.
    root: int64 (rows,). The searcher's row at the beginning of each row's subgame.
    infosets: the searcher's infosets in the subgames.
  """
  subgame_of_root = np.zeros(len(root), np.int64)
  for position, start in enumerate(starts):
    subgame_of_root[tree.rows(start.index, start.searcher)] = position
  return np.repeat(subgame_of_root[root[infosets.rows]], infosets.counts)


def _game(
  name: str,
  searcher: int,
  searcher_side: _Side,
  opponent_side: _Side,
  values: Float64s,
) -> EnumeratedGame:
  """Returns the compiled game of both players' sides.

  Args:
    name: the string of the whole game.
    searcher: the searcher.
    searcher_side: the searcher's side.
    opponent_side: the opponent's side. A pair of last sequences may occur at several leaves.
    values: float64 (leaves,). The searcher's payoff at each leaf, times its probability.
  """
  sides = (searcher_side, opponent_side)[:: 1 - 2 * searcher]
  leaves, leaf_of_pair = distinct_columns([side.last for side in sides])
  payoffs = (1 - 2 * searcher) * np.bincount(leaf_of_pair, values, leaves.shape[1])
  largest = float(np.abs(payoffs).sum())
  infosets = [
    DiscoveredInfosets(own.names, *map(np.concatenate, (own.actions, own.counts, own.parents)))
    for own, _ in sides
  ]
  facts = GameFacts(
    game_string=f"subgame of {name}",
    num_distinct_actions=1 + max(int(own.actions.max(initial=0)) for own in infosets),
    payoff_range=(-largest, largest),
    constant_sum=0.0,
    num_states=len(values) + sum(len(own.parents) for own in infosets),
    num_terminals=len(values),
    open_spiel_version=None,
  )
  return build_enumerated_game(
    facts, infosets, leaves.astype(np.uint32), np.stack([payoffs, -payoffs], axis=1)
  )


class _Names(Sequence[str]):
  """Names of a player's infosets in a subgame: a label and the name of a row, put together when they are read."""

  def __init__(self, tree: ForestTree, player: int) -> None:
    """Begins without names."""
    self._tree, self._player = tree, player
    self._rows, self._labels = list[int](), list[str]()

  def add(self, label: str, rows: Int64s) -> None:
    """Adds a name for each row; for `NONE`, the label is the whole name."""
    self._rows += rows.tolist()
    self._labels += [label] * len(rows)

  def __len__(self) -> int:
    return len(self._rows)

  def __getitem__(self, index: Any) -> Any:
    if isinstance(index, slice):
      return [self[infoset] for infoset in range(len(self))[index]]
    row = self._rows[index]
    return self._labels[index] + ("" if row == NONE else self._tree.private_name(self._player, row))

  def __reduce__(self) -> tuple[Any, ...]:
    """Replaces the object by a list of all names in pickles and copies, which then do not contain the tree."""
    return list, (list(self),)


class _BuiltInfosets:
  """A player's infosets in the game of the subgames, in the order of their sequences.

  Attributes:
    names: strings. The names of the infosets.
    counts: list. Arrays of the infosets' numbers of actions.
    actions: list. Arrays of the actions of OpenSpiel.
    parents: list. Arrays of the sequences above the infosets.
  """

  def __init__(self, tree: ForestTree, player: int) -> None:
    """Begins without infosets."""
    self.names, self._actions = _Names(tree, player), tree.actions
    self.counts, self.actions, self.parents = [list[Int64s]() for _ in range(3)]

  def add_front(self, front: InfosetFront) -> None:
    """Adds the infosets of a front. The sequence above them is the empty sequence."""
    self.names.add(front.label, front.rows)
    self.counts.append(front.counts)
    self.actions.append(concatenated_ranges(np.zeros_like(front.counts), front.counts))
    self.parents.append(np.zeros_like(front.counts))

  def add_infosets(self, infosets: SubforestInfosets, label: str, otherwise: Any) -> int:
    """Adds a copy of infosets of the whole game, and returns the first sequence of the copy.

    Args:
      infosets: the infosets of the whole game.
      label: the beginning of the names in the copy.
      otherwise: the sequence above an infoset that has no infoset of the copy above it.
    """
    start = 1 + sum(int(counts.sum()) for counts in self.counts)
    self.names.add(label, infosets.rows)
    self.counts.append(infosets.counts)
    self.actions.append(self._actions[infosets.slots])
    self.parents.append(infosets.sequences(infosets.slot_above, otherwise, start))
    return start
