"""What a compiled game is to all who take one, whatever its form: enumerated, in vector form, or a user's own."""

import abc
import dataclasses
import functools
import itertools
import os
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pyspiel

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s, Uint16s, Uint32s, Uint64s, spread
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled import abstraction_map
from spiel_cfr.games.compiled.forced_moves import Decisions
from spiel_cfr.games.compiled.game_facts import GameFacts
from spiel_cfr.games.compiled.infosets import Infosets
from spiel_cfr.games.compiled.trunk_and_subtrees import Partition
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.infoset_features import Float32s, infoset_tensors
from spiel_cfr.games.payoffs.payoff import Payoff
from spiel_cfr.games.sequence_form.blocks import as_scale
from spiel_cfr.games.sequence_form.shared_infosets import SharedInfosets, pooled
from spiel_cfr.games.sequence_form.treeplex import Treeplex

_LONGEST_NAME = 100


class CompiledGame(abc.ABC):
  """A game in sequence form. Make one with `compile_game`.

  A new form of game is a subclass that has `payoff`, `infosets` and `digest`. All else has a default here: `view` and
  `save` refuse, and `decisions`, `partition` and `dtype` let solvers take the game as a whole, in float64. A game whose
  leaves fit in memory needs no new form, see `games.game_from_arrays`.

  Attributes:
    treeplexes: each player's decision space. All others are those of `GameFacts`.
  """

  game_string: str
  num_distinct_actions: int
  payoff_range: tuple[float, float]
  constant_sum: float | None
  num_states: int
  num_terminals: int
  open_spiel_version: str | None
  _partition: Partition | None = None

  def __init__(
    self,
    facts: GameFacts,
    treeplexes: tuple[Treeplex, ...],
    original: "CompiledGame | None" = None,
    map_from_original: abstraction_map.AbstractionMap | None = None,
  ) -> None:
    """Takes what all games have.

    An abstraction has an original game, the facts of that, and a map from that game's sequences to its own.
    """
    vars(self).update(vars(facts))
    self.treeplexes = treeplexes
    self._original, self._map = original, map_from_original

  @property
  @abc.abstractmethod
  def payoff(self) -> Payoff:
    """The players' payoffs."""

  @property
  @abc.abstractmethod
  def infosets(self) -> tuple[Infosets, ...]:
    """Each player's infosets, in order of discovery."""

  @property
  @abc.abstractmethod
  def digest(self) -> str:
    """Hexadecimal SHA-256 of the game: the same for two compiled games only if solvers can't tell them apart."""

  @property
  def facts(self) -> GameFacts:
    """The facts that are attributes of this game."""
    return GameFacts(
      **{each.name: getattr(self, each.name) for each in dataclasses.fields(GameFacts)}
    )

  @property
  def name(self) -> str:
    """The string on one line, cut off where it is long, as that of an endgame is with all its hands."""
    name = " ".join(self.game_string.split())
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 3]}..."

  @property
  def size(self) -> str:
    """How large the game is, in words."""
    infosets = " + ".join(f"{treeplex.num_infosets:,}" for treeplex in self.treeplexes)
    return f"{infosets} infosets" + (f" for {self._original.size}" if self._original else "")

  @property
  def view(self) -> GameView:
    """How the game was walked, for whoever walks it again.

    Raises:
      NoStatesError: it was made of arrays, or OpenSpiel can't make it of its string any more.
      FileFormatError: the game of that string has other numbers of players or actions.
    """
    raise errors.NoStatesError(
      f"This needs OpenSpiel's states, and {self.game_string!r} has none: it was made of arrays. Full-width solvers, "
      "first-order methods, evaluation and policies, which are tables of infosets, need no states. To sample the game "
      "or to look at its histories, write it as a game of OpenSpiel and call compile_game."
    )

  def save(self, path: str | os.PathLike[str]) -> None:
    """Writes the game to one `.npz` file without pickles, whole or not at all.

    Raises:
      UnsupportedGameError: games of this kind are not saved.
      OSError: the file can't be written.
    """
    raise errors.UnsupportedGameError(
      f"{self} is of a kind that is not saved. Compile it again: in vector form that takes about a second."
    )

  @property
  def partition(self) -> Partition | None:
    """The parts that solvers are to go through one by one; None where they take the game as a whole."""
    return self._partition

  def with_partition(self, partition: Partition) -> Self:
    """Returns the same game, whose solvers go through its parts in another way."""
    result = object.__new__(type(self))
    result.__dict__.update(self.__dict__, _partition=partition)
    return result

  @property
  def shared_infosets(self) -> SharedInfosets | None:
    """Which sequences share strategies and regrets; None where none do."""
    return None if self._map is None else self._map.shared_infosets

  @property
  def original(self) -> "CompiledGame":
    """The game that this one stands for: itself, unless it is an abstraction."""
    return self if self._original is None else self._original

  @property
  def is_exact(self) -> bool:
    """Whether a policy is as good in the original game as it is here."""
    return self._map is None or self._map.is_exact

  def to_original(self, sequence_form: Float64s) -> Float64s:
    """Turns a sequence form, or a sum of them, into one of the original game; shape (sequences,), as theirs is."""
    return sequence_form if self._map is None else self._map.to_original(sequence_form)

  def to_actions(self, probabilities: Float64s) -> Float64s:
    """Returns the probability of every entry of `actions` from behavioural form; actions that are one share theirs."""
    entries = self.all_action_sequences
    result: Float64s = probabilities[entries]
    return (
      result if self._map is None else result / abstraction_map.count_alike(entries, self._shape[1])
    )

  def from_actions(self, entries: Float64s) -> Float64s:
    """Returns behavioural form of probabilities of all entries of `actions`; of infosets that are one, the first's."""
    cells = slice(None) if self._map is None else abstraction_map.first_cells(*self._shape)
    result = np.zeros(self.end)
    np.add.at(result, self.all_action_sequences[cells], entries[cells])
    return result

  @functools.cached_property
  def shared_entries(self) -> Int64s:
    """For every entry of `actions`, the number of what samples keep for it; those that play alike share one."""
    entries = self.all_action_sequences
    if self._map is None:
      return np.arange(len(entries))
    return abstraction_map.number_entries(entries, *self._shape, self.shared_infosets)

  @property
  def _shape(self) -> tuple[Int64s, Int64s]:
    """The first sequence of each infoset of all players in order of discovery, and its number of actions."""
    first = np.concatenate([own.first_sequence for own in self.infosets])
    return first.astype(np.int64), np.concatenate(self.num_actions)

  @property
  def num_leaves(self) -> int:
    """How many tuples of last sequences have a payoff for player 0."""
    return self.payoff.num_leaves

  @property
  def game(self) -> pyspiel.Game:
    """The game, sequential, as OpenSpiel has it."""
    return self.view.game

  @property
  def num_players(self) -> int:
    """How many players there are."""
    return len(self.treeplexes)

  @property
  def is_two_player_constant_sum(self) -> bool:
    """Whether exploitability is defined."""
    return self.num_players == 2 and self.constant_sum is not None

  @property
  def num_infosets(self) -> int:
    """How many infosets all players have."""
    return sum(treeplex.num_infosets for treeplex in self.treeplexes)

  @property
  def end(self) -> int:
    """Length of an array over the sequences of all players, padding included."""
    return self.treeplexes[-1].end

  @property
  def infostates(self) -> tuple[Sequence[str], ...]:
    """Each player's information state strings, in order of discovery."""
    return tuple(own.infostates for own in self.infosets)

  @property
  def actions(self) -> tuple[Int64s, ...]:
    """Each player's legal actions, infoset by infoset in order of discovery, in one flat array."""
    return tuple(own.actions for own in self.infosets)

  @property
  def num_actions(self) -> tuple[Int64s, ...]:
    """How many actions each infoset has, shape (infosets,) per player, in order of discovery."""
    return tuple(own.num_actions for own in self.infosets)

  def first_states(self, player: int | None = None) -> Sequence[Any]:
    """Returns OpenSpiel's first state of every infoset in the order of histories, of one player or player by player."""
    return [state.clone() for state in self._first_states[self.infoset_rows(player)]]

  @functools.cached_property
  def _first_states(self) -> list[Any]:
    return self.view.first_states(self.infostates)

  @functools.cached_property
  def information_state_tensors(self) -> Float32s:
    """OpenSpiel's tensors, shape (infosets, length), read-only. Raises FeaturesError where an infoset has not one."""
    return infoset_tensors(self.view, self.infostates)

  def tensors_of(self, player: int, infosets: slice) -> Float32s:
    """Returns the tensors of some of a player's infosets; see `information_state_tensors`."""
    player = arguments.integer(player, "player", 0, self.num_players - 1)
    return self.information_state_tensors[self.infoset_rows(player)][infosets]

  def infoset_rows(self, player: int | None = None) -> slice:
    """Returns where a player's infosets are when all players' are end to end; for None, all."""
    ends = [0, *itertools.accumulate(map(len, self.infostates))]
    if player is None:
      return slice(0, ends[-1])
    player = arguments.integer(player, "player", 0, self.num_players - 1)
    return slice(ends[player], ends[player + 1])

  @property
  def dtype(self) -> np.dtype[Any]:
    """The numbers that solvers keep and compute with, float64 or float32."""
    return np.dtype(np.float64)

  @property
  def _bounding_payoff(self) -> Payoff:
    # Any part of a game knows the bounds of the whole, whose own payoff need not be built for them.
    return self.payoff if self.partition is None else self.partition.parts[0].payoff

  @functools.cached_property
  def loss_bounds(self) -> Float64s:
    """D: no counterfactual utility is larger at an infoset: `Payoff.infoset_bounds`, or the largest payoff if less."""
    payoff = self._bounding_payoff
    bounds = [payoff.infoset_bounds(self.treeplexes, player) for player in range(self.num_players)]
    return self._per_infoset(bounds)

  @functools.cached_property
  def scale(self) -> Uint16s:
    """`Block.scale` of all infosets: from `Payoff.infoset_scales`, or the largest payoff where that is less."""
    payoff = self._bounding_payoff
    scales = [payoff.infoset_scales(self.treeplexes, player) for player in range(self.num_players)]
    return as_scale(self._per_infoset(scales))

  def _per_infoset(self, bounds: Sequence[Float64s]) -> Float64s:
    """Returns a payoff's bounds of all players, no more than the largest payoff; those of shared infosets add up."""
    result = np.minimum(np.concatenate(bounds), max(map(abs, self.payoff_range)))
    if self.shared_infosets is None:
      return result
    # Utilities of shared infosets are pooled.
    sums = pooled(self.shared_infosets, self.per_sequence(result))
    blocks = [tree.infoset_groups() for tree in self.treeplexes]
    return np.concatenate([sums[own[0]] for own, _ in itertools.chain(*blocks)])

  def per_sequence(self, numbers: Float64s) -> Float64s:
    """Returns, for each sequence, the number of its infoset; shapes (infosets,) to (sequences,)."""
    result, begin = np.zeros(self.end), 0
    for treeplex in self.treeplexes:
      for sequences, infosets in treeplex.infoset_groups():
        result[sequences] = numbers[begin:][infosets]
      begin += treeplex.num_infosets
    return result

  @functools.cached_property
  def groups(self) -> Uint64s:
    """`Treeplex.groups` of all players, one below the other."""
    return np.concatenate([treeplex.groups for treeplex in self.treeplexes])

  @functools.cached_property
  def parent(self) -> Uint32s:
    """`Treeplex.parent` of all players, end to end."""
    return np.concatenate([treeplex.parent for treeplex in self.treeplexes])

  @functools.cached_property
  def players(self) -> Uint64s:
    """A row per player: first group, one past the last, root, one past the last sequence."""
    ends = np.cumsum([len(treeplex.groups) for treeplex in self.treeplexes])
    return np.array(
      [
        (end - len(treeplex.groups), end, treeplex.root, treeplex.end)
        for end, treeplex in zip(ends, self.treeplexes, strict=True)
      ],
      np.uint64,
    )

  @property
  def every_infoset(self) -> Decisions:
    """All infosets, with the payoff of the whole game."""
    return Decisions(self.payoff, self.players, self.groups, self.parent)

  @property
  def decisions(self) -> Decisions:
    """The infosets that iterations visit: those with a choice, and a payoff without the sequences of the others."""
    return self.every_infoset

  @functools.cached_property
  def idle_evaluators(self) -> list[Any]:
    """Evaluators of this game that serve no call at the moment: see `evaluation.evaluate`."""
    return []

  @functools.cached_property
  def all_action_sequences(self) -> Int64s:
    """The sequence of every entry of `actions`, of all players end to end."""
    if self._map is not None:
      return self._map.sequences[self.original.all_action_sequences].astype(np.int64)
    result = [np.zeros(0, np.int64)]
    for own in self.infosets:
      index = spread(np.zeros_like(own.num_actions), own.num_actions)
      first = np.repeat(own.first_sequence.astype(np.int64), own.num_actions)
      result.append(first + index * np.repeat(own.stride.astype(np.int64), own.num_actions))
    return np.concatenate(result)

  @functools.cached_property
  def rows(self) -> dict[str, int]:
    """The row of each infostate in OpenSpiel's tabular policies.

    Raises:
      PolicyError: two players share an information state string.
    """
    rows: dict[str, int] = {}
    for infostates in self.infostates:
      for infostate in infostates:
        if infostate in rows:
          raise errors.PolicyError(
            f"Two players share the information state string {infostate!r}. OpenSpiel's policies "
            "know infosets by that string alone, so they can't hold a policy for this game."
          )
        rows[infostate] = len(rows)
    return rows

  @functools.cached_property
  def action_cells(self) -> tuple[Int64s, Int64s]:
    """The row and the column, in OpenSpiel's tabular policies, of every entry of `actions`."""
    num_actions = np.concatenate(self.num_actions)
    return np.repeat(np.arange(len(num_actions)), num_actions), np.concatenate(self.actions)

  @functools.cached_property
  def legal_actions_mask(self) -> Int64s:
    """1 for each of `action_cells`, 0 elsewhere; read-only, shape (infosets, num_distinct_actions)."""
    mask = np.zeros((sum(map(len, self.num_actions)), self.num_distinct_actions), np.int64)
    mask[self.action_cells] = 1
    mask.flags.writeable = False
    return mask

  def __str__(self) -> str:
    return f"{self.name}: {self.size}"

  def __repr__(self) -> str:
    return f"<{type(self).__name__} {self}>"

  def __copy__(self) -> "CompiledGame":
    return self

  def __deepcopy__(self, memo: Any) -> "CompiledGame":
    return self

  def __getstate__(self) -> dict[str, Any]:
    """Returns all attributes that are not made again when they are asked for."""
    made_again = functools.cached_property
    return {
      name: value
      for name, value in vars(self).items()
      if name == "view" or not isinstance(getattr(type(self), name, None), made_again)
    }
