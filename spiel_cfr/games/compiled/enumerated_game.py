"""Enumerated games, which list all leaves, and their construction from arrays in order of discovery."""

import dataclasses
import functools
import hashlib
import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s, Uint32s
from spiel_cfr._util import arguments, files
from spiel_cfr.games.compiled.abstraction_map import AbstractionMap
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.forced_moves import Decisions, without_forced_moves
from spiel_cfr.games.compiled.game_facts import GameFacts
from spiel_cfr.games.compiled.infosets import Infosets
from spiel_cfr.games.compiled.reloaded_view import view_of_string, without_lost_view
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.walk import DiscoveredInfosets
from spiel_cfr.games.payoffs.build_payoff import ListedPayoff, build_payoff
from spiel_cfr.games.payoffs.payoff import Payoff
from spiel_cfr.games.payoffs.private_types import group_public_states
from spiel_cfr.games.sequence_form.treeplex import Placement, Treeplex, build_treeplexes

# The kind of files of compiled games in all forms, and the version of their format.
KIND = "compiled game of spiel_cfr"
FORMAT = 5


def _check_leaves(payoff: Payoff, treeplexes: Sequence[Treeplex]) -> None:
  """Raises ArgumentError if a payoff has leaves at sequences that a game does not have."""
  for player, tree in enumerate(treeplexes):
    leaves = payoff.leaves(player)
    others = [*treeplexes[player + 1 :], *treeplexes[:player]]
    fits = len(leaves.others) == len(others)
    for sequences, owner in zip([leaves.own, *leaves.others], [tree, *others], strict=False):
      fits &= bool(((sequences >= owner.root) & (sequences < owner.end)).all())
    if not fits:
      raise errors.ArgumentError(
        f"payoff is {type(payoff).__name__} of another game: player {player} has leaves at sequences that this game "
        "does not have."
      )


def _replaced_returns(state: Any) -> list[float]:
  """Raises NoStatesError: the returns of a state, after `with_payoff` has replaced the payoffs."""
  raise errors.NoStatesError(
    "with_payoff has replaced the payoffs of this game, so that OpenSpiel's states have other returns. Give it "
    "view=game.view.with_returns(function of a state), or view=game.view if the payoffs are the same in another form."
  )


# The attributes that `with_payoff` may replace together with the payoffs.
_DEPENDENT = ("payoff_range", "constant_sum", "view", "scale", "treeplexes")


class EnumeratedGame(CompiledGame):
  """A game that lists all leaves. Make one with `compile_game`, `game_from_arrays` or `load_compiled_game`."""

  # Whether `with_payoff` has replaced the payoffs, so that OpenSpiel's states have other returns.
  _has_replaced_payoff = False

  def __init__(
    self,
    facts: GameFacts,
    treeplexes: tuple[Treeplex, ...],
    infosets: tuple[Infosets, ...],
    payoff: Payoff,
    *,
    view: GameView | None = None,
    original: CompiledGame | None = None,
    map_from_original: AbstractionMap | None = None,
  ) -> None:
    """Takes the attributes. Without a view, `view` loads the game from its string when it is first read.

    An abstraction takes its original game, whose view it uses, and the map from that game's sequences to its own.
    """
    super().__init__(facts, treeplexes, original, map_from_original)
    self._infosets, self._payoff = infosets, payoff
    if view is not None:
      self.view = view

  @functools.cached_property
  def view(self) -> GameView:
    """View of the game that was walked; see `CompiledGame.view`."""
    if self._original is not None:
      return self._original.view
    if self.open_spiel_version is None:
      return super().view
    view = view_of_string(self)
    return view.with_returns(_replaced_returns) if self._has_replaced_payoff else view

  def __getstate__(self) -> dict[str, Any]:
    """Leaves out the view of a game that OpenSpiel can't load again; `view` then raises an error that says so."""
    return without_lost_view(super().__getstate__())

  @property
  def payoff(self) -> Payoff:
    return self._payoff

  @property
  def infosets(self) -> tuple[Infosets, ...]:
    return self._infosets

  @functools.cached_property
  def decisions(self) -> Decisions:
    """All infosets with more than one action; with shared infosets or a user's form of payoffs, all infosets."""
    every = self.every_infoset
    if self.shared_infosets or not isinstance(self.payoff, ListedPayoff):
      return every
    return without_forced_moves(every, self.treeplexes)

  @property
  def size(self) -> str:
    if self._original is not None:
      return super().size
    states = f"{self.num_states:,} states, " if self.open_spiel_version else ""
    return f"{states}{super().size}, {self.num_leaves:,} leaves"

  def with_payoff(self, payoff: Payoff, **other: Any) -> "EnumeratedGame":
    """Returns the game with other payoffs, and with other attributes that depend on them, such as `payoff_range`.

    The payoffs may have a form of your own; such a game can't be saved. States of the game have no returns any more,
    because OpenSpiel's would be those of the old payoffs. If they are right, pass `view=game.view`; otherwise,
    `view=game.view.with_returns(function of a state)`.

    Raises:
      UnsupportedGameError: the game is an abstraction.
      ArgumentError: `payoff` is no `Payoff`, or one of another game; or there is no such attribute.
    """
    arguments.of_type(payoff, "payoff", Payoff)
    for name in other:
      arguments.one_of(name, "the attributes of with_payoff", _DEPENDENT)
    if self._original is not None:
      raise errors.UnsupportedGameError(
        "An abstraction has the payoffs of its original game: call abstract(original.with_payoff(...), buckets)."
      )
    if "treeplexes" not in other:
      _check_leaves(payoff, self.treeplexes)
    attributes = super().__getstate__() | {"_payoff": payoff}
    if payoff is not self._payoff and "view" not in other:
      attributes["_has_replaced_payoff"] = True
      if "view" in attributes:
        attributes["view"] = attributes["view"].with_returns(_replaced_returns)
    result = object.__new__(EnumeratedGame)
    result.__dict__.update(attributes | other)
    return result

  def save(self, path: str | os.PathLike[str]) -> None:
    if self._original is not None:
      raise errors.UnsupportedGameError(
        "An abstraction is not saved: save its original game and the buckets, and call abstract again."
      )
    if not isinstance(self.payoff, ListedPayoff):
      raise errors.UnsupportedGameError(
        f"{self} can't be saved: files have no payoffs of the form {self.payoff.form!r}. Save the game as it was "
        "before with_payoff, and call it again."
      )
    files.write(path, KIND, FORMAT, *self._contents)

  @functools.cached_property
  def digest(self) -> str:
    """SHA-256 of the contents of the game's file without its name; for an abstraction, of its original game and map."""
    if self._map is not None:
      return self._map.digest(self.original.digest)
    header, arrays = self._contents
    # The same game may have several names, and may be walked by several releases.
    del header["game_string"], header["open_spiel_version"]
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name, array in arrays.items():
      digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
      digest.update(array.tobytes())
    return digest.hexdigest()

  @property
  def _contents(self) -> tuple[dict[str, Any], files.Arrays]:
    """The header and the arrays of the game's file."""
    arrays = {f"payoff.{name}": array for name, array in self.payoff.saved().items()}
    for player, (tree, infosets) in enumerate(zip(self.treeplexes, self.infosets, strict=True)):
      encoded = [infostate.encode() for infostate in infosets.infostates]
      # The number of each sequence in order of discovery.
      number = np.zeros(tree.end - tree.root, np.uint32)
      number[infosets.action_sequences - tree.root] = 1 + np.arange(len(infosets.actions))
      columns: files.Arrays = {
        "infostates": np.frombuffer(b"".join(encoded), np.uint8),
        "infostate_lengths": np.array([len(text) for text in encoded], np.uint32),
        "actions": infosets.actions,
        "num_actions": infosets.num_actions,
        "parents": number[tree.parent[infosets.position] - tree.root],
        "position": infosets.position,
      }
      arrays |= {f"{player}.{name}": array for name, array in columns.items()}
    header = {"payoff_form": self.payoff.form, "num_players": self.num_players}
    return header | dataclasses.asdict(self.facts), arrays


