"""`compile_game`, which chooses the form of a game and compiles it; `estimate_size` and `load_compiled_game`."""

import os
from typing import TypeAlias

import pyspiel

from spiel_cfr import errors
from spiel_cfr._util import arguments, files, memory
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.enumerated_game import (
  FORMAT,
  KIND,
  EnumeratedGame,
  build_enumerated_game,
)
from spiel_cfr.games.compiled.game_facts import walked_facts
from spiel_cfr.games.compiled.saved_game import facts_of, from_file
from spiel_cfr.games.openspiel import loading
from spiel_cfr.games.openspiel.game_size import (
  DEFAULT_MAX_BYTES,
  DEFAULT_MAX_NODES,
  SizeEstimate,
  estimate_view,
)
from spiel_cfr.games.openspiel.game_view import ActionFilter, GameView, Infostates
from spiel_cfr.games.openspiel.perfect_recall_infostates import check_infostate
from spiel_cfr.games.openspiel.state_checks import warn_of_doubts
from spiel_cfr.games.openspiel.walk import enumerate_game
from spiel_cfr.games.private_moves import compile_private_moves, private_moves_game
from spiel_cfr.games.vector import vector_game
from spiel_cfr.games.vector.typed_tree import PUBLIC_TREE, restored
from spiel_cfr.poker import public_game

AnyGame: TypeAlias = str | pyspiel.Game | CompiledGame

# `compile_game` takes private moves form if a core history represents more histories than this on average.
_LEAST_HISTORIES_PER_CORE_HISTORY = 10


def compile_game(
  game: AnyGame,
  *,
  max_nodes: int = DEFAULT_MAX_NODES,
  max_bytes: int = DEFAULT_MAX_BYTES,
  progress: bool = True,
  action_filter: ActionFilter | None = None,
  vector_form: bool | None = None,
  infostate: Infostates | None = None,
) -> CompiledGame:
  """Walks a game's states once and returns the game as arrays.

  The form depends on the game:

  - vector form, see `games.compile_vector_game`: games of more than a million states in which chance deals private
    types, and all other moves are public;
  - vector form for hold'em, see `poker.compile_public_game`: poker with many hands;
  - private moves form, see `games.compile_private_moves_game`: games with too many histories to list, if they fit it;
  - a list of leaves: all other games.

      >>> compile_game("kuhn_poker")
      <EnumeratedGame kuhn_poker(): 58 states, 6 + 6 infosets, 30 leaves>

  Args:
    game: an OpenSpiel game or its string, such as `"leduc_poker(players=3)"`. Games with simultaneous moves are
      converted by OpenSpiel's own turn-based transform. A compiled game is returned as it is.
    max_nodes: largest number of states. A game that certainly has more, by `estimate_size`, is refused in two seconds.
    max_bytes: largest growth of the process's memory during the walk. States of some games take kilobytes.
    progress: whether to show a bar, if standard error is a terminal.
    action_filter: called with a state and its legal actions, returns those to keep. It must keep the same actions at
      all states of an infoset.
    vector_form: True compiles in vector form, or raises an error that says why it can't. False lists leaves. By
      default, vector form is tried if lists of leaves would be long.
    infostate: the names of infosets, for games without information state strings and for games whose players forget.
      "history" makes a name of the player's observations and actions in order. A function takes a state and the player
      to move, and returns a string. By default, names are OpenSpiel's information state strings.

  Raises:
    GameError: the game can't be loaded or solved; the subclass says why, see `spiel_cfr.errors`.
    ArgumentError: `max_nodes` or `max_bytes` is not a positive number, or `game` is not a game.
  """
  arguments.boolean(progress, "progress")
  if vector_form is not None:
    arguments.boolean(vector_form, "vector_form")
  if isinstance(game, CompiledGame):
    return game
  max_nodes = arguments.positive_integer(max_nodes, "max_nodes")
  max_bytes = arguments.positive_integer(max_bytes, "max_bytes")
  check_infostate(infostate)
  loaded = loading.load_game(game, needs_strings=infostate is None)
  if infostate is None and vector_form is not False and public_game.is_chosen_by_default(loaded):
    return public_game.compile_public_game(loaded, action_filter)
  view = GameView(loaded, action_filter, infostate=infostate)
  if vector_form or (vector_form is None and vector_game.is_chosen_by_default(view)):
    try:
      return vector_game.compile_vector_game(
        loaded,
        action_filter,
        infostate=infostate,
        max_nodes=max_nodes,
        max_bytes=max_bytes,
        progress=progress,
      )
    except errors.UnsupportedGameError:
      if vector_form:
        raise
  try:
    return _listed(view, max_nodes, max_bytes, progress)
  except errors.GameTooLargeError as error:
    # The traceback would keep the infosets and leaves of the walk in memory.
    error.with_traceback(None)
    memory.give_back()
    max_worlds = min(max_nodes, compile_private_moves.DEFAULT_MAX_WORLDS)
    if vector_form is False or not compile_private_moves.is_chosen_by_default(view, max_worlds):
      raise error from None
    return _in_private_moves_form(view, max_worlds, max_nodes, max_bytes, progress, error)


