"""Abstract games: games whose infosets are buckets of a larger game's infosets, made without histories.

1. Refinement. Infosets become one if they are in the same bucket and their owner reached them by the same buckets and
   actions. The result has perfect recall, and leaves with the same sequences are merged. It is smaller than the full
   game, and any solver takes it.
2. Shared infosets. If several of these infosets are in one bucket, because their owner forgets, they share strategies
   and regrets, see `games.sequence_form.shared_infosets`. Lanctot et al., "No-Regret Learning in Extensive-Form Games
   with Imperfect Recall" (2012), bound regrets by the same refinement.

Let X be a sequence form of the abstraction, and m(s) the number of the full game's actions that play alike on the way
to s. Then each of these sequences has X(s) / m(s) in the full game. Payoffs of the abstraction are sums over its leaves
in the full game, divided by all m.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._util.doors import typed
from spiel_cfr.abstraction.buckets import AnyBuckets, Buckets, make_buckets
from spiel_cfr.abstraction.hand_buckets import HandBuckets, check_whole_public_game, merge_hands
from spiel_cfr.games.compiled.abstraction_map import AbstractionMap
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame
from spiel_cfr.games.compiled.from_arrays import lay_out
from spiel_cfr.games.compiled.infosets import Infosets
from spiel_cfr.games.payoffs.build_payoff import merged_leaves
from spiel_cfr.games.sequence_form.shared_infosets import SharedInfosets, build_shared_infosets
from spiel_cfr.games.sequence_form.treeplex import Treeplex
from spiel_cfr.poker.public_game import PublicGame
from spiel_cfr.policies import CompiledTabularPolicy, open_spiel


def abstract(
  game: CompiledGame, buckets: AnyBuckets | HandBuckets, players: Iterable[int] | None = None
) -> EnumeratedGame | PublicGame:
  """Returns the game in which infosets of a bucket play alike.

      small = abstract(game, lambda infostate: infostate.replace("private:2", "private:3"))
      solver = DCFRSolver(small)

  The abstraction has the infosets of its `original` by name, several of them with the same sequences. Policies of its
  solvers are therefore policies of the original game.

  Args:
    game: a compiled game that lists its leaves; or poker in vector form, for buckets of hands.
    buckets: see `make_buckets`; also the results of `lossless` and `hand_buckets`.
    players: the players whose infosets are put into buckets; by default, all. The others keep all of their information.

  Raises:
    ArgumentError: see `make_buckets`; or a player does not exist.
    AbstractionError: see `make_buckets`.
    ImperfectRecallError: an infoset is below another one of its bucket.
    UnsupportedGameError: the game is in vector form and the buckets are not of hands, or it is an abstraction itself.
  """
  if not isinstance(game, CompiledGame):
    raise errors.ArgumentError(f"game must be a result of compile_game, not {game!r}.")
  if isinstance(buckets, HandBuckets):
    whole = check_whole_public_game(game)
    return merge_hands(whole, buckets if players is None else buckets.only(whole, players))
  if not isinstance(game, EnumeratedGame) or game.original is not game:
    raise errors.UnsupportedGameError(
      f"{game} lists no leaves of its own to merge. Pass compile_game(game, vector_form=False), without symmetries; "
      "in vector form, hand_buckets."
    )
  made = make_buckets(game, buckets)
  return _merge_infosets(game, made if players is None else made.only(game, players))


@typed
def lift(game: CompiledGame, policy: open_spiel.AnyPolicy) -> CompiledTabularPolicy:
  """Returns a policy of an abstraction as a policy of its original game, which does not change with the solver.

  Args:
    game: the result of `abstract`.
    policy: a policy of a solver of this game, or any policy that is the same at infosets that play alike. Averages at
      shared infosets are the same only if their owner reached them in the same way.

  Raises:
    PolicyError: the policy is for another game, or differs at infosets that play alike.
  """
  probabilities = open_spiel.from_policy(game, policy)
  full = game.original
  return CompiledTabularPolicy(full, full.from_actions(game.to_actions(probabilities)))


def _merge_infosets(full: EnumeratedGame, buckets: Buckets) -> EnumeratedGame:
  merged = [_merge(full, buckets, player) for player in range(full.num_players)]
  number, copies = np.zeros((2, full.end), np.uint32)
  for own in merged:
    number[own.sequences] = own.numbers
    copies[own.sequences] = own.copies
  placements, payoff = lay_out(
    [own.parents for own in merged],
    [own.num_actions for own in merged],
    *merged_leaves(full.payoff, full.num_players, number, np.maximum(copies, 1.0)),
  )
  sequences = np.zeros(full.end, np.uint32)
  labels, infosets = [], []
  for known, own, placed in zip(full.infosets, merged, placements, strict=True):
    sequences[own.sequences] = placed.sequences[own.numbers]
    labels.append(np.empty_like(own.labels))
    labels[-1][placed.position] = own.labels
    places = (placed.position, placed.first_sequence, placed.stride)
    infosets.append(
      Infosets(
        known.infostates,
        known.actions,
        known.num_actions,
        *(array[own.infosets] for array in places),
      )
    )
  treeplexes = tuple(placed.treeplex for placed in placements)
  shared = _share_infosets(treeplexes, labels)
  return EnumeratedGame(
    full.facts,
    treeplexes,
    tuple(infosets),
    payoff,
    original=full,
    map_from_original=AbstractionMap(sequences, copies, buckets.is_lossless, shared),
  )


def _share_infosets(
  treeplexes: Sequence[Treeplex], labels: Sequence[Int64s]
) -> SharedInfosets | None:
  """Returns the sequences that share a bucket; `labels` are each player's buckets in layout order."""
  if all(len(own) == len(np.unique(own)) for own in labels):
    return None
  bucket = np.full(treeplexes[-1].end, -1)
  for treeplex, own in zip(treeplexes, labels, strict=True):
    for sequences, infosets in treeplex.infoset_groups():
      bucket[sequences] = own[infosets] + (1 + own.max()) * np.arange(len(sequences))[:, None]
  return build_shared_infosets([treeplex.groups for treeplex in treeplexes], bucket)


