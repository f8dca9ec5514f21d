"""Shared subgames: both players' infosets, and the payoffs, from the trunk and from one walk of each subgame.

A player's sequences at the cut that can be in the same worlds have the same infosets below: the union of the infosets
of these subgames. They are *copies* of one *subtree*. A list of infosets begins with those of the trunk, in order of
discovery. Then come the infosets of subtrees, each with all its copies.
"""

import numpy as np

from spiel_cfr._numba.arrays import Int32s, Int64s, Integers, concatenated_ranges
from spiel_cfr.games.private_moves.core_histories import CoreHistories
from spiel_cfr.games.private_moves.cores import Split
from spiel_cfr.games.private_moves.infoset_states import PlayerInfosets
from spiel_cfr.games.private_moves.merged_rows import PlayerRows
from spiel_cfr.games.private_moves.shared_rectangles import SharedRectangles, SharedRows
from spiel_cfr.games.private_moves.trunk import Cut
from spiel_cfr.games.sequence_form.treeplex import Placement, infoset_depths

_ROOT = -1


class _Forest:
  """One player's infosets of all subgames, as `core_histories` found them.

  The sequences of a subgame are consecutive. Its root is the first of them.

  Attributes:
    found: PlayerRows. Infosets and rows.
    num_actions: int64 (infosets,). The number of actions of each.
    first_sequence: int64 (infosets,). The first sequence of each.
    depth: int64 (infosets,). The number of the player's infosets above each, in the subgame.
    first_infoset: int64 (subgames + 1,). The first infoset of each subgame.
    root: int64 (subgames + 1,). The root of each subgame.
  """

  def __init__(
    self, found: PlayerRows, infoset_ends: Int64s, sequence_ends: Int64s, num_actions: Int64s
  ) -> None:
    """Takes what was found, the ends of subgames, and the number of actions of each infoset."""
    self.found, self.num_actions = found, num_actions
    self.first_infoset, self.root = np.append(0, infoset_ends), np.append(0, sequence_ends)
    subgame = np.repeat(np.arange(len(infoset_ends)), np.diff(self.first_infoset))
    self.first_sequence = 1 + subgame + np.cumsum(num_actions) - num_actions
    owner = np.full(self.root[-1], -1)
    actions = concatenated_ranges(self.first_sequence, num_actions)
    owner[actions] = np.repeat(np.arange(len(num_actions)), num_actions)
    self.depth = infoset_depths(owner[found.parent])


