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

import dataclasses
import functools
import hashlib
import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.abstraction.buckets import AnyBuckets, Buckets, make_buckets, shared_entries
from spiel_cfr.abstraction.hand_buckets import BucketedHands, HandBuckets, check_whole_public_game
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame
from spiel_cfr.games.compiling import lay_out
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.payoffs.build_payoff import merged_leaves
from spiel_cfr.games.payoffs.payoff import Payoff
from spiel_cfr.games.sequence_form.shared_infosets import SharedInfosets, build_shared_infosets
from spiel_cfr.policies import CompiledTabularPolicy, forms, open_spiel


class AbstractGame(EnumeratedGame):
  """A smaller game that stands for a larger one. Make one with `abstract`.

  It names the infosets of the full game, several of which have the same sequences here, so that solvers hand out
  policies of the full game.

  Attributes:
    full: the game that it stands for.
    buckets: which of that game's infosets play alike.
  """

  def __init__(self, full: CompiledGame, buckets: Buckets) -> None:
    """Merges infosets and leaves.

    Raises:
      ImperfectRecallError: a bucket is above itself.
      UnsupportedGameError: the full game is in vector form, or an abstraction itself.
    """
    if not isinstance(full, EnumeratedGame) or isinstance(full, AbstractGame):
      raise errors.UnsupportedGameError(
        f"{full} lists no leaves of its own to merge. Give compile_game(game, vector_form=False), without symmetries; "
        "in vector form, hand_buckets."
      )
    self.full, self.buckets = full, buckets
    self._merged = [_merge(full, buckets, player) for player in range(full.num_players)]
    number = np.zeros(full.end, np.uint32)
    self._copies = np.ones(full.end)
    for own in self._merged:
      number[own.sequences] = own.numbers
      self._copies[own.sequences] = own.copies
    placements, payoff = lay_out(
      [own.parents for own in self._merged],
      [own.num_actions for own in self._merged],
      *merged_leaves(full.payoff, full.num_players, number, self._copies),
    )
    self._sequences = np.zeros(full.end, np.int64)
    for own, placed in zip(self._merged, placements, strict=True):
      self._sequences[own.sequences] = placed.sequences[own.numbers]
    super().__init__(
      game_string=full.game_string,
      open_spiel_version=full.open_spiel_version,
      treeplexes=tuple(placed.treeplex for placed in placements),
      infosets=tuple(
        dataclasses.replace(
          known,
          position=placed.position[own.infosets],
          first_sequence=placed.first_sequence[own.infosets],
          stride=placed.stride[own.infosets],
        )
        for known, own, placed in zip(full.infosets, self._merged, placements, strict=True)
      ),
      payoff=payoff,
      num_distinct_actions=full.num_distinct_actions,
      payoff_range=full.payoff_range,
      constant_sum=full.constant_sum,
      num_states=full.num_states,
      num_terminals=full.num_terminals,
    )
    # The bucket of each infoset, in layout order.
    self._bucket = [np.empty(len(own.labels), np.int64) for own in self._merged]
    for bucket, own, placed in zip(self._bucket, self._merged, placements, strict=True):
      bucket[placed.position] = own.labels
    self._shared_infosets = self._find_shared_infosets()

  def _find_shared_infosets(self) -> SharedInfosets | None:
    bucket, most = np.full(self.end, -1), 0
    for treeplex, own in zip(self.treeplexes, self._bucket, strict=True):
      for sequences, infosets in treeplex.blocks():
        bucket[sequences] = own[infosets] + (1 + own.max()) * np.arange(len(sequences))[:, None]
      most = max(most, len(own) - len(np.unique(own)))
    if not most:
      return None
    groups = [treeplex.groups for treeplex in self.treeplexes]
    return build_shared_infosets(groups, bucket)

  @functools.cached_property
  def view(self) -> GameView:
    """How the full game was walked."""
    return self.full.view

  def first_states(self) -> list[Any]:
    """Returns the full game's."""
    return self.full.first_states()

  @property
  def shared_infosets(self) -> SharedInfosets | None:
    """Which sequences share a bucket that their owner forgets how it came to; None where none do."""
    return self._shared_infosets

  @property
  def original(self) -> CompiledGame:
    """The full game."""
    return self.full

  @property
  def is_exact(self) -> bool:
    """Whether the buckets lose nothing."""
    return self.buckets.is_lossless

  def refined_buckets(self) -> Buckets:
    """Returns buckets of perfect recall: infosets stay together if their owner came to them in the same way too."""
    return Buckets(
      tuple(own.infosets for own in self._merged), self.buckets.slots, self.buckets.is_lossless
    )

  @property
  def num_buckets(self) -> int:
    """How many strategies there are to choose: infosets, shared ones counting as one."""
    return sum(len(np.unique(own)) for own in self._bucket)

  @property
  def size(self) -> str:
    """Infosets here, and in the full game."""
    buckets = f"{self.num_buckets:,} buckets" if self.shared_infosets else "infosets"
    merged = " + ".join(f"{treeplex.num_infosets:,}" for treeplex in self.treeplexes)
    return f"{merged} {buckets if not self.shared_infosets else f'infosets in {buckets}'} for {self.full.size}"

  def to_original(self, sequence_form: Float64s) -> Float64s:
    """Shares out what is played among the sequences of the full game that play alike."""
    result = np.zeros(self.full.end)
    for own in self._merged:
      result[own.sequences] = sequence_form[self._sequences[own.sequences]] / own.copies
    return result

  def to_actions(self, probabilities: Float64s) -> Float64s:
    """Returns the probability of every entry of `actions`; actions that are one share theirs equally."""
    result: Float64s = probabilities[self.all_action_sequences] / self._alike
    return result

  def from_actions(self, entries: Float64s) -> Float64s:
    """Returns behavioural form: of infosets that play alike, what the first of them does."""
    cells = self._first_cells
    sums = np.bincount(self.all_action_sequences[cells], entries[cells], self.end)
    return sums.astype(np.float64, copy=False)

  @functools.cached_property
  def _first_cells(self) -> Int64s:
    """The entries of `actions` at the first of each of the infosets that are one."""
    result, begin = [np.zeros(0, np.int64)], 0
    for own, merged in zip(self.full.infosets, self._merged, strict=True):
      first = np.zeros(len(own.num_actions), bool)
      first[np.unique(merged.infosets, return_index=True)[1]] = True
      result.append(begin + np.flatnonzero(np.repeat(first, own.num_actions)))
      begin += len(own.actions)
    return np.concatenate(result)

  @functools.cached_property
  def all_action_sequences(self) -> Int64s:
    """For every entry of the full game's `actions`, the sequence here."""
    return self._sequences[self.full.all_action_sequences]

  @functools.cached_property
  def _alike(self) -> Float64s:
    """For every entry of `actions`, how many of its infoset's actions are the same to everybody."""
    return np.concatenate([own.alike for own in self._merged])

  @functools.cached_property
  def shared_entries(self) -> Int64s:
    """For every entry of `actions`, the number of its bucket's action."""
    return shared_entries(self.full.infosets, self.buckets)

  def lift(
    self, policy: open_spiel.AnyPolicy, *, per_bucket: bool = False
  ) -> CompiledTabularPolicy:
    """Returns a policy as one of the full game, which stays as it is when the solver goes on.

    Args:
      policy: what a solver of this game hands out, or any policy that is the same wherever infosets play alike.
      per_bucket: whether shared infosets play the mean of what they play, by how often their owner plays to
        them; then it is a policy of somebody who remembers no more than buckets. Otherwise infosets play alike if their
        owner has come to them in the same way too, as in the averages for which there are theorems.

    Raises:
      PolicyError: the policy is for another game, or infosets that play alike do not.
    """
    probabilities = open_spiel.from_policy(self, policy)
    if per_bucket and self.shared_infosets is not None:
      probabilities = forms.shared_strategy(
        self, forms.sequence_form(self, probabilities), probabilities
      )
    return CompiledTabularPolicy(self.full, self.full.from_actions(self.to_actions(probabilities)))

  @functools.cached_property
  def digest(self) -> str:
    """Of the full game and its buckets."""
    digest = hashlib.sha256(self.full.digest.encode())
    for array in (*self.buckets.labels, *self.buckets.slots):
      digest.update(array.tobytes())
    return digest.hexdigest()

  def save(self, path: str | os.PathLike[str]) -> None:
    """Does not save.

    Raises:
      UnsupportedGameError: always.
    """
    raise errors.UnsupportedGameError(
      "An abstraction is not saved: save the full game and its buckets, and call abstract again."
    )

  def with_payoff(self, payoff: Payoff, **other: Any) -> EnumeratedGame:
    """Does not take other payoffs.

    Raises:
      UnsupportedGameError: always.
    """
    raise errors.UnsupportedGameError(
      "An abstraction has the payoffs of its full game: call abstract(full.with_payoff(...), buckets)."
    )


