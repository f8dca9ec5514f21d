"""Games in private moves form: two treeplexes, and rectangles of sequences for the payoffs."""

import dataclasses
import functools
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from spiel_cfr._numba.arrays import Int64s, require
from spiel_cfr._util import arguments, files
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.enumerated_game import FORMAT, KIND
from spiel_cfr.games.compiled.game_facts import GameFacts
from spiel_cfr.games.compiled.infosets import Infosets
from spiel_cfr.games.compiled.reloaded_view import view_of_string, without_lost_view
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.infoset_features import Float32s, tensor_size
from spiel_cfr.games.private_moves import saved_game, saved_payoff
from spiel_cfr.games.private_moves.infoset_states import InfosetStates, OfInfosets
from spiel_cfr.games.private_moves.rectangles import Rectangles, placed_rectangles
from spiel_cfr.games.private_moves.shared_rectangles import SharedRectangles
from spiel_cfr.games.sequence_form.treeplex import Placement, build_treeplexes

# The forms of payoffs in files that `restored` reads.
PAYOFF_FORMS = (Rectangles.form, SharedRectangles.form)
_PLAYERS = (0, 1)


class PrivateMovesGame(CompiledGame):
  """A game in private moves form. Make one with `compile_private_moves_game`.

  Infosets are in the order in which the walk over core histories finds them. Infostates and states are made on demand.
  `num_states` and `num_terminals` count histories, which may be ten billion.

  Attributes:
    num_core_histories: int. The number of terminal core histories.
  """

  def __init__(
    self,
    facts: GameFacts,
    states: InfosetStates,
    num_core_histories: int,
    place_payoff: Callable[[list[Placement]], Rectangles | SharedRectangles],
    has_copies: bool,
    view: GameView | Literal["history"] | None,
  ) -> None:
    """Lays the game out.

    Args:
      facts: the facts of the game.
      states: the histories of infosets.
      num_core_histories: the number of terminal core histories.
      place_payoff: makes the payoffs, given the layout of each player.
      has_copies: whether subgames are shared. Then copies of an infoset are neighbors in the layout.
      view: the view of the game that was walked, or the `infostate` of a view that is made on demand.
    """
    self._states, self._own_histories = states, view == "history"
    if isinstance(view, GameView):
      self.view, self._own_histories = view, view.has_own_histories
    self.num_core_histories = num_core_histories
    parents = [infosets.parent for infosets in states.players]
    # In order of discovery, copies are neighbors already.
    ranks = [np.arange(len(each), dtype=np.uint32) for each in parents] if has_copies else None
    placements = build_treeplexes(parents, map(states.num_actions, _PLAYERS), ranks=ranks)
    self._payoff = place_payoff(placements)
    # The long arrays of sequences are not needed any more.
    self._placements = [
      placement._replace(sequences=np.zeros(0, np.uint32)) for placement in placements
    ]
    super().__init__(facts, tuple(placement.treeplex for placement in placements))

  @functools.cached_property
  def view(self) -> GameView:
    """View of the game that was walked; see `CompiledGame.view`."""
    return view_of_string(self, "history" if self._own_histories else None)

  def save(self, path: str | os.PathLike[str]) -> None:
    """Writes the game to a file, without the names of infosets: OpenSpiel's states have them.

    Raises:
      UnsupportedGameError: the names are a function of the caller, or OpenSpiel can't load the game from its string.
      OSError: the file can't be written.
    """
    saved_game.check_names(self.view)
    header = dataclasses.asdict(self.facts) | {
      "payoff_form": self._payoff.form,
      "num_players": 2,
      "num_core_histories": self.num_core_histories,
      "own_histories": self._own_histories,
    }
    if isinstance(self._payoff, SharedRectangles):
      payoff_arrays = saved_payoff.shared_arrays(self._payoff)
    else:
      payoff_arrays = saved_payoff.rectangle_arrays(self._payoff, self._places)
    files.write(path, KIND, FORMAT, header, saved_game.state_arrays(self._states) | payoff_arrays)

  @property
  def _places(self) -> list[Int64s]:
    """For each player, the place of each sequence among its sequences in the layout, in order of discovery."""
    return [
      infosets.sequences.astype(np.int64) - tree.root
      for infosets, tree in zip(self.infosets, self.treeplexes, strict=True)
    ]

  def __getstate__(self) -> dict[str, Any]:
    """Leaves out the view of a game that OpenSpiel can't load again."""
    return without_lost_view(super().__getstate__())

  @property
  def payoff(self) -> Rectangles | SharedRectangles:
    return self._payoff

  @functools.cached_property
  def infosets(self) -> tuple[Infosets, ...]:
    """Each player's infosets, with infostates that are made on demand."""
    return tuple(self._infosets_of(player) for player in _PLAYERS)

  def _infosets_of(self, player: int) -> Infosets:
    placement, tree = self._placements[player], self.treeplexes[player]

    def names(infosets: Int64s) -> list[str]:
      return [
        self.view.infostate(state) for state in self._states.states(self.view, player, infosets)
      ]

    return Infosets(
      infostates=OfInfosets(len(placement.position), names),
      actions=self._states.actions(player),
      num_actions=self._states.num_actions(player),
      sequences=np.append(tree.root, tree.sequences_at(placement.position)).astype(np.uint32),
      position=placement.position,
    )

  def first_states(self, player: int | None = None) -> Sequence[Any]:
    """Returns a state of each infoset, for one player or all in turn; states are made on demand."""
    if player is None:
      return [state for owner in _PLAYERS for state in self.first_states(owner)]
    player = arguments.integer(player, "player", 0, 1)
    count = len(self._placements[player].position)
    return OfInfosets(count, functools.partial(self._states.states, self.view, player))

  @functools.cached_property
  def information_state_tensors(self) -> Float32s:
    """OpenSpiel's tensors of `first_states`, see `CompiledGame`; other states of an infoset are not compared."""
    tensors = [self.tensors_of(player, slice(None)) for player in _PLAYERS]
    result: Float32s = np.concatenate(tensors)
    result.flags.writeable = False
    return result

  def tensors_of(self, player: int, infosets: slice) -> Float32s:
    """Returns the tensors of some of a player's infosets, and makes only these.

    Raises:
      FeaturesError: the game has no tensors.
    """
    player = arguments.integer(player, "player", 0, 1)
    arguments.of_type(infosets, "infosets", slice)
    size = tensor_size(self.view, "Use strings or states.")
    states = self.first_states(player)[infosets]
    rows = [state.information_state_tensor(player) for state in states]
    return np.array(rows, np.float32).reshape(len(rows), size)

  @functools.cached_property
  def digest(self) -> str:
    """SHA-256 of the treeplexes, the rectangles and the actions."""
    digest = hashlib.sha256(repr((self.payoff_range, self._states.action_lists)).encode())
    arrays: list[Any] = [self._payoff.payoffs.ravel()]
    for player, infosets in enumerate(self._states.players):
      arrays += [infosets.parent, infosets.legal, *self._payoff.side_arrays(player)]
    for array in arrays:
      digest.update(f"{array.dtype.str} {array.shape}".encode())
      digest.update(array.tobytes())
    return digest.hexdigest()

  @property
  def size(self) -> str:
    return f"{self.num_states:,} states, {super().size} in private moves form"


