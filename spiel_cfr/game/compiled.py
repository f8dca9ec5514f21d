"""A game as arrays: what one walk over its states leaves for the solvers, and how that is kept in a file."""

import dataclasses
import functools
import hashlib
import importlib.metadata
import json
import os
import pathlib
import re
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyspiel

from spiel_cfr import arguments, errors, files
from spiel_cfr.game import loading
from spiel_cfr.game.enumerate import enumerate_game
from spiel_cfr.game.payoff import Payoff
from spiel_cfr.game.subtrees import Subtree
from spiel_cfr.game.treeplex import Treeplex, build_treeplex
from spiel_cfr.game.typed_patterns import build_payoff, public_states
from spiel_cfr.game.view import ActionFilter, GameView
from spiel_cfr.kernels.arrays import Int64s, Uint32s, Uint64s, aligned

_KIND = "compiled game of spiel_cfr"
_FORMAT = 1
DEFAULT_MAX_NODES = 20_000_000
DEFAULT_MAX_BYTES = 1_500_000_000

Game: TypeAlias = "pyspiel.Game"


@dataclasses.dataclass(frozen=True, eq=False)
class CompiledGame:
  """A game in sequence form. Make one with `compile_game` or `load_compiled_game`.

  Where the text says "in order of discovery", infosets of a player are in the order of OpenSpiel's `TabularPolicy`.

  Attributes:
    game_string: OpenSpiel's string for the game; of the turn-based form where the game was simultaneous.
    open_spiel_version: the release that walked the game.
    treeplexes: each player's decision space.
    payoff: the players' payoffs.
    infostates: each player's information state strings, in order of discovery.
    actions: int64, each player's legal actions, infoset by infoset in order of discovery, in one flat array.
    num_actions: int64 of shape (infosets,), a player, in order of discovery.
    num_distinct_actions: OpenSpiel's number of the same name.
    payoff_range: the smallest and the largest return of any player at any terminal state.
    constant_sum: what the players' returns always sum to, None where that differs.
    num_states: how many states the game has, chance and terminal ones included.
    num_terminals: how many of them are terminal.
  """

  game_string: str
  open_spiel_version: str
  treeplexes: tuple[Treeplex, ...]
  payoff: Payoff
  infostates: tuple[list[str], ...]
  actions: tuple[Int64s, ...]
  num_actions: tuple[Int64s, ...]
  num_distinct_actions: int
  payoff_range: tuple[float, float]
  constant_sum: float | None
  num_states: int
  num_terminals: int
  _view: GameView | None = dataclasses.field(default=None, repr=False)

  @functools.cached_property
  def view(self) -> GameView:
    """How the game is walked. A game from a file is shown whole: files keep no action filter."""
    return self._view or GameView(loading.load_game(self.game_string))

  @property
  def game(self) -> Game:
    """The game, sequential, as OpenSpiel has it; without the action filter."""
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
  def subtrees(self) -> list[Subtree]:
    """The trunk and the subtrees of a game that solvers are to go through part by part; else none."""
    return []

  @property
  def end(self) -> int:
    """Length of an array over the sequences of all players, padding included."""
    return self.treeplexes[-1].end

  @property
  def num_leaves(self) -> int:
    """How many tuples of last sequences have a payoff for player 0."""
    return self.payoff.num_leaves

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
    """A row a player: first group, one past the last, root, one past the last sequence."""
    ends = np.cumsum([len(treeplex.groups) for treeplex in self.treeplexes])
    return np.array(
      [
        (end - len(treeplex.groups), end, treeplex.root, treeplex.end)
        for end, treeplex in zip(ends, self.treeplexes, strict=True)
      ],
      np.uint64,
    )

  @functools.cached_property
  def all_action_sequences(self) -> Int64s:
    """The sequence of every entry of `actions`, of all players end to end."""
    result = [np.zeros(0, np.int64)]
    for treeplex, num_actions in zip(self.treeplexes, self.num_actions, strict=True):
      starts = np.cumsum(num_actions) - num_actions
      index = np.arange(num_actions.sum()) - np.repeat(starts, num_actions)
      first = np.repeat(treeplex.first_sequence.astype(np.int64), num_actions)
      result.append(first + index * np.repeat(treeplex.stride.astype(np.int64), num_actions))
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
    mask = np.zeros((self.num_infosets, self.num_distinct_actions), np.int64)
    mask[self.action_cells] = 1
    mask.flags.writeable = False
    return mask

  @property
  def num_bytes(self) -> int:
    """Memory of the arrays, the infostate strings not counted."""
    arrays: list[npt.NDArray[Any]] = [*self.actions, *self.num_actions]
    for treeplex in self.treeplexes:
      arrays += [
        treeplex.groups,
        treeplex.parent,
        treeplex.position,
        treeplex.first_sequence,
        treeplex.stride,
      ]
    return self.payoff.num_bytes + sum(array.nbytes for array in arrays)

  def __str__(self) -> str:
    """Returns the size in words."""
    infosets = " + ".join(f"{treeplex.num_infosets:,}" for treeplex in self.treeplexes)
    return (
      f"{self.game_string}: {self.num_states:,} states, {infosets} infosets, "
      f"{self.num_leaves:,} leaves"
    )

  def save(self, path: str | os.PathLike[str]) -> None:
    """Writes the game to one `.npz` file without pickles, whole or not at all.

    Raises:
      OSError: the file can't be written.
    """
    header, arrays = self._contents
    files.write(
      path, _KIND, _FORMAT, header | {"open_spiel_version": self.open_spiel_version}, arrays
    )

  @functools.cached_property
  def digest(self) -> str:
    """Hexadecimal SHA-256 of the game: the same for two compiled games only if solvers can't tell them apart."""
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
      "payoff.table": self.payoff.table,
      "payoff.rows": self.payoff.rows,
      "payoff.others": self.payoff.others,
      "payoff.values": self.payoff.values,
    }
    for player, treeplex in enumerate(self.treeplexes):
      for name in _TREEPLEX_ARRAYS:
        arrays[f"{player}.{name}"] = getattr(treeplex, name)
      encoded = [infostate.encode() for infostate in self.infostates[player]]
      arrays[f"{player}.infostates"] = np.frombuffer(b"".join(encoded), np.uint8)
      arrays[f"{player}.infostate_lengths"] = np.array([len(text) for text in encoded], np.uint32)
      arrays[f"{player}.actions"] = self.actions[player]
      arrays[f"{player}.num_actions"] = self.num_actions[player]
    roots = [(treeplex.root, treeplex.end, treeplex.first_infoset) for treeplex in self.treeplexes]
    header = {"payoff_form": self.payoff.form, "roots": roots}
    return header | {name: getattr(self, name) for name in _HEADER_FIELDS}, arrays