class _Merged(NamedTuple):
  """A player's infosets after refinement.

  Attributes:
    sequences: int64 (sequences of the full game,). The full game's sequences: the empty one, then in order of
      discovery.
    numbers: int64 (sequences of the full game,). The abstraction's sequence for each, in the abstraction's order of
      discovery.
    copies: float64 (sequences of the full game,). The number of sequences of the same infosets that play alike.
    infosets: int64 (infosets of the full game,). The abstraction's infoset for each.
    parents: int64 (infosets,). The sequence above each infoset of the abstraction, as `build_treeplex` takes it.
    num_actions: int64 (infosets,). The number of actions of each infoset of the abstraction.
    labels: int64 (infosets,). The bucket of each infoset of the abstraction.
  """

  sequences: Int64s
  numbers: Int64s
  copies: Float64s
  infosets: Int64s
  parents: Int64s
  num_actions: Int64s
  labels: Int64s


class _Refinement:
  """The infosets of an abstraction of one player, found in order of discovery.

  Lists are several times faster here than arrays.

  Attributes:
    infosets: the abstraction's infoset for each of the full game's infosets so far.
    parents: the sequence above each infoset of the abstraction.
    firsts: the first sequence of each.
    num_actions: the number of actions of each.
    labels: the bucket of each.
  """

  def __init__(self) -> None:
    self.infosets: list[int] = []
    self.parents: list[int] = []
    self.firsts: list[int] = []
    self.num_actions: list[int] = []
    self.labels: list[int] = []
    # The infoset of the abstraction above each, or -1.
    self._above: list[int] = []
    self._numbers: dict[tuple[int, int], int] = {}
    self._end = 1

  def add(self, label: int, num_actions: int, above: int, slot: int) -> bool:
    """Adds the full game's next infoset.

    Args:
      label: its bucket.
      num_actions: the number of its bucket's actions.
      above: the full game's infoset above it, or -1.
      slot: the action of that infoset's bucket that leads to it.

    Returns:
      Whether the infoset is not below another one of its bucket.
    """
    infoset_above = self.infosets[above] if above >= 0 else -1
    parent = self.firsts[infoset_above] + slot if above >= 0 else 0
    infoset = self._numbers.setdefault((label, parent), len(self._numbers))
    if infoset == len(self.parents):
      ancestor = infoset_above
      while ancestor >= 0:
        if self.labels[ancestor] == label:
          return False
        ancestor = self._above[ancestor]
      self.parents.append(parent)
      self.firsts.append(self._end)
      self.num_actions.append(num_actions)
      self.labels.append(label)
      self._above.append(infoset_above)
      self._end += num_actions
    self.infosets.append(infoset)
    return True


def _merge(full: CompiledGame, buckets: Buckets, player: int) -> _Merged:
  """Returns a player's infosets after refinement."""
  own, tree = full.infosets[player], full.treeplexes[player]
  begin = sum(len(infosets.actions) for infosets in full.infosets[:player])
  cells = full.all_action_sequences[begin : begin + len(own.actions)]
  sequences = np.append(np.array([tree.root]), cells)
  place = np.zeros(tree.end, np.int64)
  place[sequences] = np.arange(len(sequences))
  labels, slots = buckets.labels[player], buckets.slots[player]
  infoset = np.repeat(np.arange(len(labels)), own.num_actions)
  pairs = infoset * (1 + int(slots.max(initial=0))) + slots
  _, pair, counts = np.unique(pairs, return_inverse=True, return_counts=True)
  alike = counts[pair].astype(np.float64)
  widths = np.zeros(len(labels), np.int64)
  np.maximum.at(widths, infoset, slots + 1)

  # The sequence above each infoset, in order of discovery; its infoset and slot, -1 and 0 for the empty one.
  above = place[tree.parent[own.position]].tolist()
  infoset_of, slot_of = [-1, *infoset.tolist()], [0, *slots.tolist()]
  refined = _Refinement()
  for label, parent, width in zip(labels.tolist(), above, widths.tolist(), strict=True):
    if not refined.add(label, width, infoset_of[parent], slot_of[parent]):
      name = own.infostates[len(refined.infosets)]
      raise errors.ImperfectRecallError(
        f"Player {player} comes to infostate {name!r} by way of another one of the same bucket. They are before and "
        "after an action of its own and can't play alike: give them different buckets, for example by the number of "
        "own actions."
      )
  infosets = np.array(refined.infosets, np.int64)
  first = np.array(refined.firsts, np.int64)
  copies = np.ones(len(sequences))
  if (alike > 1).any():
    for index, parent in enumerate(above):
      here = slice(*np.searchsorted(infoset, [index, index + 1]).tolist())
      copies[1:][here] = copies[parent] * alike[here]
  return _Merged(
    sequences,
    np.append(0, first[infosets][infoset] + slots),
    copies,
    infosets,
    np.array(refined.parents, np.int64),
    np.array(refined.num_actions, np.int64),
    np.array(refined.labels, np.int64),
  )
