"""Games of which every state was walked."""

import functools
import hashlib
import importlib.metadata
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s, Uint32s, aligned, require, require_array
from spiel_cfr._util import files
from spiel_cfr.games.compiled.compiled_game import CompiledGame, Infosets
from spiel_cfr.games.compiled.file_checks import check_game, check_header, check_infostates
from spiel_cfr.games.compiled.forced_moves import Decisions, without_forced_moves
from spiel_cfr.games.openspiel import loading
from spiel_cfr.games.openspiel.first_states import IntArray, first_states
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.walk import enumerate_game
from spiel_cfr.games.payoffs.build_payoff import FORMS, build_payoff, quickest
from spiel_cfr.games.payoffs.payoff import Payoff, PayoffArrays
from spiel_cfr.games.payoffs.private_types import public_states
from spiel_cfr.games.sequence_form.treeplex import Placement, Treeplex, build_treeplex

_KIND = "compiled game of spiel_cfr"
_FORMAT = 2
_FIELDS = (
  "game_string",
  "num_distinct_actions",
  "payoff_range",
  "constant_sum",
  "num_states",
  "num_terminals",
)
_OF_TREEPLEX = ("groups", "parent")
_OF_INFOSETS = ("actions", "num_actions", "position", "first_sequence", "stride")
_NAMES = (*_OF_TREEPLEX, *_OF_INFOSETS, "infostates", "infostate_lengths")


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
    first_histories: IntArray | None = None,
  ) -> None:
    """Takes the attributes; without a view, the game is loaded from its string when it is needed.

    Files hold no `first_histories`, see `games.openspiel.first_states`: then the game is walked for them when they
    are asked for.
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
    self._first_histories = first_histories

  @property
  def view(self) -> GameView:
    """See the base class.

    Raises:
      UnsupportedGameError: the game was pickled or read from a file, and OpenSpiel can't make it of its string.
    """
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

  def first_states(self) -> list[Any]:
    """See the base class."""
    return first_states(self.view, self.infostates, self._first_histories)

  @functools.cached_property
  def every_infoset(self) -> Decisions:
    """See the base class."""
    every = super().every_infoset
    return every._replace(payoff=quickest(every.payoff))

  @functools.cached_property
  def decisions(self) -> Decisions:
    """See the base class: without forced moves, unless there are shared infosets, whose buckets are of all infosets."""
    every = self.every_infoset
    return every if self.shared_infosets else without_forced_moves(every, self.treeplexes)

  @property
  def size(self) -> str:
    """See the base class."""
    infosets = " + ".join(f"{treeplex.num_infosets:,}" for treeplex in self.treeplexes)
    return f"{self.num_states:,} states, {infosets} infosets, {self.num_leaves:,} leaves"

  @property
  def num_bytes(self) -> int:
    """Memory of the arrays; infostate strings and first histories, which no solver looks at, not counted."""
    arrays: list[npt.NDArray[Any]] = []
    for treeplex, own in zip(self.treeplexes, self.infosets, strict=True):
      arrays += [getattr(treeplex, name) for name in _OF_TREEPLEX]
      arrays += [getattr(own, name) for name in _OF_INFOSETS]
    return self.payoff.num_bytes + sum(array.nbytes for array in arrays)

  def with_payoff(
    self, payoff: Payoff, payoff_range: tuple[float, float] | None = None, **other: Any
  ) -> "EnumeratedGame":
    """Returns the game with other payoffs on the same treeplexes, or with the same ones in another form.

    Args:
      payoff: the payoffs.
      payoff_range: the smallest and the largest return of any player; by default, what it was.
      **other: `constant_sum`, `view`, `treeplexes` and `infosets`, likewise.
    """
    result = EnumeratedGame.__new__(EnumeratedGame)
    result.__dict__.update(self._attributes())
    result._payoff = payoff
    result.payoff_range = payoff_range or self.payoff_range
    result.constant_sum = other.get("constant_sum", self.constant_sum)
    result.treeplexes = other.get("treeplexes", self.treeplexes)
    result._infosets = other.get("infosets", self._infosets)
    result._view = other.get("view", self._view)
    if "infosets" in other:
      result._first_histories = None
    return result

  def visiting_all(self) -> "EnumeratedGame":
    """Returns the game, whose iterations leave no infoset out."""
    result = self.with_payoff(self.payoff)
    result.__dict__["decisions"] = result.every_infoset
    return result

  def save(self, path: str | os.PathLike[str]) -> None:
    """See the base class.

    Raises:
      OSError: the file can't be written.
    """
    header, arrays = self._contents
    header["open_spiel_version"] = self.open_spiel_version
    files.write(path, _KIND, _FORMAT, header, arrays)

  @functools.cached_property
  def digest(self) -> str:
    """See the base class."""
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
      for source, names in ((treeplex, _OF_TREEPLEX), (own, _OF_INFOSETS)):
        arrays |= {f"{player}.{name}": getattr(source, name) for name in names}
    roots = [(treeplex.root, treeplex.end, treeplex.first_infoset) for treeplex in self.treeplexes]
    header = {"payoff_form": self.payoff.form, "roots": roots}
    return header | {name: getattr(self, name) for name in _FIELDS}, arrays


def enumerated_game(
  view: GameView, max_nodes: int, max_bytes: int, progress: bool | None
) -> EnumeratedGame:
  """Walks a game and lays it out; see `compile_game`."""
  walk = enumerate_game(view, max_nodes, max_bytes, progress)
  placements, payoff = lay_out(
    walk.parents, walk.num_actions, walk.leaf_sequences, walk.leaf_payoffs
  )
  return EnumeratedGame(
    game_string=str(view.game),
    open_spiel_version=importlib.metadata.version("open_spiel"),
    treeplexes=tuple(placed.treeplex for placed in placements),
    infosets=tuple(
      Infosets(
        infostates, actions, num_actions, placed.position, placed.first_sequence, placed.stride
      )
      for infostates, actions, num_actions, placed in zip(
        walk.infostates, walk.actions, walk.num_actions, placements, strict=True
      )
    ),
    payoff=payoff,
    num_distinct_actions=view.game.num_distinct_actions(),
    payoff_range=walk.payoff_range,
    constant_sum=walk.constant_sum,
    num_states=walk.num_states,
    num_terminals=walk.num_terminals,
    view=view,
    first_histories=walk.first_histories,
  )


def lay_out(
  parents: Sequence[Int64s],
  num_actions: Sequence[Int64s],
  leaf_sequences: Uint32s,
  leaf_payoffs: Float64s,
) -> tuple[list[Placement], Payoff]:
  """Builds the treeplexes and the payoff of a game.

  Args:
    parents: as of `Enumeration`.
    num_actions: likewise.
    leaf_sequences: likewise; written over with the numbering of the treeplexes.
    leaf_payoffs: likewise.

  Returns:
    Each player's treeplex, and where everything has gone; and the payoff.
  """
  placements: list[Placement] = []
  states = []
  root = first_infoset = 0
  for player, (above, counts) in enumerate(zip(parents, num_actions, strict=True)):
    found = public_states(leaf_sequences, player, counts)
    placed = build_treeplex(above, counts, root, first_infoset, found)
    placements.append(placed)
    laid_out = np.empty_like(found)
    laid_out[placed.position] = found
    states.append(laid_out)
    leaf_sequences[player] = placed.sequences[leaf_sequences[player]]
    root, first_infoset = placed.treeplex.end, first_infoset + len(above)
  treeplexes = [placed.treeplex for placed in placements]
  return placements, build_payoff(leaf_sequences, leaf_payoffs, treeplexes, states)


def cache_path(folder: Path, view: GameView) -> Path | None:
  """Returns where a game's compiled form is kept: its name tells all that the form depends on.

  Returns None for a game that its string does not describe, such as one read from a text or a file, one written in
  Python, which may be edited, or one with a filter or infostates of its own.
  """
  game = view.game
  if view.is_changed or "filename" in game.get_parameters() or loading.is_python_game(game):
    return None
  if not loading.can_be_loaded_again(game):
    return None
  version = importlib.metadata.version("open_spiel")
  key = json.dumps([str(game), version, _FORMAT])
  digest = hashlib.sha256(key.encode()).hexdigest()[:32]
  name = re.sub(r"\W+", "_", game.get_type().short_name)
  return folder / f"{name}-{digest}.npz"


def load_compiled_game(
  path: str | os.PathLike[str], view: GameView | None = None
) -> EnumeratedGame:
  """Reads a game that `CompiledGame.save` has written.

  Args:
    path: the file.
    view: the game that it must be, if that is loaded already.

  Raises:
    FileFormatError: the file is not such a file, is damaged, is of a newer version, or is of another game than `view`.
    OSError: the file can't be read.
  """
  header, arrays = files.read(path, _KIND, _FORMAT)
  try:
    game = _from_arrays(header, arrays, view)
    check_game(game)
  # A right checksum does not mean that we wrote the file.
  except (ArithmeticError, LookupError, MemoryError, TypeError, ValueError) as error:
    raise errors.FileFormatError(
      f"{path} is not a {_KIND}: {type(error).__name__}: {error}."
    ) from error
  if view is not None:
    game.check_view(view)
  return game


def _from_arrays(
  header: dict[str, Any], arrays: files.Arrays, view: GameView | None
) -> EnumeratedGame:
  check_header(header)
  treeplexes, infosets = [], []
  for player, (root, end, first_infoset) in enumerate(header["roots"]):
    tree = {name: arrays[f"{player}.{name}"] for name in _OF_TREEPLEX}
    treeplexes.append(Treeplex(root, end, first_infoset, **tree))
    lengths = arrays[f"{player}.infostate_lengths"]
    check_infostates(arrays[f"{player}.infostates"], lengths)
    text = arrays[f"{player}.infostates"].tobytes()
    ends = np.cumsum(lengths, dtype=np.int64).tolist()
    if text.isascii():
      # Pieces of a string are made faster than strings of pieces.
      string = text.decode()
      infostates = [string[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
    else:
      infostates = [text[begin:end].decode() for begin, end in zip([0, *ends], ends, strict=False)]
    columns = {name: arrays[f"{player}.{name}"] for name in _OF_INFOSETS}
    infosets.append(Infosets(infostates, **columns))
  payoff = {name: arrays[f"payoff.{name}"] for name in PayoffArrays._fields}
  require_array(payoff["values"], "values", np.float64, -1)
  payoff["values"] = aligned(payoff["values"])
  known = {f"{player}.{name}" for player in range(len(treeplexes)) for name in _NAMES}
  require(set(arrays) == known | {f"payoff.{name}" for name in payoff}, "these are its arrays")
  fields = {name: header[name] for name in _FIELDS}
  return EnumeratedGame(
    **fields | {"payoff_range": tuple(header["payoff_range"])},
    open_spiel_version=header["open_spiel_version"],
    treeplexes=tuple(treeplexes),
    infosets=tuple(infosets),
    payoff=FORMS[header["payoff_form"]](PayoffArrays(**payoff)),
    view=view,
  )