def _listed(view: GameView, max_nodes: int, max_bytes: int, progress: bool) -> EnumeratedGame:
  """Walks all states, and returns the game with a list of its leaves."""
  walk = enumerate_game(view, max_nodes, max_bytes, progress)
  warn_of_doubts(view.game, [names for names, *_ in walk.infosets], walk.payoff_range)
  facts = walked_facts(
    view.game,
    payoff_range=walk.payoff_range,
    constant_sum=walk.constant_sum,
    num_states=walk.num_states,
    num_terminals=walk.num_terminals,
  )
  return build_enumerated_game(facts, walk.infosets, walk.leaf_sequences, walk.leaf_payoffs, view)


def _in_private_moves_form(
  view: GameView,
  max_worlds: int,
  max_nodes: int,
  max_bytes: int,
  progress: bool,
  too_large: errors.GameTooLargeError,
) -> private_moves_game.PrivateMovesGame:
  """Compiles in private moves form a game that has too many histories to list, as `too_large` says.

  Raises:
    ImperfectRecallError: infostates forget. With `infostate="history"` they don't, and the game may fit.
    GameTooLargeError: `too_large`. The game does not fit the form, or the form saves little.
  """
  try:
    compiled = compile_private_moves.compile_view(
      view, max_worlds, max_bytes, progress, max_core_histories=max_nodes
    )
  except errors.ImperfectRecallError as refused:
    raise refused from too_large
  except (errors.UnsupportedGameError, errors.GameTooLargeError) as refused:
    raise too_large from refused
  if compiled.num_terminals <= _LEAST_HISTORIES_PER_CORE_HISTORY * compiled.num_core_histories:
    raise too_large
  return compiled


def estimate_size(
  game: str | pyspiel.Game,
  *,
  seconds: float = 1.0,
  action_filter: ActionFilter | None = None,
  infostate: Infostates | None = None,
) -> SizeEstimate:
  """Estimates the size of a compiled game, and the time and memory to compile it, without walking the game.

  Args:
    game: an OpenSpiel game or its string.
    seconds: time for the estimate. If it is too short for one random descent, the estimate is too small.
    action_filter: as of `compile_game`.
    infostate: as of `compile_game`.

  Raises:
    GameError: the game can't be loaded or solved, or a history is longer than the game declares.
    ArgumentError: `seconds` is not positive.
  """
  seconds = arguments.positive_number(seconds, "seconds")
  loaded = loading.load_game(game, needs_strings=infostate is None)
  return estimate_view(GameView(loaded, action_filter, infostate=infostate), seconds)


def load_compiled_game(
  path: str | os.PathLike[str],
) -> EnumeratedGame | vector_game.VectorGame | private_moves_game.PrivateMovesGame:
  """Reads a game that `CompiledGame.save` has written.

  Raises:
    FileFormatError: the file is not a saved game, is damaged, or has another version.
    OSError: the file can't be read.
  """
  header, arrays = files.read(path, KIND, FORMAT)
  try:
    if header["payoff_form"] == PUBLIC_TREE:
      facts = facts_of(header)
      return vector_game.VectorGame(facts, restored(arrays, facts))
    if header["payoff_form"] in private_moves_game.PAYOFF_FORMS:
      return private_moves_game.restored(header, arrays, facts_of(header))
    return from_file(header, arrays)
  # A valid checksum does not mean that `save` wrote the file.
  except (ArithmeticError, LookupError, MemoryError, TypeError, ValueError) as error:
    raise errors.FileFormatError(
      f"{path} is not a {KIND}: {type(error).__name__}: {error}."
    ) from error
