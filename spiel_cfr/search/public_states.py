"""Public states of a game in any form, and checks of cuts that users pass."""

from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._util import arguments
from spiel_cfr._util.doors import typed
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.games.vector.vector_game import VectorGame
from spiel_cfr.poker.public_game import PublicGame, has_many_hands
from spiel_cfr.search.history_tree import tree_of
from spiel_cfr.search.listed_tree import ListedTree
from spiel_cfr.search.rivers import RiverTree
from spiel_cfr.search.search_tree import PublicState, SearchTree
from spiel_cfr.search.vector_tree import VectorTree

DEFAULT_MAX_HISTORIES = 5_000_000


@typed
def public_states(game: AnyGame, *, max_histories: int = DEFAULT_MAX_HISTORIES) -> SearchTree:
  """Returns the tree of a game's public states.

      tree = public_states("leduc_poker")
      tree.public_state_of(state).private_states(0)

  If common knowledge does not split a game, there is one public state for each number of moves, and the tree's `repr`
  says so. Two forms of games do not list histories. In vector form, public states are the nodes of the public tree. In
  poker over vectors of hands, they are the rivers.

  Args:
    game: a compiled game, or anything that `compile_game` accepts. For an abstraction, the original game is used. A
      game that is not in vector form is walked once.
    max_histories: the largest number of histories in that walk.

  Raises:
    UnsupportedGameError: the game is not a constant-sum game of two players, or an infoset is reached after different
      numbers of moves.
    GameTooLargeError: the game has more histories.
    InconsistentInfosetError: the game was compiled with an action filter, which files do not keep.
    ArgumentError: `max_histories` is not a positive integer, or no public cards are dealt.
    GameError: see `compile_game`.
  """
  compiled = compile_game(game).original
  _check_kind(compiled)
  arguments.positive_integer(max_histories, "max_histories")
  if isinstance(compiled, VectorGame):
    return VectorTree(compiled)
  if isinstance(compiled, PublicGame) and has_many_hands(compiled.view.game):
    return RiverTree(compiled)
  return list_histories(compiled, max_histories)


def list_histories(game: AnyGame, max_histories: int = DEFAULT_MAX_HISTORIES) -> ListedTree:
  """Returns the tree of a game's public states by listing its histories, whatever its compiled form."""
  limit = arguments.positive_integer(max_histories, "max_histories")
  compiled = compile_game(game).original
  _check_kind(compiled)
  found = tree_of(compiled.view, limit)
  if [*map(list, compiled.infostates)] != found.names:
    raise errors.InconsistentInfosetError(
      f"{compiled} has other infosets than its OpenSpiel states. Compile it again: files do not keep action filters."
    )
  return ListedTree(compiled, found)


def _check_kind(compiled: CompiledGame) -> None:
  if not compiled.is_two_player_constant_sum:
    raise errors.UnsupportedGameError(
      f"Search is for constant-sum games of two players; {compiled.name} is not one. No search is safe with more "
      "players or with returns that do not sum to a constant."
    )


def check_cut(game: AnyGame, cut: Any) -> list[PublicState]:
  """Returns a cut as a list.

  Raises:
    ArgumentError: the cut is empty, a public state belongs to another game, or one is below another.
    GameError: see `compile_game`.
  """
  if not isinstance(cut, list | tuple) or not all(isinstance(each, PublicState) for each in cut):
    raise errors.ArgumentError(
      f"cut must be a list of public states, each a PublicState, not {arguments.shortened(cut)}."
    )
  if not cut:
    raise errors.ArgumentError(
      f"The cut of {game} has no public state. A cut must contain at least one."
    )
  wanted, tree = compile_game(game).original, cut[0].tree
  for state in cut:
    own_game = state.tree.game
    # Indices of public states differ between the forms of trees.
    alike = type(state.tree) is type(tree)
    if own_game.digest != wanted.digest or not alike:
      problem = f"not of {wanted.name}"
      if own_game.name == wanted.name:
        problem = (
          "compiled otherwise" if alike else "in a tree of another form than the first of the cut"
        )
      raise errors.ArgumentError(
        f"{state!r} is a public state of {own_game.name}, {problem}: call public_states on this compiled game."
      )
  marked = np.zeros(len(tree), bool)
  marked[[state.number for state in cut]] = True
  if len(tree.first_of(marked)) < len(cut):
    raise errors.ArgumentError(
      "The public states of a cut must be distinct, and not below each other."
    )
  return list(cut)
