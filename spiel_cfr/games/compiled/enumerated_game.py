"""Games of which every state was walked, and what is written of them to files."""

import functools
import hashlib
import json
import os
from typing import Any

import numpy as np
import numpy.typing as npt

from spiel_cfr import errors
from spiel_cfr._util import files
from spiel_cfr.games.compiled.abstraction_map import AbstractionMap
from spiel_cfr.games.compiled.compiled_game import CompiledGame, Infosets
from spiel_cfr.games.compiled.forced_moves import Decisions, without_forced_moves
from spiel_cfr.games.openspiel import loading
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.payoffs.payoff import Payoff
from spiel_cfr.games.sequence_form.treeplex import Treeplex

# Of files.
KIND = "compiled game of spiel_cfr"
FORMAT = 3
HEADER_FIELDS = (
  "game_string",
  "num_distinct_actions",
  "payoff_range",
  "constant_sum",
  "num_states",
  "num_terminals",
)
OF_TREEPLEX = ("groups", "parent")
OF_INFOSETS = ("actions", "num_actions", "position", "first_sequence", "stride")
OF_PLAYERS = (*OF_TREEPLEX, *OF_INFOSETS, "infostates", "infostate_lengths")


class EnumeratedGame(CompiledGame):
  """A game of which every state was walked. Make one with `compile_game` or `load_compiled_game`."""

  def __init__(
    self,
    *,
    game_string: str,
    open_spiel_version: str,
    treeplexes: tuple[Treeplex, ...],
    infosets: tuple[Infosets, ...],
    payoff: Payoff,
    num_distinct_actions: int,
    payoff_range: tuple[float, float],
    constant_sum: float | None,
    num_states: int,
    num_terminals: int,
    view: GameView | None = None,
    original: CompiledGame | None = None,
    abstraction_map: AbstractionMap | None = None,
  ) -> None:
    """Takes the attributes; without a view, the game is loaded from its string when it is needed.

    An abstraction has an original game, whose view it takes, and a map from that game's sequences to its own.
    """
    self.game_string = game_string
    self.open_spiel_version = open_spiel_version
    self.treeplexes = treeplexes
    self.num_distinct_actions = num_distinct_actions
    self.payoff_range = payoff_range
    self.constant_sum = constant_sum
    self.num_states = num_states
    self.num_terminals = num_terminals
    self._infosets = infosets
    self._payoff = payoff
    self._view = view
    self._original = original
    self._map = abstraction_map

  @property
  def view(self) -> GameView:
    """See the base class.

    Raises:
      UnsupportedGameError: the game was pickled or read from a file, and OpenSpiel can't make it of its string.
    """
    if self._original is not None:
      return self._original.view
    if self._view is None:
      try:
        view = GameView(loading.load_game(self.game_string))
      except errors.GameError as error:
        raise errors.UnsupportedGameError(
          "This needs the states of the game, which stayed behind when its arrays were pickled or written to a "
          f"file, and OpenSpiel can't make them of its string: {error} "
          "Use what compile_game returns, in its own process."
        ) from error
      self.check_view(view)
      self._view = view
    return self._view

  def check_view(self, view: GameView) -> None:
    """Makes sure that this is the game that a file says it is.

    Raises:
      FileFormatError: the view is of a game with another string, or other numbers of players or actions.
    """
    game = view.game
    asked = str(game), game.num_players(), game.num_distinct_actions()
    if asked != (self.game_string, self.num_players, self.num_distinct_actions):
      raise errors.FileFormatError(
        f"What was read is a game of {self.num_players} players and {self.num_distinct_actions} actions that says "
        f"that it is {self.game_string}; that is not {asked[0]} with {asked[1]} players and {asked[2]} actions."
      )

  def __getstate__(self) -> dict[str, Any]:
    """See the base class. A game that OpenSpiel can't load again stays behind; whoever asks for it is told so."""
    state = super().__getstate__()
    if not loading.can_be_loaded_again(self.view.game):
      state["_view"] = None
    return state

  @property
  def payoff(self) -> Payoff:
    """See the base class."""
    return self._payoff

  @property
  def infosets(self) -> tuple[Infosets, ...]:
    """See the base class."""
    return self._infosets

  @functools.cached_property
  def decisions(self) -> Decisions:
    """See the base class: without forced moves, unless there are shared infosets, whose buckets are of all infosets."""
    every = self.every_infoset
    return every if self.shared_infosets else without_forced_moves(every, self.treeplexes)

  @property
  def size(self) -> str:
    """See the base class."""
    infosets = " + ".join(f"{treeplex.num_infosets:,}" for treeplex in self.treeplexes)
    if self._original is not None:
      return f"{infosets} infosets for {self._original.size}"
    return f"{self.num_states:,} states, {infosets} infosets, {self.num_leaves:,} leaves"

  @property
  def num_bytes(self) -> int:
    """Memory of the arrays; infostate strings, which no solver looks at, not counted."""
    arrays: list[npt.NDArray[Any]] = []
    for treeplex, own in zip(self.treeplexes, self.infosets, strict=True):
      arrays += [getattr(treeplex, name) for name in OF_TREEPLEX]
      arrays += [getattr(own, name) for name in OF_INFOSETS]
    return self.payoff.num_bytes + sum(array.nbytes for array in arrays)

  def with_payoff(
    self, payoff: Payoff, payoff_range: tuple[float, float] | None = None, **other: Any
  ) -> "EnumeratedGame":
    """Returns the game with other payoffs on the same treeplexes, or with the same ones in another form.

    Args:
      payoff: the payoffs.
      payoff_range: the smallest and the largest return of any player; by default, what it was.
      **other: `constant_sum`, `view`, `treeplexes` and `infosets`, likewise.

    Raises:
      UnsupportedGameError: the game is an abstraction.
    """
    if self._original is not None:
      raise errors.UnsupportedGameError(
        "An abstraction has the payoffs of its original game: call abstract(original.with_payoff(...), buckets)."
      )
    result = EnumeratedGame.__new__(EnumeratedGame)
    result.__dict__.update(self._attributes())
    result._payoff = payoff
    result.payoff_range = payoff_range or self.payoff_range
    result.constant_sum = other.get("constant_sum", self.constant_sum)
    result.treeplexes = other.get("treeplexes", self.treeplexes)
    result._infosets = other.get("infosets", self._infosets)
    result._view = other.get("view", self._view)
    return result

  def visiting_all(self) -> "EnumeratedGame":
    """Returns the game, whose iterations leave no infoset out."""
    result = self.with_payoff(self.payoff)
    result.__dict__["decisions"] = result.every_infoset
    return result

  def save(self, path: str | os.PathLike[str]) -> None:
    """See the base class.

    Raises:
      UnsupportedGameError: the game is an abstraction.
      OSError: the file can't be written.
    """
    if self._original is not None:
      raise errors.UnsupportedGameError(
        "An abstraction is not saved: save its original game and the buckets, and call abstract again."
      )
    header, arrays = self._contents
    header["open_spiel_version"] = self.open_spiel_version
    files.write(path, KIND, FORMAT, header, arrays)

  @functools.cached_property
  def digest(self) -> str:
    """See the base class."""
    if self._map is not None:
      return self._map.digest(self.original.digest)
    header, arrays = self._contents
    del header["game_string"]  # The same game can be named in several ways.
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name, array in arrays.items():
      digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
      digest.update(array.tobytes())
    return digest.hexdigest()

  @property
  def _contents(self) -> tuple[dict[str, Any], files.Arrays]:
    """Everything but OpenSpiel's version, as header and arrays of a file."""
    arrays: files.Arrays = {
      f"payoff.{name}": array for name, array in self.payoff.arrays._asdict().items()
    }
    for player, (treeplex, own) in enumerate(zip(self.treeplexes, self.infosets, strict=True)):
      encoded = [infostate.encode() for infostate in own.infostates]
      arrays[f"{player}.infostates"] = np.frombuffer(b"".join(encoded), np.uint8)
      arrays[f"{player}.infostate_lengths"] = np.array([len(text) for text in encoded], np.uint32)
      for source, names in ((treeplex, OF_TREEPLEX), (own, OF_INFOSETS)):
        arrays |= {f"{player}.{name}": getattr(source, name) for name in names}
    roots = [(treeplex.root, treeplex.end, treeplex.first_infoset) for treeplex in self.treeplexes]
    header = {"payoff_form": self.payoff.form, "roots": roots}
    return header | {name: getattr(self, name) for name in HEADER_FIELDS}, arrays