class _Subtrees:
  """One player's subtrees, and their copies.

  A *key* is a subtree and one of its subgames. Sequences of subtrees are numbered without the roots.

  Attributes:
    cut: int64 (cut,). The player's sequences at the cut, in order.
    kind: int64 (cut,). The subtree below each.
    copy: int64 (cut,). Its number among those with this subtree.
    keys: int64 (keys,). Subtree * subgames + subgame, in order.
    first_place: int64 (keys,). The first place of each key in `places`.
    places: int32. The sequence of the subtree for each sequence of the subgame below its root, key by key.
    parent: int64 (infosets,). The sequence of the subtree above each infoset, or `_ROOT`.
    found: int64 (infosets,). The infoset of a subgame that each stands for.
    copies: int64 (infosets,). The number of copies of each infoset.
    of_subtree: int64 (infosets,). The subtree of each infoset.
    base: int64 (sequences,). The number of the first copy of each sequence in the numbering of the whole game.
    stride: int64 (sequences,). The distance to the next copy.
  """

  def __init__(self, forest: _Forest, sequences: Int64s, subgame: Int64s, num_trunk: int) -> None:
    """Takes the sequences and the subgames of histories at the cut, and the number of the player's trunk sequences."""
    num_subgames = len(forest.first_infoset) - 1
    owner, of_owner = np.divmod(np.unique(sequences * num_subgames + subgame), num_subgames)
    self.cut, first = np.unique(owner, return_index=True)
    kinds: dict[bytes, int] = {}
    lists = np.split(of_owner, first[1:])
    self.kind = np.array([kinds.setdefault(each.tobytes(), len(kinds)) for each in lists])
    counts = np.bincount(self.kind)
    self._by_kind = np.argsort(self.kind, kind="stable")
    self._first_of_kind = np.cumsum(counts) - counts
    self.copy = np.zeros(len(self.cut), np.int64)
    self.copy[self._by_kind] = concatenated_ranges(np.zeros_like(counts), counts)
    subgames = [np.frombuffer(each, np.int64) for each in kinds]
    self.keys = np.concatenate([kind * num_subgames + own for kind, own in enumerate(subgames)])
    self._grow(forest, subgames)
    self.copies = counts[self.of_subtree]
    num_actions = forest.num_actions[self.found]
    start = num_trunk + np.cumsum(self.copies * num_actions) - self.copies * num_actions
    self.base = concatenated_ranges(start, num_actions)
    self.stride = np.repeat(num_actions, num_actions)

  def _grow(self, forest: _Forest, subgames: list[Int64s]) -> None:
    """Makes the subtrees, as unions of the infosets of their subgames."""
    found = forest.found
    num_seen = 1 + int(found.seen.max(initial=0))
    places, parent, witness, of_subtree = [], [], [], []
    # The sequence of the current subtree for each sequence of a subgame.
    place, size = np.zeros(forest.root[-1], np.int64), 0
    for kind, own in enumerate(subgames):
      place[forest.root[own]] = _ROOT
      first = forest.first_infoset[own]
      infosets = concatenated_ranges(first, forest.first_infoset[own + 1] - first)
      depth = forest.depth[infosets]
      for level in range(1 + int(depth.max(initial=-1))):
        some = infosets[depth == level]
        keys = (1 + place[found.parent[some]]) * num_seen + found.seen[some]
        keys, chosen, infoset = np.unique(keys, return_index=True, return_inverse=True)
        counts = forest.num_actions[some[chosen]]
        start = size + np.cumsum(counts) - counts
        size += int(counts.sum())
        counts = forest.num_actions[some]
        place[concatenated_ranges(forest.first_sequence[some], counts)] = concatenated_ranges(
          start[infoset], counts
        )
        parent.append(keys // num_seen - 1)
        witness.append(some[chosen])
        of_subtree.append(np.full(len(keys), kind))
      first = forest.root[own] + 1
      places.append(
        place[concatenated_ranges(first, forest.root[own + 1] - first)].astype(np.int32)
      )
    none = np.zeros(0, np.int64)
    self.places = np.concatenate(places)
    self.parent, self.found, self.of_subtree = (
      np.concatenate([none, *parts]) for parts in (parent, witness, of_subtree)
    )
    sizes = (np.diff(forest.root) - 1)[self.keys % (len(forest.first_infoset) - 1)]
    self.first_place = np.cumsum(sizes) - sizes

  def at_cut(self, subtrees: Int64s, copies: Int64s) -> Int64s:
    """Returns the sequences at the cut with these copies of subtrees below."""
    result: Int64s = self.cut[self._by_kind[self._first_of_kind[subtrees] + copies]]
    return result

  def sequences(self, places: Integers, copies: Int64s) -> Int64s:
    """Returns the numbers of copies of sequences in the whole game."""
    result: Int64s = self.base[places] + copies * self.stride[places]
    return result


class SharedSubgames:
  """The infosets and payoffs of a game with shared subgames, before they are laid out."""

  def __init__(self, cut: Cut, split: Split, found: CoreHistories) -> None:
    """Takes the cut, cores and sights, and the walks of the subgames."""
    trunk = self._trunk = cut.trunk
    self._found, self._num_subgames = found, len(cut.worlds)
    self._subgame = np.searchsorted(cut.worlds, trunk.world)
    counts = np.array([len(actions) for actions in split.action_lists])
    self._legal = [legal[own.seen] for own, legal in zip(found.players, split.legal, strict=True)]
    self._forests = [
      _Forest(
        own,
        infoset_ends=found.ends[:, 3 * player],
        sequence_ends=found.ends[:, 1 + 3 * player],
        num_actions=counts[self._legal[player]],
      )
      for player, own in enumerate(found.players)
    ]
    self._subtrees = [
      _Subtrees(forest, sequences, self._subgame, num_trunk)
      for forest, sequences, num_trunk in zip(
        self._forests, trunk.sequences, trunk.num_sequences, strict=True
      )
    ]
    # For each player and history at the cut: the place of its sequence in `_Subtrees.cut`, and its key.
    self._at_cut = [
      np.searchsorted(own.cut, sequences)
      for own, sequences in zip(self._subtrees, trunk.sequences, strict=True)
    ]
    self._key = [
      np.searchsorted(own.keys, own.kind[place] * self._num_subgames + self._subgame)
      for own, place in zip(self._subtrees, self._at_cut, strict=True)
    ]

  @property
  def num_histories(self) -> tuple[Int64s, Int64s]:
    """The numbers of all histories, and of those that end, to be summed."""
    times = np.bincount(self._subgame)
    leaves = self._trunk.leaves.shape[1]
    return (
      np.append(times * self._found.num_states, self._trunk.num_states),
      np.append(times * self._found.num_histories, leaves),
    )

  def infosets(self, action_of_event: Int32s) -> tuple[list[PlayerInfosets], Int32s, Int32s]:
    """Returns each player's infosets, the last action of each path of chance, and the path before it."""
    trunk, found = self._trunk, self._found
    columns = [self._below_cut(player) for player in (0, 1)]
    paths, before, path_of = _joined_paths(
      len(trunk.chance_before),
      found.chance_before,
      np.concatenate([own[-2] for own in columns]),
      np.concatenate([own[-1] for own in columns]),
    )
    result, begin = [], 0
    for player, (parent, opponent_sequence, legal, path, _) in enumerate(columns):
      own, end = trunk.players[player], begin + len(path)
      parts = (
        (own.parent, parent),
        (own.legal, legal),
        (own.opponent_sequence, opponent_sequence),
        (own.chance_path, path_of[begin:end]),
      )
      begin = end
      result.append(PlayerInfosets(*(np.concatenate(part).astype(np.int32) for part in parts)))
    actions = np.concatenate([trunk.chance_action, action_of_event[found.chance_event[paths]]])
    before = np.concatenate([trunk.chance_before, before])
    return result, actions.astype(np.int32), before.astype(np.int32)

  def _below_cut(self, player: int) -> tuple[Int64s, ...]:
    """Returns the columns of a player's infosets below the cut.

    Returns:
      The sequence above each, a sequence of the opponent, the list of legal actions, and the path of chance before the
      cut and below it.
    """
    own, other = self._subtrees[player], self._subtrees[1 - player]
    place, key = self._at_cut[player], self._key[player]
    # A history at the cut for each key and copy.
    num_copies = np.bincount(own.kind)[own.keys // self._num_subgames]
    first = np.cumsum(num_copies) - num_copies
    histories = np.zeros(num_copies.sum(), np.int64)
    histories[first[key] + own.copy[place]] = np.arange(len(key))
    infoset = np.repeat(np.arange(len(own.found)), own.copies)
    copies = concatenated_ranges(np.zeros_like(own.copies), own.copies)
    found = self._found.players[player]
    subgame = np.searchsorted(self._forests[player].first_infoset, own.found, side="right") - 1
    key = np.searchsorted(own.keys, own.of_subtree * self._num_subgames + subgame)
    history = histories[first[key][infoset] + copies]

    parent = own.at_cut(own.of_subtree[infoset], copies)
    inner = np.flatnonzero(own.parent[infoset] != _ROOT)
    parent[inner] = own.sequences(own.parent[infoset[inner]], copies[inner])
    opponent_sequence = self._trunk.sequences[1 - player, history]
    below = found.opponent_sequence[own.found][infoset].astype(np.int64)
    below -= self._forests[1 - player].root[self._subgame[history]]
    inner = np.flatnonzero(below)
    history_of_inner = history[inner]
    places = other.first_place[self._key[1 - player][history_of_inner]] + below[inner] - 1
    opponent_sequence[inner] = other.sequences(
      other.places[places], other.copy[self._at_cut[1 - player][history_of_inner]]
    )
    return (
      parent,
      opponent_sequence,
      self._legal[player][own.found][infoset],
      self._trunk.path[history],
      found.chance_path[own.found][infoset].astype(np.int64),
    )

  def payoff(self, placements: list[Placement]) -> SharedRectangles:
    """Returns the payoffs, given the layout of both players' infosets."""
    trunk, found = self._trunk, self._found
    order = np.lexsort((*trunk.sequences[::-1], trunk.reach, self._subgame))
    sequences, reach, subgame = trunk.sequences[:, order], trunk.reach[order], self._subgame[order]
    is_new = (np.diff(subgame) != 0) | (np.diff(reach) != 0) | (np.diff(sequences[0]) != 0)
    first = np.append(0, 1 + np.flatnonzero(is_new))
    ends = np.append(first[1:], len(order))
    # Sequences of player 0 are in one group if they meet the same sequences of player 1.
    groups: dict[tuple[int, float, bytes], int] = {}
    group, leaders = list[int](), list[tuple[int, int]]()
    for begin, end in zip(first.tolist(), ends.tolist(), strict=True):
      met = int(subgame[begin]), float(reach[begin]), sequences[1, begin:end].tobytes()
      group.append(groups.setdefault(met, len(groups)))
      if len(groups) > len(leaders):
        leaders.append((begin, end))
    of_leader, end_of_leader = np.array(leaders).T
    counts = end_of_leader - of_leader
    members = (
      (np.array(group), order[first]),
      (np.repeat(np.arange(len(groups)), counts), order[concatenated_ranges(of_leader, counts)]),
    )
    rows = [
      self._rows(player, placed, len(groups), *member)
      for player, (placed, member) in enumerate(zip(placements, members, strict=True))
    ]
    leaves = found.payoffs.shape[1] + np.arange(trunk.leaves.shape[1])
    return SharedRectangles(
      rows=(rows[0], rows[1]),
      subgame=subgame[of_leader].astype(np.uint32),
      reach=reach[of_leader],
      first_rectangle=np.append(0, found.ends[:, -1]).astype(np.uint32),
      payoff=np.concatenate([found.payoff, leaves]).astype(np.uint32),
      payoffs=np.concatenate([found.payoffs, trunk.leaf_payoffs], axis=1),
      treeplexes=[placed.treeplex for placed in placements],
    )

  def _rows(
    self, player: int, placed: Placement, num_groups: int, group: Int64s, history: Int64s
  ) -> SharedRows:
    """Returns a player's rows; a history stands for its sequence at the cut, a member of a group."""
    found, forest, own = self._found.players[player], self._forests[player], self._subtrees[player]
    count, sequences = self._num_subgames, placed.sequences
    row_end = self._found.ends[:, 2 + 3 * player]
    first_row = np.append(0, row_end)
    first_entry = np.append(0, found.row_end)
    # Classes of one subgame are consecutive, and numbered from 1 on.
    largest = np.append(0, np.maximum.accumulate(found.entries))
    first_class = largest[first_entry[first_row]].astype(np.int64)
    roots = forest.root[:-1]
    is_used = found.classes > 0
    is_used[roots] = False
    used = np.flatnonzero(is_used)
    first_used = np.searchsorted(used, forest.root)
    classes = np.diff(first_class)
    root = found.classes[roots]
    of_used = np.repeat(np.arange(count), np.diff(first_used))
    of_entry = np.repeat(np.arange(count), np.diff(first_entry[first_row]))
    of_rectangle = np.repeat(np.arange(count), np.diff(np.append(0, self._found.ends[:, -1])))

    subgame_of_key = own.keys % count
    sizes = np.diff(first_used)[subgame_of_key]
    places = concatenated_ranges(first_used[subgame_of_key], sizes)
    shift = own.first_place - roots[subgame_of_key] - 1
    positions = own.base[own.places[used[places] + np.repeat(shift, sizes)]]
    place, key = self._at_cut[player][history], self._key[player][history]
    order = np.lexsort((own.copy[place], key, group))
    group, place, key = group[order], place[order], key[order]
    begins = np.append(0, 1 + np.flatnonzero((np.diff(group) != 0) | (np.diff(key) != 0)))
    columns: dict[str, Int64s] = dict(
      first_class=first_class,
      root_class=np.where(root > 0, root - 1 - first_class[:-1], classes),
      first_used=first_used,
      used_class=found.classes[used] - 1 - first_class[of_used],
      first_row=first_row,
      first_entry=first_entry,
      entries=found.entries - 1 - first_class[of_entry],
      of_rectangle=self._found.rows[player] - first_row[of_rectangle],
      leaves=sequences[self._trunk.leaves[player]],
      first_block=np.searchsorted(group[begins], np.arange(num_groups + 1)),
      first_position=(np.cumsum(sizes) - sizes)[key[begins]],
      first_copy=np.append(begins, len(group)),
      copy=own.copy[place],
      root=sequences[own.cut[place]],
      positions=sequences[positions],
    )
    return SharedRows(**{name: column.astype(np.uint32) for name, column in columns.items()})


def _joined_paths(
  num_trunk: int, before: Int32s, trunk_path: Int64s, path: Int64s
) -> tuple[Int64s, Int64s, Int64s]:
  """Joins paths of chance before the cut and in a subgame.

  Args:
    num_trunk: the number of paths before the cut.
    before: int32 (paths of subgames,). The path before each in its subgame, or -1.
    trunk_path: int64. Paths before the cut, or -1.
    path: int64. The path in the subgame that follows each, or -1.

  Returns:
    The last path in the subgame of each new path; the path before each new one; the number of each joined path.
  """
  size = len(before) + 1
  # A key: the path before the cut, and the path in the subgame.
  new = keys = np.unique(((1 + trunk_path) * size + 1 + path)[path >= 0])
  while len(new):
    above = before[new % size - 1]
    new = np.setdiff1d((new // size * size + 1 + above)[above >= 0], keys)
    keys = np.union1d(keys, new)
  last = keys % size - 1
  above = before[last].astype(np.int64)

  def number(trunk_path: Int64s, path: Int64s) -> Int64s:
    joined = np.searchsorted(keys, (1 + trunk_path) * size + 1 + path)
    return np.where(path >= 0, num_trunk + joined, trunk_path)

  return last, number(keys // size - 1, above), number(trunk_path, path)