_TREEPLEX_ARRAYS = ("groups", "parent", "position", "first_sequence", "stride")
_HEADER_FIELDS = (
  "game_string",
  "num_distinct_actions",
  "payoff_range",
  "constant_sum",
  "num_states",
  "num_terminals",
)


def compile_game(
  game: "str | Game | CompiledGame",
  *,
  max_nodes: int = DEFAULT_MAX_NODES,
  max_bytes: int = DEFAULT_MAX_BYTES,
  cache_dir: str | os.PathLike[str] | None = None,
  progress: bool | None = None,
  action_filter: ActionFilter | None = None,
  vector_form: bool | None = None,
) -> CompiledGame:
  """Walks a game's states once and returns it as arrays.

  Poker games of two players with many hands come in vector form: their public states alone are walked, and deals are
  never listed, see `poker.compile_public_game`.

  Args:
    game: an OpenSpiel game or its string, such as `"leduc_poker(players=3)"`. Games with simultaneous moves are
      converted by OpenSpiel's own turn-based transform. A compiled game is returned as it is.
    max_nodes: how many states the game may have.
    max_bytes: how much the memory of the process may grow during the walk. Some games have states of kilobytes.
    cache_dir: a folder to keep compiled games in; the second time, the walk is skipped.
    progress: whether to show a progress bar; by default, on a terminal.
    action_filter: called with a state and its legal actions, returns those to keep. It must keep the same at all
      states of an infoset. A game with a filter is not kept in `cache_dir`.
    vector_form: whether to compile in vector form. By default, that is done for games of `universal_poker` with 50
      private hands or more; with fewer hands, as in Kuhn and Leduc poker, lists of deals are as fast.

  Returns:
    The compiled game.

  Raises:
    GameError: the game can't be loaded or solved; the subclass says why, see `spiel_cfr.errors`.
    ArgumentError: `max_nodes` or `max_bytes` is not a positive number, or `game` is no game.
  """
  if isinstance(game, CompiledGame):
    return game
  # Poker builds on this module.
  from spiel_cfr.poker import public_game

  max_nodes = arguments.positive_integer(max_nodes, "max_nodes")
  max_bytes = arguments.positive_integer(max_bytes, "max_bytes")
  loaded = loading.load_game(game)
  if vector_form is None:
    vector_form = public_game.is_worth_it(loaded)
  if vector_form:
    return public_game.compile_public_game(loaded, action_filter)
  view = GameView(loaded, action_filter)
  cached = None
  if cache_dir is not None and action_filter is None:
    cached = _cache_path(pathlib.Path(cache_dir), loaded)
  if cached is not None and cached.exists():
    try:
      compiled = load_compiled_game(cached)
      if compiled.num_states > max_nodes:
        raise errors.GameTooLargeError(
          f"The game has {compiled.num_states:,} states, more than max_nodes={max_nodes:,}."
        )
      return dataclasses.replace(compiled, _view=view)
    except errors.FileFormatError:
      pass  # A cache may be damaged or of another version: walk again, and write it anew.
  compiled = _compile(view, max_nodes, max_bytes, progress)
  if cached is not None:
    cached.parent.mkdir(parents=True, exist_ok=True)
    compiled.save(cached)
  return compiled


