"""Sets of deviations by name, and the layout of their regrets: flat arrays over infosets and memories.

A deviator is a player who does not follow all recommendations. Its memory at an infoset I is the information that it
has of the recommendations on the way to I. Its probability is a product of the player's own probabilities.
Let I_0, ..., I_{n-1} be the player's infosets above I, and a_k the action at I_k that leads to I. Kinds of memories:

    forced     no recommendation, probability 1: the deviator reaches I by its own actions
    partial    a_0, ..., a_{k-1} were recommended, for each k < n: it deviated at I_k before the recommendation there
    triggered  a_0, ..., a_{k-1} were recommended and then b, not a_k, for each k and b: it deviated after seeing b
    followed   a_0, ..., a_{n-1} were recommended: it has not deviated yet
    recalled   any list of actions at I_0, ..., I_{n-1}

The probability of a memory is that of one sequence, except for recalled memories. An external deviation plays a fixed
action at I. An internal one plays a if b is recommended, and otherwise follows. Below I the deviator follows again.
Morrill et al., "Efficient Deviation Types and Learning for Hindsight Rationality in Extensive-Form Games" (2021),
section 5.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.records import Longs
from spiel_cfr._util import arguments
from spiel_cfr._util.copying import FrozenMapping
from spiel_cfr.games.compiled.compiled_game import CompiledGame

FORCED, PARTIAL, TRIGGERED, FOLLOWED, RECALLED = (
  "forced",
  "partial",
  "triggered",
  "followed",
  "recalled",
)
# Sentinel in place of an infoset, an action or a memory.
NONE = -1
_MOST_REGRETS = 1 << 26


class DeviationSet(NamedTuple):
  """A set of deviations: the kinds of memories at each infoset.

  Attributes:
    external: tuple of str. Kinds of memories with external deviations.
    internal: tuple of str. Kinds of memories with internal deviations.
  """

  external: tuple[str, ...] = ()
  internal: tuple[str, ...] = ()


DEVIATIONS: Mapping[str, DeviationSet] = FrozenMapping(
  {
    "blind action": DeviationSet(external=(FOLLOWED,)),
    "informed action": DeviationSet(internal=(FOLLOWED,)),
    "blind counterfactual": DeviationSet(external=(FORCED,)),
    "informed counterfactual": DeviationSet(internal=(FORCED,)),
    "blind partial sequence": DeviationSet(external=(PARTIAL, FOLLOWED)),
    "counterfactual partial sequence": DeviationSet(internal=(PARTIAL, FOLLOWED)),
    "causal partial sequence": DeviationSet(external=(PARTIAL, TRIGGERED), internal=(FOLLOWED,)),
    "twice informed partial sequence": DeviationSet(internal=(PARTIAL, TRIGGERED, FOLLOWED)),
    "behavioural": DeviationSet(internal=(RECALLED,)),
  }
)
_SHORT = {
  "blind cf": "blind counterfactual",
  "informed cf": "informed counterfactual",
  "bps": "blind partial sequence",
  "cfps": "counterfactual partial sequence",
  "cf partial sequence": "counterfactual partial sequence",
  "csps": "causal partial sequence",
  "casual partial sequence": "causal partial sequence",
  "tips": "twice informed partial sequence",
  "bhv": "behavioural",
  "single target behavioural": "behavioural",
}


def full_name(deviations: str) -> str:
  """Returns the name in `DEVIATIONS` of a set, given that name or OpenSpiel's.

  Raises:
    ArgumentError: the name is unknown.
  """
  name = _SHORT.get(deviations, deviations) if isinstance(deviations, str) else deviations
  arguments.one_of(name, "deviations", tuple(DEVIATIONS))
  return name


class Memories(NamedTuple):
  """Memories of all infosets, and the layout of their regrets.

  Infosets are in layout order, player by player. A node is a factor of probability: nodes below `CompiledGame.end` are
  sequences; later nodes are lists of recommended actions that are no sequence.

  Attributes:
    begin: int64 (infosets + 1,). The first memory of each infoset; last, the number of memories.
    node: int64 (memories,). The node that has the memory's probability.
    internal: int64 (memories,). 1 if a memory's deviations are internal, 0 if external. External memories come first.
    offset: int64 (memories + 1,). The first regret of each memory; last, the number of regrets. An external memory has
      a regret for each action; an internal one for each recommended and each played action.
    above: int64 (memories,). The memory of the infoset above with the same node; `NONE` if there is none.
    trigger: int64 (memories,). The recommendation at the infoset above with which the memory ends; `NONE` if the
      infoset above has the memory.
    infoset_above: int64 (infosets,). The owner's infoset above; `NONE` at its first infosets.
    action_above: int64 (infosets,). The action at the infoset above that leads here.
    sequence_above: int64 (infosets,). The sequence of that action.
    list_begin: int64 (infosets + 1,). The first list that ends at each infoset; last, the number of lists.
    list_parent: int64 (lists,). The node of the list without its last action.
    list_played: int64 (lists,). The sequence of the list's last action.
  """

  begin: Longs
  node: Longs
  internal: Longs
  offset: Longs
  above: Longs
  trigger: Longs
  infoset_above: Longs
  action_above: Longs
  sequence_above: Longs
  list_begin: Longs
  list_parent: Longs
  list_played: Longs


def make_memories(game: CompiledGame, name: str) -> Memories:
  """Returns the memories of a set in `DEVIATIONS`.

  Raises:
    GameTooLargeError: there are more than 2^26 regrets.
  """
  chosen = DEVIATIONS[name]
  layout = _MemoryLists(game, name)
  owner = np.repeat(np.arange(game.num_infosets), np.diff(layout.begin))
  node, above, trigger, triggered = np.array(layout.rows, np.int64).reshape(-1, 4).T
  followed = node == layout.sequence_above[owner]
  is_kind = {
    FORCED: np.isin(node, [tree.root for tree in game.treeplexes]),
    PARTIAL: ~followed & (triggered == 0),
    TRIGGERED: triggered > 0,
    FOLLOWED: followed,
    RECALLED: np.ones(len(node), bool),
  }
  external, internal = (
    np.logical_or.reduce([is_kind[kind] for kind in kinds]) | np.zeros(len(node), bool)
    for kinds in chosen
  )
  kept = external | internal
  # The number of a memory once unused ones are left out.
  number = np.append(np.where(kept, np.cumsum(kept) - 1, NONE), NONE)
  actions = np.array([len(sequences) for sequences in layout.sequences], np.int64)[owner]
  sizes = np.where(internal, actions**2, actions)[kept]
  _check_size(game, name, sizes.sum())
  return Memories(
    begin=np.searchsorted(owner[kept], np.arange(game.num_infosets + 1)),
    node=node[kept],
    internal=internal[kept].astype(np.int64),
    offset=np.append(0, np.cumsum(sizes)),
    above=number[above[kept]],
    trigger=trigger[kept],
    infoset_above=layout.infoset_above,
    action_above=layout.action_above,
    sequence_above=layout.sequence_above,
    list_begin=np.array(layout.list_begin, np.int64),
    list_parent=np.array(layout.list_parent, np.int64),
    list_played=np.array(layout.list_played, np.int64),
  )


def _check_size(game: CompiledGame, name: str, count: float) -> None:
  if count > _MOST_REGRETS:
    raise errors.GameTooLargeError(
      f"The {name} deviations of {game} have more than {_MOST_REGRETS:,} regrets. Use a smaller set, such as "
      "'blind partial sequence'."
    )


class _Memory(NamedTuple):
  """A memory at an infoset.

  Attributes:
    node: int. The node that has the memory's probability.
    above: int. The memory of the infoset above with the same node, or `NONE`.
    trigger: int. The recommendation at the infoset above with which the memory ends; `NONE` if that has the memory.
    is_triggered: int. 1 if the memory ends with a recommendation that was not followed, otherwise 0.
  """

  node: int
  above: int
  trigger: int
  is_triggered: int


class _MemoryLists:
  """Growing lists of memories, infoset by infoset; see `Memories` for the attributes not described here.

  Attributes:
    sequences: one list of int an infoset. The sequences of its actions.
    rows: list of `_Memory`. The memories of all infosets.
  """

  def __init__(self, game: CompiledGame, name: str) -> None:
    self._end, self.sequences = game.end, list[list[int]]()
    # The infoset and the action of each sequence.
    owner, action = np.full((2, game.end), NONE)
    for tree in game.treeplexes:
      for sequences, _ in tree.infoset_groups():
        owner[sequences] = len(self.sequences) + np.arange(sequences.shape[1])
        action[sequences] = np.arange(len(sequences))[:, None]
        self.sequences += sequences.T.tolist()
    self.sequence_above = game.parent.astype(np.int64)
    self.infoset_above = owner[self.sequence_above]
    self.action_above = action[self.sequence_above]
    self.begin, self.list_begin = [0], [0]
    self.rows = list[_Memory]()
    self.list_parent, self.list_played = list[int](), list[int]()
    wanted = {kind for kinds in DEVIATIONS[name] for kind in kinds}
    inner = set(self.infoset_above.tolist())
    for infoset, up in enumerate(self.infoset_above.tolist()):
      if RECALLED in wanted:
        self._add_lists(infoset, up, infoset in inner)
      else:
        self._add_sequences(infoset, up, TRIGGERED in wanted)
      self.begin.append(len(self.rows))
      self.list_begin.append(len(self.list_parent))
      # Each memory and each list has several regrets.
      _check_size(game, name, 4 * (len(self.rows) + len(self.list_parent)))

  def _add_sequences(self, infoset: int, up: int, with_triggers: bool) -> None:
    """Adds the memories of the infoset above, those that it triggers, and last the memory of all recommendations."""
    above, last = int(self.sequence_above[infoset]), int(self.action_above[infoset])
    if up != NONE:
      self.rows += [
        self.rows[memory]._replace(above=memory, trigger=NONE)
        for memory in range(self.begin[up], self.begin[up + 1])
      ]
    if up != NONE and with_triggers:
      self.rows += [
        _Memory(sequence, NONE, action, 1)
        for action, sequence in enumerate(self.sequences[up])
        if sequence != above
      ]
    self.rows.append(_Memory(above, NONE, last, 0))

  def _add_lists(self, infoset: int, up: int, is_inner: bool) -> None:
    """Adds a memory for each list of recommendations above an infoset."""
    before = [int(self.sequence_above[infoset])]
    if up != NONE:
      first, last = self.list_begin[up : up + 2]
      before = list(range(self._end + first, self._end + last))
    self.rows += [_Memory(node, NONE, NONE, 0) for node in before]
    if is_inner:
      for node in before:
        self.list_parent += [node] * len(self.sequences[infoset])
        self.list_played += self.sequences[infoset]
