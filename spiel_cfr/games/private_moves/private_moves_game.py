"""Games in private moves form: two treeplexes, and rectangles of sequences for the payoffs."""

import dataclasses
import functools
import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pyspiel

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s, require
from spiel_cfr._util import arguments, files, memory
from spiel_cfr._util.doors import typed
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.enumerated_game import (
  FORMAT,
  KIND,
  view_of_string,
  without_lost_view,
)
from spiel_cfr.games.compiled.game_facts import GameFacts, walked_facts
from spiel_cfr.games.compiled.infosets import Infosets
from spiel_cfr.games.openspiel import loading
from spiel_cfr.games.openspiel.game_size import (
  DEFAULT_MAX_BYTES,
  ESTIMATE_SECONDS,
  estimate_classes,
  estimate_view,
)
from spiel_cfr.games.openspiel.game_view import ActionFilter, GameView, Infostates
from spiel_cfr.games.openspiel.infoset_features import Float32s, tensor_size
from spiel_cfr.games.openspiel.state_checks import SUM_TOLERANCE
from spiel_cfr.games.private_moves import saved_game
from spiel_cfr.games.private_moves.core_histories import ROOT, CoreHistories, walk_core_histories
from spiel_cfr.games.private_moves.cores import Split, split
from spiel_cfr.games.private_moves.infoset_states import InfosetStates, OfInfosets, PlayerInfosets
from spiel_cfr.games.private_moves.infostate_checks import check_infostates
from spiel_cfr.games.private_moves.rectangles import Rectangles, Rows
from spiel_cfr.games.private_moves.shared_rectangles import SharedRectangles
from spiel_cfr.games.private_moves.subgames import SharedSubgames
from spiel_cfr.games.private_moves.trunk import Cut, choose_cut
from spiel_cfr.games.private_moves.world_checks import check_worlds
from spiel_cfr.games.private_moves.world_keys import WorldKeys, candidates, checked
from spiel_cfr.games.private_moves.worlds import TERMINAL, Worlds, find_worlds, sample_worlds
from spiel_cfr.games.sequence_form.treeplex import Placement, build_treeplex

