"""A game whose infosets are buckets of a larger game's infosets, in two steps that need no history.

1. Refinement. Infosets become one if they are in the same bucket and their owner came to them by the same buckets and
   actions. What comes of that has perfect recall, and leaves with the same sequences merge; it is smaller than the full
   game, and any solver takes it as it takes others.
2. Shared infosets. Where several of these infosets are in one bucket because their owner forgets, they share
   strategies and regrets, see `games.sequence_form.shared_infosets`. Lanctot et al., "No-Regret Learning in
   Extensive-Form Games with Imperfect Recall" (2012), bound regrets in terms of the same refinement.

With X the sequence form here and m(s) the number of the full game's actions that play alike on the way to s, each of
these sequences has X(s) / m(s) in the full game, and payoffs here are sums over leaves of theirs divided by all m.
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

  It names the infosets of the game that it stands for, its `original`, several of which have the same sequences here,
  so that solvers hand out policies of that game.

  Args:
    game: a compiled game that lists its leaves; or poker in vector form, for buckets of hands.
    buckets: see `make_buckets`; also what `lossless` and `hand_buckets` return.
    players: whose infosets are put into buckets; all players' by default. With one of two players, the other keeps all
      that it knows.

  Raises:
    ArgumentError: see `make_buckets`; or there is no such player.
    AbstractionError: see `make_buckets`.
    ImperfectRecallError: a bucket is above itself.
    UnsupportedGameError: the game is in vector form and the buckets are not of hands, or it is an abstraction itself.
  """
  if not isinstance(game, CompiledGame):
    raise errors.ArgumentError(f"Give what compile_game returns, not {game!r}.")
  if isinstance(buckets, HandBuckets):
    whole = check_whole_public_game(game)
    return merge_hands(whole, buckets if players is None else buckets.only(whole, players))
  if not isinstance(game, EnumeratedGame) or game.original is not game:
    raise errors.UnsupportedGameError(
      f"{game} lists no leaves of its own to merge. Give compile_game(game, vector_form=False), without symmetries; "
      "in vector form, hand_buckets."
    )
  made = make_buckets(game, buckets)
  return _merge_infosets(game, made if players is None else made.only(game, players))


@typed
def lift(game: CompiledGame, policy: open_spiel.AnyPolicy) -> CompiledTabularPolicy:
  """Returns a policy of an abstraction as one of its original game, which stays as it is when the solver goes on.

  Args:
    game: what `abstract` returns.
    policy: what a solver of this game hands out, or any policy that is the same wherever infosets play alike. Averages
      of shared infosets are alike only where their owner has come to them in the same way.

  Raises:
    PolicyError: the policy is for another game, or infosets that play alike do not.
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
        known.infostates, known.actions, known.num_actions, *(each[own.infosets] for each in places)
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
  """Returns which sequences share a bucket; `labels` are each player's buckets in layout order."""
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
    sequences: in the full game, the empty one first, then in order of discovery.
    numbers: where they go, in the order of discovery here.
    copies: how many sequences of the full game one stands for that play alike at the same infosets.
    infosets: where the full game's infosets go.
    parents: of each infoset here, as `build_treeplex` takes them.
    num_actions: of each infoset here.
    labels: the bucket of each infoset here.
  """

  sequences: Int64s
  numbers: Int64s
  copies: Float64s
  infosets: Int64s
  parents: Int64s
  num_actions: Int64s
  labels: Int64s


def _merge(full: CompiledGame, buckets: Buckets, player: int) -> _Merged:
  own, tree = full.infosets[player], full.treeplexes[player]
  begin = sum(len(each.actions) for each in full.infosets[:player])
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

  # Plain lists are several times faster here than arrays.
  above = place[tree.parent[own.position]].tolist()
  slot, owner = slots.tolist(), infoset.tolist()
  table: dict[tuple[int, int], int] = {}
  merged: list[int] = []
  parents: list[int] = []
  firsts: list[int] = []
  num_actions: list[int] = []
  known: list[int] = []
  upper: list[int] = []
  end = 1
  for label, parent, width in zip(labels.tolist(), above, widths.tolist(), strict=True):
    parent_class = merged[owner[parent - 1]] if parent else -1
    number = firsts[parent_class] + slot[parent - 1] if parent else 0
    found = table.setdefault((label, number), len(table))
    if found == len(parents):
      each = parent_class
      while each >= 0:
        if known[each] == label:
          name = own.infostates[len(merged)]
          raise errors.ImperfectRecallError(
            f"Player {player} comes to infostate {name!r} by way of another one of the same bucket: nobody can play "
            "alike before and after an own action. Give them different buckets, by the number of own actions, say."
          )
        each = upper[each]
      parents.append(number)
      firsts.append(end)
      num_actions.append(width)
      known.append(label)
      upper.append(parent_class)
      end += width
    merged.append(found)
  infosets = np.array(merged, np.int64)
  first = np.array(firsts, np.int64)
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
    np.array(parents, np.int64),
    np.array(num_actions, np.int64),
    np.array(known, np.int64),
  )
