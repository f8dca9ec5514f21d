"""Abstract games: smaller games in which the infosets of a bucket share a strategy, made from a game's arrays.

An abstract game is made in two steps, without histories:

1. Split buckets. Each bucket is split by the buckets and actions through which its player came to the infosets. A split
   bucket is one infoset of the abstract game. Leaves with the same sequences are merged too. The abstract game is
   smaller than the full game and has perfect recall, and any solver takes it.
2. Shared infosets. If a player forgets, one bucket is split into several infosets. They share strategies and regrets,
   see `games.sequence_form.shared_infosets`. Lanctot et al., "No-Regret Learning in Extensive-Form Games with Imperfect
   Recall" (2012), bound regrets by the same split game.

Several actions of an infoset may be merged too. The *multiplicity* m(s) of a sequence s of the full game is the product
of the numbers of merged actions along s. Let X be a strategy of the abstraction in sequence form. A sequence of the
full game that becomes s then has probability X(s) / m(s). A payoff of the abstraction is the sum over merged leaves,
divided by the multiplicities of all players.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s, range_starts
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.abstraction.buckets import AnyBuckets, Buckets, make_buckets
from spiel_cfr.abstraction.hand_buckets import HandBuckets, check_whole_public_game, merge_hands
from spiel_cfr.games.compiled.abstraction_map import AbstractionMap, count_alike
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame, lay_out_arrays, listed_game
from spiel_cfr.games.compiled.infosets import Infosets
from spiel_cfr.games.payoffs.build_payoff import merged_leaves
from spiel_cfr.games.sequence_form.shared_infosets import SharedInfosets, build_shared_infosets
from spiel_cfr.games.sequence_form.treeplex import Treeplex
from spiel_cfr.poker.public_game import PublicGame
from spiel_cfr.policies import CompiledTabularPolicy, open_spiel

# The end of the message on games that do not list their leaves.
ADVICE = "For poker in vector form, use hand_buckets, or compile_public_game with merge_suits=True."


def abstract(
  game: CompiledGame, buckets: AnyBuckets | HandBuckets, players: Iterable[int] | None = None
) -> EnumeratedGame | PublicGame:
  """Returns the smaller game in which the infosets of a bucket share a strategy.

      small = abstract(game, lambda infostate: infostate.replace("private:2", "private:3"))
      solver = DCFRSolver(small)

  The abstraction has the infosets of its `original` by name, and merged infosets have the same sequences. Policies of
  its solvers are therefore policies of the original game.

  Args:
    game: a compiled game that lists its leaves; or poker in vector form, for buckets of hands.
    buckets: a function from infostate strings to names of buckets; or a mapping from infostates to such names. Infosets
      that are missing in the mapping stay single. A name is any hashable object. Names of different players are
      unrelated. Or `Buckets`, such as a result of `cluster`; for poker in vector form, a result of `hand_buckets`.
    players: the players whose infosets are put into buckets; None for all. The other players keep all of their
      information.

  Raises:
    ArgumentError: `buckets` is neither a function nor a mapping, or a name is not hashable; or a player does not exist.
    AbstractionError: infosets of a bucket have different actions, a mapping names an infostate that does not exist, or
      the buckets belong to another game.
    ImperfectRecallError: an infoset is below another infoset of its bucket.
    UnsupportedGameError: the game is in vector form and the buckets are not `HandBuckets`, or the game is an
      abstraction.
  """
  if not isinstance(game, CompiledGame):
    raise errors.ArgumentError(f"game must be a result of compile_game, not {game!r}.")
  if isinstance(buckets, HandBuckets):
    full = check_whole_public_game(game)
    return merge_hands(full, buckets if players is None else buckets.only(full, players))
  listed = listed_game(game, ADVICE)
  all_buckets = make_buckets(listed, buckets)
  return merge_infosets(
    listed, all_buckets if players is None else all_buckets.only(listed, players)
  )


@typed
def lift(game: CompiledGame, policy: open_spiel.AnyPolicy) -> CompiledTabularPolicy:
  """Returns a policy of an abstraction as a policy of its original game, which does not change with the solver.

  Args:
    game: the result of `abstract`.
    policy: a policy of a solver of this game, or any policy that is the same at merged infosets. Averages at shared
      infosets are the same only if the player reached the infosets in the same way.

  Raises:
    PolicyError: the policy is for another game, or differs at merged infosets.
  """
  probabilities = open_spiel.from_policy(game, policy)
  full = game.original
  return CompiledTabularPolicy(full, full.from_actions(game.to_actions(probabilities)))


def merge_infosets(full: EnumeratedGame, buckets: Buckets) -> EnumeratedGame:
  """Returns the abstraction of a game by buckets of all players."""
  splits = [_split(full, buckets, player) for player in range(full.num_players)]
  number, multiplicity = np.zeros((2, full.end), np.uint32)
  for split in splits:
    number[split.sequences] = split.numbers
    multiplicity[split.sequences] = split.multiplicity
  placements, payoff = lay_out_arrays(
    [split.parents for split in splits],
    [split.num_actions for split in splits],
    *merged_leaves(full.payoff, full.num_players, number, np.maximum(multiplicity, 1.0)),
  )
  sequences = np.zeros(full.end, np.uint32)
  labels, infosets = [], []
  for original, split, placement in zip(full.infosets, splits, placements, strict=True):
    sequences[split.sequences] = placement.sequences[split.numbers]
    labels.append(np.empty_like(split.labels))
    labels[-1][placement.position] = split.labels
    infosets.append(
      Infosets(
        original.infostates,
        original.actions,
        original.num_actions,
        sequences[original.sequences],
        placement.position[split.infosets],
      )
    )
  treeplexes = tuple(placement.treeplex for placement in placements)
  shared = _share_infosets(treeplexes, labels)
  return EnumeratedGame(
    full.facts,
    treeplexes,
    tuple(infosets),
    payoff,
    original=full,
    map_from_original=AbstractionMap(sequences, multiplicity, buckets.is_lossless, shared),
  )


def _share_infosets(
  treeplexes: Sequence[Treeplex], labels: Sequence[Int64s]
) -> SharedInfosets | None:
  """Returns the infosets that share a strategy; None if all buckets have one infoset.

  Args:
    treeplexes: the players' treeplexes in the abstract game.
    labels: for each player, the bucket of each infoset of the abstract game, in layout order.
  """
  if all(len(labels_of_player) == len(np.unique(labels_of_player)) for labels_of_player in labels):
    return None
  bucket = np.full(treeplexes[-1].end, -1)
  for treeplex, label in zip(treeplexes, labels, strict=True):
    for sequences, infosets in treeplex.infoset_groups():
      bucket[sequences] = label[infosets] + (1 + label.max()) * np.arange(len(sequences))[:, None]
  return build_shared_infosets([treeplex.groups for treeplex in treeplexes], bucket)


class _SplitBuckets(NamedTuple):
  """A player's split buckets, which are the infosets of the abstract game, and the map from the full game to them.

  Attributes:
    sequences: int64 (sequences of the full game,). The index of each sequence of the full game in solvers' arrays: the
      empty sequence, then the others in order of discovery.
    numbers: int64 (sequences of the full game,). The abstract game's sequence that each sequence becomes, numbered in
      the abstract game's order of discovery.
    multiplicity: float64 (sequences of the full game,). The number m(s) of each sequence, see the module.
    infosets: int64 (infosets of the full game,). The split bucket of each infoset.
    parents: int64 (split buckets,). The sequence above each split bucket, as `build_treeplexes` takes it.
    num_actions: int64 (split buckets,). The number of actions of each split bucket.
    labels: int64 (split buckets,). The bucket that each split bucket is a part of.
  """

  sequences: Int64s
  numbers: Int64s
  multiplicity: Float64s
  infosets: Int64s
  parents: Int64s
  num_actions: Int64s
  labels: Int64s


def _split(full: CompiledGame, buckets: Buckets, player: int) -> _SplitBuckets:
  """Splits a player's buckets by the player's past.

  Raises:
    ImperfectRecallError: an infoset is below another infoset of its bucket.
  """
  original, tree = full.infosets[player], full.treeplexes[player]
  # From here on, sequences are numbered in order of discovery; 0 is the empty sequence.
  sequences = original.sequences.astype(np.int64)
  number = np.zeros(tree.end, np.int64)
  number[sequences] = np.arange(len(sequences))
  parents = number[tree.parent[original.position]]
  labels, action_labels = buckets.labels[player], buckets.action_labels[player]
  infoset_of_action = np.repeat(np.arange(len(labels)), original.num_actions)
  # The last infoset before each infoset, and the label of the action there; -1 and 0 if there is none.
  infoset_above = np.append(-1, infoset_of_action)[parents]
  action_above = np.append(0, action_labels)[parents]

  # (bucket, split bucket above, label of the action there) -> split bucket, in order of discovery.
  split: dict[tuple[int, int, int], int] = {}
  infosets_so_far: list[int] = []
  for label, above, action_label in zip(
    labels.tolist(), infoset_above.tolist(), action_above.tolist(), strict=True
  ):
    key = label, infosets_so_far[above] if above >= 0 else -1, action_label
    infosets_so_far.append(split.setdefault(key, len(split)))
  infosets = np.array(infosets_so_far, np.int64)
  # The first infoset of the full game in each split bucket.
  first_infoset = np.unique(infosets, return_index=True)[1]
  split_labels, split_above, split_action_above = np.array(list(split), np.int64).reshape(-1, 3).T
  forgetful = _find_below_own_bucket(split_labels, split_above)
  if forgetful is not None:
    name = original.infostates[first_infoset[forgetful]]
    raise errors.ImperfectRecallError(
      f"Player {player} comes to infostate {name!r} by way of another one of the same bucket. They are before and "
      "after an action of its own and can't play alike: give them different buckets, for example by the number of "
      "own actions."
    )
  num_different = np.zeros(len(labels), np.int64)
  np.maximum.at(num_different, infoset_of_action, action_labels + 1)
  num_actions = num_different[first_infoset]
  first_sequences = 1 + range_starts(num_actions)
  return _SplitBuckets(
    sequences,
    np.append(0, first_sequences[infosets][infoset_of_action] + action_labels),
    _multiplicity(original.num_actions, action_labels, parents),
    infosets,
    np.where(split_above >= 0, first_sequences[split_above] + split_action_above, 0),
    num_actions,
    split_labels,
  )


def _find_below_own_bucket(labels: Int64s, above: Int64s) -> int | None:
  """Returns an infoset that is below another infoset of its bucket; None if there is none.

  Args:
    labels: shape (infosets,). The bucket of each infoset.
    above: shape (infosets,). The player's infoset above each infoset, or -1.
  """
  ancestors = above
  while (ancestors >= 0).any():
    is_same = (ancestors >= 0) & (labels[ancestors] == labels)
    if is_same.any():
      return int(is_same.argmax())
    ancestors = np.where(ancestors >= 0, above[ancestors], -1)
  return None


def _multiplicity(num_actions: Int64s, action_labels: Int64s, parents: Int64s) -> Float64s:
  """Returns the multiplicity m of each sequence of a player, in order of discovery.

  It is the product, over the actions of the sequence, of the number of actions of the infoset with the same label.

  Args:
    num_actions: shape (infosets,). The number of actions of each infoset.
    action_labels: shape (actions,). The label of each action.
    parents: shape (infosets,). The sequence above each infoset.
  """
  num_merged, result = count_alike(action_labels, num_actions), np.ones(1 + len(action_labels))
  if (num_merged > 1).any():
    ends = np.cumsum(num_actions)
    for parent, begin, end in zip(parents, ends - num_actions, ends, strict=True):
      result[1 + begin : 1 + end] = result[parent] * num_merged[begin:end]
  return result
