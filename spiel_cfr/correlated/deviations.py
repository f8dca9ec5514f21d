"""Sets of deviations by name, and where the regrets of each are kept: flat arrays over infosets and memories.

A deviator of a player sees what is recommended, and plays otherwise. What it remembers at an infoset of the
recommendations on the way there is a memory; what matters of that is its probability, a product of the player's own
probabilities. With I_0, ..., I_{n-1} the player's infosets above I, and a_k what leads from I_k to I:

    forced     nothing, probability 1: it would have come to I whatever was recommended
    partial    that a_0, ..., a_{k-1} were recommended, one memory for each k < n: it began to deviate at I_k, unseen
    triggered  that a_0, ..., a_{k-1} were, and then b instead of a_k, one for each k and b: b is why it deviates
    followed   that a_0, ..., a_{n-1} were: it has not deviated yet
    recalled   any list of actions at I_0, ..., I_{n-1}

The probability of each but the last is that of a single sequence. At I a deviator plays some action whatever is
recommended there (an external deviation), or plays a where b is recommended and else what is recommended (an internal
one); below I it follows again. Morrill et al., "Efficient Deviation Types and Learning for Hindsight Rationality in
Extensive-Form Games" (2021), section 5.
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
# No infoset and no memory.
NONE = -1
_MOST_REGRETS = 1 << 26


class Deviations(NamedTuple):
  """A set of deviations: with which memories those at an infoset are external, and with which internal."""

  external: tuple[str, ...] = ()
  internal: tuple[str, ...] = ()


DEVIATIONS: Mapping[str, Deviations] = FrozenMapping(
  {
    "blind action": Deviations(external=(FOLLOWED,)),
    "informed action": Deviations(internal=(FOLLOWED,)),
    "blind counterfactual": Deviations(external=(FORCED,)),
    "informed counterfactual": Deviations(internal=(FORCED,)),
    "blind partial sequence": Deviations(external=(PARTIAL, FOLLOWED)),
    "counterfactual partial sequence": Deviations(internal=(PARTIAL, FOLLOWED)),
    "causal partial sequence": Deviations(external=(PARTIAL, TRIGGERED), internal=(FOLLOWED,)),
    "twice informed partial sequence": Deviations(internal=(PARTIAL, TRIGGERED, FOLLOWED)),
    "behavioural": Deviations(internal=(RECALLED,)),
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
  """Returns the name in `DEVIATIONS` of what may be one of OpenSpiel's names.

  Raises:
    ArgumentError: there is no such set.
  """
  name = _SHORT.get(deviations, deviations) if isinstance(deviations, str) else deviations
  arguments.one_of(name, "deviations", tuple(DEVIATIONS))
  return name


class Memories(NamedTuple):
  """The memories of all infosets, and where regrets are kept.

  Infosets are in layout order, of all players end to end. A node is something that has a probability: node s below
  `CompiledGame.end` is sequence s, and nodes from there on are lists of actions that are no sequence.

  Attributes:
    begin: the first memory of each infoset, and one past the last of all; shape (infosets + 1,).
    node: whose probability a memory has, shape (memories,).
    internal: 1 if a memory's deviations are internal, 0 if they are external: an infoset has the latter first.
    offset: where the regrets of a memory begin, and one past the last; shape (memories + 1,). External: one for each
      action. Internal: one for each action that is recommended and each that is played.
    above: the memory of the infoset above that has the same node, or `NONE`, shape (memories,).
    trigger: the action at the infoset above that a memory without such a one ends with, or `NONE`, shape (memories,).
    infoset_above: the infoset above each, or `NONE`, shape (infosets,).
    action_above: the action there that leads to it, shape (infosets,).
    sequence_above: the sequence that this is, shape (infosets,).
    list_begin: the first list that ends at each infoset, shape (infosets + 1,).
    list_parent: the node that a list is without its last action, shape (lists,).
    list_played: the sequence that it ends with, shape (lists,).
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
  """Lays out the memories of a set in `DEVIATIONS`.

  Raises:
    GameTooLargeError: there would be more than 2^26 regrets.
  """
  chosen = DEVIATIONS[name]
  layout = _Layout(game, name)
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
  # What a memory has become, when those that the set has no use for are left out.
  place = np.append(np.where(kept, np.cumsum(kept) - 1, NONE), NONE)
  actions = np.array([len(each) for each in layout.sequences], np.int64)[owner]
  sizes = np.where(internal, actions**2, actions)[kept]
  _check_size(game, name, sizes.sum())
  return Memories(
    begin=np.searchsorted(owner[kept], np.arange(game.num_infosets + 1)),
    node=node[kept],
    internal=internal[kept].astype(np.int64),
    offset=np.append(0, np.cumsum(sizes)),
    above=place[above[kept]],
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
      f"The {name} deviations of {game} have more than {_MOST_REGRETS:,} regrets. Take a smaller set, such as "
      "'blind partial sequence'."
    )


class _Memory(NamedTuple):
  """A memory at an infoset.

  Attributes:
    node: the node whose probability is that of the memory, see `Memories.node`.
    above: the memory at the infoset above from which it comes, or `NONE`, see `Memories.above`.
    trigger: the recommended action of the infoset above with which the memory ends; `NONE` if there is one above.
    is_triggered: 1 if it ends with a recommendation that was not followed, otherwise 0.
  """

  node: int
  above: int
  trigger: int
  is_triggered: int


class _Layout:
  """Memories of all infosets, one after the other, as lists that grow; see `Memories` for other names.

  Attributes:
    sequences: of each infoset's actions.
    rows: the memories.
  """

  def __init__(self, game: CompiledGame, name: str) -> None:
    self._end, self.sequences = game.end, list[list[int]]()
    # The infoset and the action of each sequence.
    owner, action = np.full((2, game.end), NONE)
    for tree in game.treeplexes:
      for own, _ in tree.infoset_groups():
        owner[own] = len(self.sequences) + np.arange(own.shape[1])
        action[own] = np.arange(len(own))[:, None]
        self.sequences += own.T.tolist()
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
      # Each leads to some regrets.
      _check_size(game, name, 4 * (len(self.rows) + len(self.list_parent)))

  def _add_sequences(self, infoset: int, up: int, with_triggers: bool) -> None:
    """Adds the memories of the infoset above, and last that of its recommendation."""
    own, last = int(self.sequence_above[infoset]), int(self.action_above[infoset])
    if up != NONE:
      self.rows += [
        self.rows[memory]._replace(above=memory, trigger=NONE)
        for memory in range(self.begin[up], self.begin[up + 1])
      ]
    if up != NONE and with_triggers:
      self.rows += [
        _Memory(sequence, NONE, action, 1)
        for action, sequence in enumerate(self.sequences[up])
        if sequence != own
      ]
    self.rows.append(_Memory(own, NONE, last, 0))

  def _add_lists(self, infoset: int, up: int, is_inner: bool) -> None:
    """Adds a memory for each list of actions above an infoset."""
    before = [int(self.sequence_above[infoset])]
    if up != NONE:
      first, last = self.list_begin[up : up + 2]
      before = list(range(self._end + first, self._end + last))
    self.rows += [_Memory(node, NONE, NONE, 0) for node in before]
    if is_inner:
      for node in before:
        self.list_parent += [node] * len(self.sequences[infoset])
        self.list_played += self.sequences[infoset]
