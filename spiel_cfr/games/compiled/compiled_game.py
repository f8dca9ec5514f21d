"""The interface of compiled games, in all forms."""

import abc
import dataclasses
import functools
import itertools
import os
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import pyspiel

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s, Uint16s, Uint32s, Uint64s
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

  A new form of game is a subclass with `payoff`, `infosets` and `digest`. Its constructor lays out infosets with
  `build_treeplexes` and calls this one; docs/extending.md has an example. Everything else has a default: `view` and
  `save` raise, `decisions` visits all infosets, `partition` and `dtype` say that solvers take the game as a whole, in
  float64. A game whose leaves fit in memory needs no new form, see `games.game_from_arrays`.

  Arrays are in one of two orders; docs/arrays.md has an example:

      order of discovery    names and policies: `infosets` of each player, and *entries*, the actions of all players
      layout                sequences with padding, and infosets: `treeplexes`, strategies, regrets

  Attributes:
    treeplexes: tuple of `Treeplex`. The infosets and sequences of each player. `GameFacts` has the other attributes.
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
    """Takes the attributes; an abstraction also takes its original game and the map to its own sequences."""
    vars(self).update(vars(facts))
    self.treeplexes = treeplexes
    self._original, self._map = original, map_from_original

  @property
  @abc.abstractmethod
  def payoff(self) -> Payoff:
    """The payoffs of all players."""

  @property
  @abc.abstractmethod
  def infosets(self) -> tuple[Infosets, ...]:
    """Each player's infosets, in order of discovery."""

  @property
  @abc.abstractmethod
  def digest(self) -> str:
    """Hexadecimal SHA-256 of the game. Games have the same digest only if solvers can't tell them apart."""

  @property
  def facts(self) -> GameFacts:
    """The game's `GameFacts`."""
    return GameFacts(
      **{fact.name: getattr(self, fact.name) for fact in dataclasses.fields(GameFacts)}
    )

  @property
  def name(self) -> str:
    """The game's string on one line, shortened to 100 characters."""
    name = " ".join(self.game_string.split())
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 3]}..."

  @property
  def size(self) -> str:
    """Size of the game, in words."""
    infosets = " + ".join(f"{treeplex.num_infosets:,}" for treeplex in self.treeplexes)
    return f"{infosets} infosets" + (f" for {self._original.size}" if self._original else "")

  @property
  def view(self) -> GameView:
    """View of OpenSpiel's game, for code that walks its states.

    Raises:
      NoStatesError: the game was made of arrays, its form has no `view`, or OpenSpiel can't load its string.
      FileFormatError: OpenSpiel's game of that string has other numbers of players or actions.
    """
    raise errors.NoStatesError(
      f"This needs OpenSpiel's states, and {self.game_string!r} has none: it was made of arrays, or "
      f"{type(self).__name__} has no `view`. Full-width solvers, first-order methods, evaluation and policies need no "
      "states. To sample the game or to look at its histories, write it as a game of OpenSpiel and call compile_game."
    )

  def save(self, path: str | os.PathLike[str]) -> None:
    """Writes the game to one `.npz` file without pickles. An interrupted write leaves no file.

    Raises:
      UnsupportedGameError: games of this form are not saved.
      OSError: the file can't be written.
    """
    raise errors.UnsupportedGameError(
      f"{self} can't be saved: {type(self).__name__} has no `save`. Make the game again instead."
    )

  @property
  def partition(self) -> Partition | None:
    """The parts that solvers visit one by one; None if they take the game as a whole."""
    return self._partition

  def with_partition(self, partition: Partition) -> Self:
    """Returns the same game with another partition."""
    result = object.__new__(type(self))
    result.__dict__.update(self.__dict__, _partition=partition)
    return result

  @property
  def shared_infosets(self) -> SharedInfosets | None:
    """The sequences that share strategies and regrets; None in games of perfect recall."""
    return None if self._map is None else self._map.shared_infosets

  @property
  def original(self) -> "CompiledGame":
    """The original game of an abstraction; otherwise the game itself."""
    return self if self._original is None else self._original

  @property
  def is_exact(self) -> bool:
    """True if a policy has the same exploitability in the original game."""
    return self._map is None or self._map.is_exact

  def to_original(self, sequence_form: Float64s) -> Float64s:
    """Converts a sequence form, or a sum of them, to one of the original game; shape (sequences,)."""
    return sequence_form if self._map is None else self._map.to_original(sequence_form)

  def to_actions(self, probabilities: Float64s) -> Float64s:
    """Converts behavioral form to the probability of each entry.

    In an abstraction, actions of one infoset may have the same sequence. Its probability is divided equally among them.
    """
    entries = self.all_action_sequences
    probabilities = arguments.numbers(probabilities, "probabilities", self.end)
    if self._map is None:
      return np.asarray(probabilities[entries], np.float64)
    num_alike = abstraction_map.count_alike(entries, np.concatenate(self.num_actions))
    return np.asarray(probabilities[entries] / num_alike)

  def from_actions(self, entries: Float64s) -> Float64s:
    """Converts probabilities of all entries to behavioral form; of infosets that play alike, the first one counts."""
    entries = arguments.numbers(entries, "entries", len(self.all_action_sequences))
    used: Any = slice(None)
    if self._map is not None:
      used = abstraction_map.representative_entries(*self._infoset_ranges)
    result = np.zeros(self.end)
    np.add.at(result, self.all_action_sequences[used], entries[used])
    return result

  @functools.cached_property
  def shared_entries(self) -> Int64s:
    """The number of each entry in the tables of samplers; entries of infosets that play alike share a number."""
    entries = self.all_action_sequences
    if self._map is None:
      return np.arange(len(entries))
    return abstraction_map.number_entries(entries, *self._infoset_ranges, self.shared_infosets)

  @property
  def _infoset_ranges(self) -> tuple[Int64s, Int64s]:
    """The sequence of action 0 and the number of actions of all players' infosets, in order of discovery."""
    first = [
      tree.first_sequences[infosets.position]
      for tree, infosets in zip(self.treeplexes, self.infosets, strict=True)
    ]
    return np.concatenate(first), np.concatenate(self.num_actions)

  @property
  def num_leaves(self) -> int:
    """Number of tuples of last sequences with a payoff for player 0."""
    return self.payoff.num_leaves

  @property
  def game(self) -> pyspiel.Game:
    """OpenSpiel's game, in its sequential form."""
    return self.view.game

  @property
  def num_players(self) -> int:
    """Number of players."""
    return len(self.treeplexes)

  @property
  def is_two_player_constant_sum(self) -> bool:
    """True if exploitability is defined."""
    return self.num_players == 2 and self.constant_sum is not None

  @property
  def num_infosets(self) -> int:
    """Number of infosets of all players."""
    return sum(treeplex.num_infosets for treeplex in self.treeplexes)

  @property
  def end(self) -> int:
    """Length of arrays over the sequences of all players, padding included."""
    return self.treeplexes[-1].end

  @property
  def infostates(self) -> tuple[Sequence[str], ...]:
    """Each player's information state strings, in order of discovery."""
    return tuple(infosets.infostates for infosets in self.infosets)

  @property
  def actions(self) -> tuple[Int64s, ...]:
    """Each player's legal actions, infoset by infoset in order of discovery, in one flat array."""
    return tuple(infosets.actions for infosets in self.infosets)

  @property
  def num_actions(self) -> tuple[Int64s, ...]:
    """Number of actions of each infoset, in order of discovery; one array of shape (infosets,) for each player."""
    return tuple(infosets.num_actions for infosets in self.infosets)

  def first_states(self, player: int | None = None) -> Sequence[Any]:
    """Returns OpenSpiel's first state of each infoset of a player, in the order of histories; for None, of all."""
    return [state.clone() for state in self._first_states[self.infoset_rows(player)]]

  @functools.cached_property
  def _first_states(self) -> list[Any]:
    return self.view.first_states(self.infostates)

  @functools.cached_property
  def information_state_tensors(self) -> Float32s:
    """OpenSpiel's tensors, shape (infosets, length), read-only. Raises FeaturesError unless each infoset has one."""
    return infoset_tensors(self.view, self.infostates)

  def tensors_of(self, player: int, infosets: slice) -> Float32s:
    """Returns the `information_state_tensors` of a slice of a player's infosets."""
    arguments.of_type(infosets, "infosets", slice)
    player = arguments.integer(player, "player", 0, self.num_players - 1)
    return self.information_state_tensors[self.infoset_rows(player)][infosets]

  def infoset_rows(self, player: int | None = None) -> slice:
    """Returns the slice of a player's infosets in arrays over all players' infosets; None returns the whole slice."""
    ends = [0, *itertools.accumulate(map(len, self.infostates))]
    if player is None:
      return slice(0, ends[-1])
    player = arguments.integer(player, "player", 0, self.num_players - 1)
    return slice(ends[player], ends[player + 1])

  @property
  def dtype(self) -> np.dtype[Any]:
    """The precision of solvers, float64 or float32."""
    return np.dtype(np.float64)

  @property
  def _bounding_payoff(self) -> Payoff:
    """The payoff whose bounds are those of the game."""
    return self.payoff

  @functools.cached_property
  def loss_bounds(self) -> Float64s:
    """D, a bound on the counterfactual utilities of each infoset: `Payoff.infoset_bounds`, or the largest payoff."""
    return self._joined_bounds(self._bounding_payoff.infoset_bounds)

  @functools.cached_property
  def scale(self) -> Uint16s:
    """`Block.scale` of all infosets: `Payoff.infoset_scales`, or the largest payoff if that is less."""
    return as_scale(self._joined_bounds(self._bounding_payoff.infoset_scales))

  def _joined_bounds(self, bounds_of: Callable[[tuple[Treeplex, ...], int], Float64s]) -> Float64s:
    """Joins bounds of all players' infosets, limits them to the largest payoff, and sums those of shared infosets."""
    bounds = [bounds_of(self.treeplexes, player) for player in range(self.num_players)]
    result = np.minimum(np.concatenate(bounds), max(map(abs, self.payoff_range)))
    if self.shared_infosets is None:
      return result
    sums = pooled(self.shared_infosets, self.per_sequence(result))
    return np.asarray(sums[np.concatenate([tree.first_sequences for tree in self.treeplexes])])

  def per_sequence(self, values: Float64s) -> Float64s:
    """Copies the value of each infoset to its sequences: shape (infosets,) in layout order, to shape (sequences,)."""
    result, begin = np.zeros(self.end), 0
    for treeplex in self.treeplexes:
      for sequences, infosets in treeplex.infoset_groups():
        result[sequences] = values[begin:][infosets]
      begin += treeplex.num_infosets
    return result

  @functools.cached_property
  def groups(self) -> Uint64s:
    """`Treeplex.groups` of all players, end to end."""
    return np.concatenate([treeplex.groups for treeplex in self.treeplexes])

  @functools.cached_property
  def parent(self) -> Uint32s:
    """`Treeplex.parent` of all players, end to end."""
    return np.concatenate([treeplex.parent for treeplex in self.treeplexes])

  @functools.cached_property
  def player_bounds(self) -> Uint64s:
    """For each player: first group, one past the last group, root, one past the last sequence."""
    ends = np.cumsum([len(treeplex.groups) for treeplex in self.treeplexes])
    bounds = [
      (end - len(tree.groups), end, tree.root, tree.end)
      for end, tree in zip(ends, self.treeplexes, strict=True)
    ]
    return np.array(bounds, np.uint64)

  @property
  def every_infoset(self) -> Decisions:
    """All infosets, with the payoff of the whole game."""
    return Decisions(self.payoff, self.player_bounds, self.groups, self.parent)

  @property
  def decisions(self) -> Decisions:
    """The infosets that iterations visit, with a payoff over their sequences; by default, all infosets."""
    return self.every_infoset

  @functools.cached_property
  def idle_evaluators(self) -> list[Any]:
    """Evaluators of this game that are not in use, see `evaluation.evaluate`."""
    return []

  @functools.cached_property
  def all_action_sequences(self) -> Int64s:
    """The sequence of each entry, int64 (actions of all players,)."""
    sequences = [infosets.action_sequences for infosets in self.infosets]
    return np.concatenate(sequences).astype(np.int64)

  @functools.cached_property
  def table_rows(self) -> dict[str, int]:
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
    """The row and the column of each entry in OpenSpiel's tabular policies."""
    num_actions = np.concatenate(self.num_actions)
    return np.repeat(np.arange(len(num_actions)), num_actions), np.concatenate(self.actions)

  @functools.cached_property
  def legal_actions_mask(self) -> Int64s:
    """Mask of `action_cells`: 1 at legal actions, 0 elsewhere; read-only, shape (infosets, num_distinct_actions)."""
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
    """Returns all attributes except cached ones."""
    cached = functools.cached_property
    return {
      name: value
      for name, value in vars(self).items()
      if name == "view" or not isinstance(getattr(type(self), name, None), cached)
    }