def _compile(view: GameView, max_nodes: int, max_bytes: int, progress: bool | None) -> CompiledGame:
  walk = enumerate_game(view, max_nodes, max_bytes, progress)
  treeplexes: list[Treeplex] = []
  states = [
    public_states(walk.leaf_sequences, player, num_actions)
    for player, num_actions in enumerate(walk.num_actions)
  ]
  root = first_infoset = 0
  for player, (parents, num_actions) in enumerate(zip(walk.parents, walk.num_actions, strict=True)):
    treeplex, placed = build_treeplex(parents, num_actions, root, first_infoset, states[player])
    walk.leaf_sequences[player] = placed[walk.leaf_sequences[player]]
    treeplexes.append(treeplex)
    root, first_infoset = treeplex.end, first_infoset + len(parents)
  return CompiledGame(
    game_string=str(view.game),
    open_spiel_version=importlib.metadata.version("open_spiel"),
    treeplexes=tuple(treeplexes),
    payoff=build_payoff(walk.leaf_sequences, walk.leaf_payoffs, treeplexes, states),
    infostates=tuple(walk.infostates),
    actions=tuple(walk.actions),
    num_actions=tuple(walk.num_actions),
    num_distinct_actions=view.game.num_distinct_actions(),
    payoff_range=walk.payoff_range,
    constant_sum=walk.constant_sum,
    num_states=walk.num_states,
    num_terminals=walk.num_terminals,
    _view=view,
  )


def _cache_path(folder: pathlib.Path, game: Game) -> pathlib.Path | None:
  """Returns where a game's compiled form is kept: its name tells all that the form depends on.

  Returns None for a game that its string does not describe, such as one read from a text or a file.
  """
  if "filename" in game.get_parameters():
    return None
  try:
    loading.load_game(str(game))
  except errors.GameError:
    return None
  version = importlib.metadata.version("open_spiel")
  key = json.dumps([str(game), version, _FORMAT])
  digest = hashlib.sha256(key.encode()).hexdigest()[:32]
  name = re.sub(r"\W+", "_", game.get_type().short_name)
  return folder / f"{name}-{digest}.npz"


def load_compiled_game(path: str | os.PathLike[str]) -> CompiledGame:
  """Reads a game that `CompiledGame.save` has written.

  Raises:
    FileFormatError: the file is not such a file, is damaged, or is of a newer version.
    OSError: the file can't be read.
  """
  header, arrays = files.read(path, _KIND, _FORMAT)
  try:
    return _from_arrays(header, arrays)
  except (ValueError, KeyError, TypeError, IndexError) as error:
    raise errors.FileFormatError(f"{path} is not a {_KIND}: {error}.") from error


def _from_arrays(header: dict[str, Any], arrays: files.Arrays) -> CompiledGame:
  treeplexes, infostates = [], []
  for player, (root, end, first_infoset) in enumerate(header["roots"]):
    columns = {name: arrays[f"{player}.{name}"] for name in _TREEPLEX_ARRAYS}
    treeplexes.append(Treeplex(root=root, end=end, first_infoset=first_infoset, **columns))
    text = arrays[f"{player}.infostates"].tobytes()
    ends = np.cumsum(arrays[f"{player}.infostate_lengths"], dtype=np.int64).tolist()
    infostates.append(
      [text[begin:end].decode() for begin, end in zip([0, *ends], ends, strict=False)]
    )
  players = range(len(treeplexes))
  fields = {name: header[name] for name in _HEADER_FIELDS}
  return CompiledGame(
    **fields | {"payoff_range": tuple(header["payoff_range"])},
    open_spiel_version=header["open_spiel_version"],
    treeplexes=tuple(treeplexes),
    payoff=Payoff(
      form=header["payoff_form"],
      table=arrays["payoff.table"],
      rows=arrays["payoff.rows"],
      others=arrays["payoff.others"],
      values=aligned(arrays["payoff.values"]),
    ),
    infostates=tuple(infostates),
    actions=tuple(arrays[f"{player}.actions"] for player in players),
    num_actions=tuple(arrays[f"{player}.num_actions"] for player in players),
  )