@dataclasses.dataclass(frozen=True, eq=False)
class _Merged:
  """A player's infosets after refinement.

  Attributes:
    sequences: in the full game, the empty one first, then in order of discovery.
    numbers: where they go, in the order of discovery here.
    copies: how many sequences of the full game one stands for that play alike at the same infosets.
    alike: how many actions of its infoset play as each action does.
    infosets: where the full game's infosets go.
    parents: of each infoset here, as `build_treeplex` takes them.
    num_actions: of each infoset here.
    labels: the bucket of each infoset here.
  """

  sequences: Int64s
  numbers: Int64s
  copies: Float64s
  alike: Float64s
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
    alike,
    infosets,
    np.array(parents, np.int64),
    np.array(num_actions, np.int64),
    np.array(known, np.int64),
  )


def abstract(
  game: CompiledGame,
  buckets: AnyBuckets | HandBuckets,
  players: Iterable[int] | None = None,
  *,
  of_states: bool = False,
) -> AbstractGame | BucketedHands:
  """Returns the game in which infosets of a bucket play alike.

      small = abstract(game, lambda infostate: infostate.replace("private:2", "private:3"))
      solver = DCFRSolver(small)

  Args:
    game: a compiled game that lists its leaves; or poker in vector form, for buckets of hands.
    buckets: see `make_buckets`; also what `lossless` and `hand_buckets` return.
    players: whose infosets are put into buckets; all players' by default. With one of two players, the other keeps all
      that it knows.
    of_states: see `make_buckets`.

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
    return BucketedHands(whole, buckets if players is None else buckets.only(whole, players))
  made = make_buckets(game, buckets, of_states=of_states)
  return AbstractGame(game, made if players is None else made.only(game, players))
