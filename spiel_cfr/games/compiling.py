"""The front door: a game, or its string, becomes arrays."""

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
  facts_of,
  from_file,
)
from spiel_cfr.games.compiled.from_arrays import game_of_parts
from spiel_cfr.games.compiled.game_facts import walked_facts
from spiel_cfr.games.openspiel import loading
from spiel_cfr.games.openspiel.game_size import (
  DEFAULT_MAX_BYTES,
  DEFAULT_MAX_NODES,
  SizeEstimate,
  estimate_view,
)
from spiel_cfr.games.openspiel.game_view import ActionFilter, GameView, Infostates
from spiel_cfr.games.openspiel.state_checks import warn_of_doubts
from spiel_cfr.games.openspiel.walk import enumerate_game
from spiel_cfr.games.private_moves import private_moves_game
from spiel_cfr.games.vector.typed_tree import PUBLIC_TREE, restored
from spiel_cfr.games.vector.vector_game import VectorGame, compile_vector_game, is_worth_it
from spiel_cfr.poker import public_game

AnyGame: TypeAlias = str | pyspiel.Game | CompiledGame

# `compile_game` takes private moves form where there are more histories than this for each core history.
_LEAST_GAIN = 10


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
  """Walks a game's states once and returns it as arrays.

  Games of more than a million states in which chance deals private types, and all else is public, come in vector form,
  see `games.compile_vector_game`; so does poker with many hands, see `poker.compile_public_game`. Games whose histories
  are too many come in private moves form if they fit it, see `games.compile_private_moves_game`.

      >>> compile_game("kuhn_poker")
      <EnumeratedGame kuhn_poker(): 58 states, 6 + 6 infosets, 30 leaves>

  Args:
    game: an OpenSpiel game or its string, such as `"leduc_poker(players=3)"`. Games with simultaneous moves are
      converted by OpenSpiel's own turn-based transform. A compiled game is returned as it is.
    max_nodes: how many states the game may have. A game that certainly has more, by `estimate_size`, is refused in two
      seconds.
    max_bytes: how much the memory of the process may grow during the walk. Some games have states of kilobytes.
    progress: whether to show a bar, if standard error is a terminal.
    action_filter: called with a state and its legal actions, returns those to keep. It must keep the same at all
      states of an infoset.
    vector_form: whether to compile in vector form, or else an error says what is in the way. By default, that is tried
      where lists of leaves would be long.
    infostate: how infosets are told apart, for games without information state strings and for games whose players
      forget: "history" for the player's own observations and actions in order, or a function of a state and the player
      who is to move there that returns a string. By default, OpenSpiel's information state strings.

  Raises:
    GameError: the game can't be loaded or solved; the subclass says why, see `spiel_cfr.errors`.
    ArgumentError: `max_nodes` or `max_bytes` is not a positive number, or `game` is no game.
  """
  if isinstance(game, CompiledGame):
    return game
  max_nodes = arguments.positive_integer(max_nodes, "max_nodes")
  max_bytes = arguments.positive_integer(max_bytes, "max_bytes")
  if infostate is not None and infostate != "history" and not callable(infostate):
    raise errors.ArgumentError(
      f'infostate must be "history" or a function of state and player, not {infostate!r}.'
    )
  loaded = loading.load_game(game, names_infostates=infostate is None)
  if infostate is None and vector_form is not False and public_game.is_worth_it(loaded):
    return public_game.compile_public_game(loaded, action_filter)
  view = GameView(loaded, action_filter, infostate=infostate)
  if vector_form or (vector_form is None and is_worth_it(view)):
    try:
      return compile_vector_game(
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
    walk = enumerate_game(view, max_nodes, max_bytes, progress)
  except errors.GameTooLargeError as error:
    # Its traceback would keep all that has been found.
    error.with_traceback(None)
    memory.give_back()
    if vector_form is None and private_moves_game.is_worth_it(view):
      try:
        worlds = min(max_nodes, private_moves_game.DEFAULT_MAX_WORLDS)
        compiled = private_moves_game.compile_view(view, worlds, max_bytes, progress)
      except (errors.UnsupportedGameError, errors.GameTooLargeError) as refused:
        raise error from refused
      if compiled.num_terminals > _LEAST_GAIN * compiled.num_core_histories:
        return compiled
    raise error from None
  warn_of_doubts(view.game, walk.infostates, walk.payoff_range)
  facts = walked_facts(
    view.game,
    payoff_range=walk.payoff_range,
    constant_sum=walk.constant_sum,
    num_states=walk.num_states,
    num_terminals=walk.num_terminals,
  )
  return game_of_parts(
    facts,
    walk.infostates,
    walk.actions,
    walk.parents,
    walk.num_actions,
    walk.leaf_sequences,
    walk.leaf_payoffs,
    view,
  )


def estimate_size(
  game: str | pyspiel.Game,
  *,
  seconds: float = 1.0,
  action_filter: ActionFilter | None = None,
  infostate: Infostates | None = None,
) -> SizeEstimate:
  """Estimates, without walking a game, what `compile_game` would find, and how long and how much memory it would take.

  Args:
    game: an OpenSpiel game or its string.
    seconds: how long to look; too short for a single descent, it makes the estimate too small.
    action_filter: as of `compile_game`.
    infostate: as of `compile_game`.

  Raises:
    GameError: the game can't be loaded or solved, or goes on for more moves than it says that there can be.
    ArgumentError: `seconds` is not positive.
  """
  seconds = arguments.positive_number(seconds, "seconds")
  loaded = loading.load_game(game, names_infostates=infostate is None)
  return estimate_view(GameView(loaded, action_filter, infostate=infostate), seconds)


def load_compiled_game(path: str | os.PathLike[str]) -> EnumeratedGame | VectorGame:
  """Reads a game that `CompiledGame.save` has written.

  Raises:
    FileFormatError: the file is not such a file, is damaged, or of another version.
    OSError: the file can't be read.
  """
  header, arrays = files.read(path, KIND, FORMAT)
  try:
    if header["payoff_form"] == PUBLIC_TREE:
      facts = facts_of(header)
      return VectorGame(facts, restored(arrays, facts))
    return from_file(header, arrays)
  # A right checksum does not mean that we wrote the file.
  except (ArithmeticError, LookupError, MemoryError, TypeError, ValueError) as error:
    raise errors.FileFormatError(
      f"{path} is not a {KIND}: {type(error).__name__}: {error}."
    ) from error