def listed_game(game: CompiledGame, advice: str = "") -> EnumeratedGame:
  """Returns a game that lists all of its leaves, for code that merges leaves or leaves some out.

  Args:
    game: any compiled game.
    advice: a sentence of the message on other games.

  Raises:
    UnsupportedGameError: the game has another form, or is an abstraction.
  """
  if isinstance(game, EnumeratedGame) and game.original is game:
    return game
  raise errors.UnsupportedGameError(
    f"{game} lists no leaves of its own. Pass compile_game(game, vector_form=False), without symmetries."
    f" {advice}".rstrip()
  )


def build_enumerated_game(
  facts: GameFacts,
  discovered: Sequence[DiscoveredInfosets],
  leaf_sequences: Uint32s,
  leaf_payoffs: Float64s,
  view: GameView | None = None,
) -> EnumeratedGame:
  """Builds a game from the infosets and leaves of an `Enumeration`, unchecked; overwrites `leaf_sequences`."""
  placements, payoff = lay_out_arrays(
    [of_player.parents for of_player in discovered],
    [of_player.num_actions for of_player in discovered],
    leaf_sequences,
    leaf_payoffs,
  )
  infosets = tuple(
    Infosets(names, actions, num_actions, placement.sequences, placement.position)
    for (names, actions, num_actions, _), placement in zip(discovered, placements, strict=True)
  )
  treeplexes = tuple(placement.treeplex for placement in placements)
  return EnumeratedGame(facts, treeplexes, infosets, payoff, view=view)


def lay_out_arrays(
  parents: Sequence[Int64s],
  num_actions: Sequence[Int64s],
  leaf_sequences: Uint32s,
  leaf_payoffs: Float64s,
) -> tuple[list[Placement], ListedPayoff]:
  """Builds each player's treeplex, and the payoff over their sequences, from the arrays of an `Enumeration`.

  `leaf_sequences` is overwritten with the numbering of the treeplexes.
  """
  states = []
  for player, counts in enumerate(num_actions):
    infoset_of_sequence = np.append(-1, np.repeat(np.arange(len(counts)), counts))
    states.append(group_public_states(leaf_sequences, player, infoset_of_sequence, len(counts)))
  placements = build_treeplexes(parents, num_actions, states=states)
  # From the order of discovery to that of the layout.
  for player, placement in enumerate(placements):
    leaf_sequences[player] = placement.sequences[leaf_sequences[player]]
    discovered, states[player] = states[player], np.empty_like(states[player])
    states[player][placement.position] = discovered
  treeplexes = [placement.treeplex for placement in placements]
  return placements, build_payoff(leaf_sequences, leaf_payoffs, treeplexes, states)