def restored(header: Mapping[str, Any], arrays: files.Arrays, facts: GameFacts) -> PrivateMovesGame:
  """Returns the game of a file's header and arrays.

  Raises:
    KeyError, ValueError: `PrivateMovesGame.save` can't have written the file.
  """
  states = saved_game.infoset_states(arrays, facts.num_distinct_actions)
  count, own_histories = header["num_core_histories"], header["own_histories"]
  require(type(own_histories) is bool, "own_histories is true or false")
  require(type(count) is int and 0 < count <= facts.num_terminals, "core histories are counted")
  shares_subgames = header["payoff_form"] == SharedRectangles.form
  if shares_subgames:
    place_payoff: Any = functools.partial(saved_payoff.placed_shared_rectangles, arrays)
  else:
    num_sequences = [1 + int(states.num_actions(player).sum()) for player in _PLAYERS]
    sides, payoffs = saved_payoff.discovered_rectangles(arrays, num_sequences)
    place_payoff = functools.partial(placed_rectangles, sides, payoffs)
  view: Literal["history"] | None = "history" if own_histories else None
  game = PrivateMovesGame(facts, states, count, place_payoff, shares_subgames, view)
  saved_payoff.check_constant_sum(game.payoff.payoffs, facts.constant_sum)
  return game
