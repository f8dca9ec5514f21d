"""Compilation of games in private moves form: worlds, their split, the choice of a cut, and the walk."""

import dataclasses
from collections.abc import Sequence

import numpy as np
import pyspiel

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int32s
from spiel_cfr._util import arguments, memory
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.games.compiled.game_facts import GameFacts, walked_facts
from spiel_cfr.games.openspiel import loading
from spiel_cfr.games.openspiel.checked_calls import TERMINAL
from spiel_cfr.games.openspiel.game_size import (
  DEFAULT_MAX_BYTES,
  ESTIMATE_SECONDS,
  estimate_classes,
  estimate_view,
)
from spiel_cfr.games.openspiel.game_view import ActionFilter, GameView, Infostates
from spiel_cfr.games.openspiel.state_checks import SUM_TOLERANCE
from spiel_cfr.games.private_moves.core_histories import (
  GAME_START,
  CoreHistories,
  walk_core_histories,
)
from spiel_cfr.games.private_moves.cores import Split, split_worlds
from spiel_cfr.games.private_moves.infoset_states import InfosetStates, PlayerInfosets
from spiel_cfr.games.private_moves.infostate_checks import check_infostates
from spiel_cfr.games.private_moves.private_moves_game import PrivateMovesGame
from spiel_cfr.games.private_moves.rectangles import DiscoveredSides, Rectangles, placed_rectangles
from spiel_cfr.games.private_moves.subgames import SharedSubgames
from spiel_cfr.games.private_moves.trunk import choose_cut
from spiel_cfr.games.private_moves.world_checks import check_worlds
from spiel_cfr.games.private_moves.world_keys import WorldKeys, candidates, checked
from spiel_cfr.games.private_moves.worlds import Worlds, find_worlds, sample_worlds
from spiel_cfr.games.sequence_form.treeplex import Placement

DEFAULT_MAX_WORLDS = 2_000_000
# `compile_game` does not try the form for more histories, whose worlds would take too long to find.
_MOST_HISTORIES = 1e12
# Number of states on random histories by which `compile_game` estimates the number of worlds.
_SAMPLED_STATES = 5_000


def is_chosen_by_default(view: GameView, max_worlds: int) -> bool:
  """Returns whether `compile_game` should try the form: whether random histories soon visit the same worlds again.

  A game in Python, or with very many histories, is not tried, because a failure would take minutes.
  `compile_private_moves_game` takes such games.
  """
  game_type = view.game.get_type()
  if view.num_players != 2 or not game_type.provides_observation_string:
    return False
  # Each history is another core history.
  if game_type.information == pyspiel.GameType.Information.PERFECT_INFORMATION:
    return False
  if type(view.new_initial_state()).__module__ != pyspiel.__name__:
    return False
  if estimate_view(view, ESTIMATE_SECONDS).states > _MOST_HISTORIES:
    return False
  try:
    visits = sample_worlds(view, candidates(view.game)[0], _SAMPLED_STATES)
  except pyspiel.SpielError:
    return False
  return estimate_classes(visits) < max_worlds


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
    infostate: as of `compile_game`. In dark hex, "history" makes the infosets of the literature. OpenSpiel's strings
      contain the number of moves, which players do not know.
    keys: the functions that identify a world; by default, several are tried.
    max_worlds: largest number of worlds.
    max_bytes: largest memory of the worlds, and then of the arrays of the walk.
    progress: whether to show bars, if standard error is a terminal.

  Returns:
    The compiled game, for any full-width solver.

  Raises:
    PrivateMovesError: the game does not fit the form; the message has two histories that show it.
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

  Args:
    view: the game.
    max_worlds: as of `compile_private_moves_game`.
    max_bytes: as of `compile_private_moves_game`.
    progress: as of `compile_private_moves_game`.
    keys: as of `compile_private_moves_game`.
    max_core_histories: the number of terminal core histories after which a walk without a cut raises
      GameTooLargeError; None for no limit.
    depth: the number of moves after which subgames are shared; None shares subgames only if sides would be long.
  """
  if view.num_players != 2:
    raise errors.PrivateMovesError(
      f"{view.game} has {view.num_players} players; private moves form is for two. compile_game lists its histories."
    )
  worlds, split = _find(view, keys, max_worlds, max_bytes, progress)
  facts = _facts(view, worlds)
  cut = choose_cut(worlds, split, max_bytes, depth)
  del worlds
  memory.give_back()
  starts = GAME_START if cut is None else cut.start_of_subgame
  most = max_core_histories if cut is None else None
  walked = walk_core_histories(split, starts, most, max_bytes, progress)
  num_core_histories = walked.num_core_histories
  memory.give_back()
  found = _WholeGame(split, walked) if cut is None else SharedSubgames(cut, split, walked)
  # Shared subgames do not keep the sides of the walks, which are long.
  del walked
  (first, second), chance_action, chance_before = found.infosets(split.cores.event_action)
  states = InfosetStates((first, second), split.action_lists, chance_action, chance_before)
  num_states, num_terminals = found.history_counts
  facts = dataclasses.replace(facts, num_states=num_states, num_terminals=num_terminals)
  return PrivateMovesGame(facts, states, num_core_histories, found.payoff, cut is not None, view)


class _WholeGame:
  """Infosets and payoffs of a game without a cut, before they are laid out; see also `SharedSubgames`."""

  def __init__(self, split: Split, walked: CoreHistories) -> None:
    """Takes cores and sights, and the walk of the game."""
    self._split, self._walked = split, walked

  @property
  def history_counts(self) -> tuple[int, int]:
    """The numbers of all histories and of terminal histories."""
    return int(self._walked.num_states.sum()), int(self._walked.num_terminals.sum())

  def infosets(self, action_of_event: Int32s) -> tuple[list[PlayerInfosets], Int32s, Int32s]:
    """Returns each player's infosets, the last action of each path of chance, and the path before that action."""
    players = [
      PlayerInfosets(
        walked.parent,
        legal[walked.seen].astype(np.int32),
        walked.opponent_sequence,
        walked.chance_path,
      )
      for (walked, *_), legal in zip(self._walked.players, self._split.legal, strict=True)
    ]
    return players, action_of_event[self._walked.chance_event], self._walked.chance_before

  def payoff(self, placements: Sequence[Placement]) -> Rectangles:
    """Returns the payoffs, given the layout of both players' infosets."""
    walked = self._walked
    first, second = (
      DiscoveredSides(sides.classes, sides.side_end, sides.entries, side_of_rectangle)
      for sides, side_of_rectangle in zip(walked.players, walked.sides, strict=True)
    )
    return placed_rectangles((first, second), walked.payoffs[:, walked.payoff], placements)


def _find(
  view: GameView, keys: WorldKeys | None, max_worlds: int, max_bytes: int, progress: bool
) -> tuple[Worlds, Split]:
  """Returns worlds and their split, by the given keys or by the first keys that fit."""
  refused = []
  for candidate in candidates(view.game) if keys is None else [checked(keys)]:
    try:
      check_infostates(view, candidate)
      worlds = find_worlds(view, candidate, max_worlds, max_bytes, progress)
      split = split_worlds(worlds)
      check_worlds(view, worlds)
      return worlds, split
    except errors.PrivateMovesError as error:
      refused.append(str(error))
  raise errors.PrivateMovesError(
    f"{view.game} does not fit private moves form, or the keys of its worlds leave something out: pass others as keys. "
    + " ".join(refused)
  )


def _facts(view: GameView, worlds: Worlds) -> GameFacts:
  """Returns the facts of a game; its numbers of histories are 0 so far."""
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