DEFAULT_MAX_WORLDS = 2_000_000
_PLAYERS = (0, 1)
# `compile_game` does not try the form for more histories, whose worlds would take too long to find.
_MOST_HISTORIES = 1e12
# Number of states on random histories by which `compile_game` estimates the number of worlds.
_SAMPLED_STATES = 5_000


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
    found: CoreHistories,
    shared: SharedSubgames | None,
    view: GameView | Literal["history"] | None,
  ) -> None:
    """Lays the game out, given the histories of infosets, the result of the walk, and subgames if they are shared.

    `view` is the view of the game that was walked, or the `infostate` of a view that is made when it is asked for.
    """
    self._states, self._own_histories = states, view == "history"
    if isinstance(view, GameView):
      self.view, self._own_histories = view, view.has_own_histories
    self.num_core_histories = found.num_core_histories
    places, root, first_infoset = list[Placement](), 0, 0
    for player in _PLAYERS:
      parents = states.players[player].parent.astype(np.int64)
      # Copies of one infoset are neighbours in the layout.
      ranks = None if shared is None else np.arange(len(parents), dtype=np.uint32)
      placed = build_treeplex(parents, states.num_actions(player), root, first_infoset, ranks=ranks)
      places.append(placed)
      root, first_infoset = placed.treeplex.end, first_infoset + len(parents)
    self._payoff = _rectangles(found, places) if shared is None else shared.payoff(places)
    self._places = [placed._replace(sequences=np.zeros(0, np.uint32)) for placed in places]
    super().__init__(facts, tuple(placed.treeplex for placed in places))

  @functools.cached_property
  def view(self) -> GameView:
    """View of the game that was walked; see `CompiledGame.view`."""
    return view_of_string(self, "history" if self._own_histories else None)

  def save(self, path: str | os.PathLike[str]) -> None:
    """Writes the game to a file, without the names of infosets: OpenSpiel's states have them.

    Raises:
      UnsupportedGameError: the names are a function of the caller, OpenSpiel can't load the game from its string, or
        the game has shared subgames.
      OSError: the file can't be written.
    """
    if not isinstance(self._payoff, Rectangles):
      raise errors.UnsupportedGameError(
        f"{self} has shared subgames, and such games are not saved: compile it again."
      )
    saved_game.check_names(self.view)
    header = dataclasses.asdict(self.facts) | {
      "payoff_form": Rectangles.form,
      "num_players": 2,
      "num_core_histories": self.num_core_histories,
      "own_histories": self._own_histories,
    }
    own = np.split(self.all_action_sequences, [len(self.actions[0])])
    roots = [tree.root for tree in self.treeplexes]
    places = [np.append(0, sequences - root) for sequences, root in zip(own, roots, strict=True)]
    files.write(
      path, KIND, FORMAT, header, saved_game.to_arrays(self._states, self._payoff, places)
    )

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
    placed = self._places[player]

    def names(infosets: Int64s) -> list[str]:
      return [
        self.view.infostate(state) for state in self._states.states(self.view, player, infosets)
      ]

    return Infosets(
      infostates=OfInfosets(len(placed.position), names),
      actions=self._states.actions(player),
      num_actions=self._states.num_actions(player),
      position=placed.position,
      first_sequence=placed.first_sequence,
      stride=placed.stride,
    )

  def first_states(self, player: int | None = None) -> Sequence[Any]:
    """Returns a state of each infoset, for one player or all in turn; states are made on demand."""
    if player is None:
      return [state for owner in _PLAYERS for state in self.first_states(owner)]
    player = arguments.integer(player, "player", 0, 1)
    count = len(self._places[player].position)
    return OfInfosets(count, functools.partial(self._states.states, self.view, player))

  @functools.cached_property
  def information_state_tensors(self) -> Float32s:
    """OpenSpiel's tensors of `first_states`, see `CompiledGame`; other states of an infoset are not compared."""
    everything = [self.tensors_of(player, slice(None)) for player in _PLAYERS]
    result: Float32s = np.concatenate(everything)
    result.flags.writeable = False
    return result

  def tensors_of(self, player: int, infosets: slice) -> Float32s:
    """Returns the tensors of some of a player's infosets, without making others.

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
    arrays = [self._payoff.arrays.values]
    for own, rows in zip(self._states.players, self._payoff.rows, strict=True):
      arrays += [own.parent, own.legal, *rows]
    for array in arrays:
      digest.update(f"{array.dtype.str} {array.shape}".encode())
      digest.update(array.tobytes())
    return digest.hexdigest()

  @property
  def size(self) -> str:
    return f"{self.num_states:,} states, {super().size} in private moves form"


def _rectangles(found: CoreHistories, places: list[Placement]) -> Rectangles:
  """Returns the payoffs of a walk from the root, given the layout of infosets."""
  rows = []
  for own, of_rectangle, placed in zip(found.players, found.rows, places, strict=True):
    tree = placed.treeplex
    classes = np.zeros(tree.end - tree.root, np.uint32)
    classes[placed.sequences - tree.root] = own.classes
    start = np.append(0, own.row_end).astype(np.uint32)
    rows.append(Rows(classes, start, own.entries.astype(np.uint32), of_rectangle.astype(np.uint32)))
  return Rectangles((rows[0], rows[1]), found.payoffs[:, found.payoff])


def is_chosen_by_default(view: GameView, max_worlds: int) -> bool:
  """Returns whether `compile_game` should try the form: whether random histories soon meet the same worlds again.

  For a game in Python or of very many histories, a failed trial takes minutes. Only `compile_private_moves_game` takes
  such games.
  """
  kind = view.game.get_type()
  if view.num_players != 2 or not kind.provides_observation_string:
    return False
  # Each history is a core history of its own.
  if kind.information == pyspiel.GameType.Information.PERFECT_INFORMATION:
    return False
  if type(view.new_initial_state()).__module__ != pyspiel.__name__:
    return False
  if estimate_view(view, ESTIMATE_SECONDS).states > _MOST_HISTORIES:
    return False
  try:
    met = sample_worlds(view, candidates(view.game)[0], _SAMPLED_STATES)
  except pyspiel.SpielError:
    return False
  return estimate_classes(met) < max_worlds


@typed
def compile_private_moves_game(
  game: str | pyspiel.Game,
  action_filter: ActionFilter | None = None,
  *,
  infostate: Infostates | None = None,
  keys: WorldKeys | None = None,
  max_worlds: int = DEFAULT_MAX_WORLDS,
  max_bytes: int = DEFAULT_MAX_BYTES,
  progress: bool = True,
) -> PrivateMovesGame:
  """Compiles a game of two players whose hidden moves leave a small true state, such as phantom tic-tac-toe.

  Phantom tic-tac-toe has 9,829,101,024 histories and takes 1 GB; see docs/private_moves.md.

      >>> compile_private_moves_game("dark_hex(num_rows=2,num_cols=2)")
      <PrivateMovesGame dark_hex(num_cols=2,num_rows=2): 441 states, 33 + 101 infosets in private moves form>

  Args:
    game: an OpenSpiel game or its string.
    action_filter: as of `compile_game`.
    infostate: as of `compile_game`. In dark hex, "history" makes the infosets of the literature: OpenSpiel's strings
      contain the number of moves, and later forget it.
    keys: the keys that identify a world; by default, several are tried.
    max_worlds: largest number of worlds.
    max_bytes: largest memory of the worlds, and then of the arrays of the walk.
    progress: whether to show bars, if standard error is a terminal.

  Returns:
    The compiled game, for any full-width solver.

  Raises:
    PrivateMovesError: the game is of another kind; the message has two histories that show it.
    ImperfectRecallError: infostates forget earlier infostates or actions of their owner.
    GameTooLargeError: there are too many worlds, or the arrays take too much memory.
    ArgumentError: an argument is out of its range, or see `GameView.legal_actions`.
    GameError: the game can't be loaded or walked.
  """
  max_worlds = arguments.positive_integer(max_worlds, "max_worlds")
  max_bytes = arguments.positive_integer(max_bytes, "max_bytes")
  loaded = loading.load_game(game, needs_strings=infostate is None)
  view = GameView(loaded, action_filter, infostate=infostate)
  return compile_view(view, max_worlds, max_bytes, progress, keys)


def compile_view(
  view: GameView,
  max_worlds: int,
  max_bytes: int,
  progress: bool,
  keys: WorldKeys | None = None,
  max_core_histories: int | None = None,
  depth: int | None = None,
) -> PrivateMovesGame:
  """Compiles the game of a view; arguments and errors as of `compile_private_moves_game`.

  Subgames are shared after `depth` moves; by default, only if the rows of the game would be long. Without a cut, the
  walk also raises GameTooLargeError after `max_core_histories` terminal core histories.
  """
  if view.num_players != 2:
    raise errors.PrivateMovesError(
      f"{view.game} has {view.num_players} players; private moves form is for two. compile_game lists its histories."
    )
  worlds, parts = _find(view, keys, max_worlds, max_bytes, progress)
  facts = _facts(view, worlds)
  cut = choose_cut(worlds, parts, max_bytes, depth)
  del worlds
  memory.give_back()
  return _walked(view, facts, parts, cut, max_core_histories, max_bytes, progress)


def _walked(
  view: GameView,
  facts: GameFacts,
  parts: Split,
  cut: Cut | None,
  max_core_histories: int | None,
  max_bytes: int,
  progress: bool,
) -> PrivateMovesGame:
  """Returns the game of some cores and sights, with subgames that are shared below a cut."""
  starts = ROOT if cut is None else cut.starts
  most = max_core_histories if cut is None else None
  found = walk_core_histories(parts, starts, most, max_bytes, progress)
  action = parts.cores.event_action
  if cut is None:
    shared, numbers = None, (found.num_states, found.num_histories)
    players = [
      PlayerInfosets(
        own.parent, legal[own.seen].astype(np.int32), own.opponent_sequence, own.chance_path
      )
      for own, legal in zip(found.players, parts.legal, strict=True)
    ]
    chance_action, chance_before = action[found.chance_event], found.chance_before
  else:
    shared = SharedSubgames(cut, parts, found)
    players, chance_action, chance_before = shared.infosets(action)
    numbers = shared.num_histories
  states = InfosetStates(
    players=(players[0], players[1]),
    action_lists=parts.action_lists,
    chance_action=chance_action,
    chance_before=chance_before,
  )
  num_states, num_terminals = (int(number.sum()) for number in numbers)
  facts = dataclasses.replace(facts, num_states=num_states, num_terminals=num_terminals)
  return PrivateMovesGame(facts, states, found, shared, view)


def restored(header: Mapping[str, Any], arrays: files.Arrays, facts: GameFacts) -> PrivateMovesGame:
  """Returns the game of a file's header and arrays.

  Raises:
    KeyError, ValueError: `PrivateMovesGame.save` does not write such a file.
  """
  states, found = saved_game.from_arrays(arrays, facts.num_distinct_actions)
  count, own_histories = header["num_core_histories"], header["own_histories"]
  require(type(own_histories) is bool, "own_histories is true or false")
  require(type(count) is int and 0 < count <= facts.num_terminals, "core histories are counted")
  saved_game.check_sums(found.payoffs, facts.constant_sum)
  found = found._replace(num_core_histories=count)
  return PrivateMovesGame(facts, states, found, None, "history" if own_histories else None)


def _find(
  view: GameView, keys: WorldKeys | None, max_worlds: int, max_bytes: int, progress: bool
) -> tuple[Worlds, Split]:
  """Returns worlds and their split, by the given keys or by the first candidates that fit."""
  refused = []
  for candidate in candidates(view.game) if keys is None else [checked(keys)]:
    try:
      check_infostates(view, candidate)
      worlds = find_worlds(view, candidate, max_worlds, max_bytes, progress)
      parts = split(worlds)
      check_worlds(view, worlds)
      return worlds, parts
    except errors.PrivateMovesError as error:
      refused.append(str(error))
  raise errors.PrivateMovesError(
    f"{view.game} does not fit private moves form, or the keys of its worlds leave something out: pass others as keys. "
    + " ".join(refused)
  )


def _facts(view: GameView, worlds: Worlds) -> GameFacts:
  """Returns the facts of a game, without the numbers of histories."""
  returns: Float64s = worlds.returns[worlds.mover == TERMINAL]
  low, high, sums = float(returns.min()), float(returns.max()), returns.sum(axis=1)
  is_constant = np.ptp(sums) <= SUM_TOLERANCE * max(abs(low), abs(high))
  return walked_facts(
    view.game,
    payoff_range=(low, high),
    constant_sum=float(sums[0]) if is_constant else None,
    num_states=0,
    num_terminals=0,
  )
