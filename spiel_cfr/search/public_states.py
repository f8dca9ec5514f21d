"""Public states of a game, of either form, and checks of the cuts that users name."""

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

  A game that common knowledge does not split has one public state a length; its `repr` says so. In vector form public
  states are the nodes of the public tree, in poker over vectors of hands the rivers, and no histories are listed.

  Args:
    game: a compiled game, or what `compile_game` takes; of an abstraction, the original. If it is not in vector form,
      it is walked once.
    max_histories: how many histories it may have then.

  Raises:
    UnsupportedGameError: the game is not a constant-sum game of two players, or infosets span lengths.
    GameTooLargeError: there are more histories.
    InconsistentInfosetError: the game was compiled with an action filter that a file has not kept.
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
  """Returns the tree of a game's public states by listing its histories, whatever form it is compiled to."""
  limit = arguments.positive_integer(max_histories, "max_histories")
  compiled = compile_game(game).original
  _check_kind(compiled)
  found = tree_of(compiled.view, limit)
  if [*map(list, compiled.infostates)] != found.names:
    raise errors.InconsistentInfosetError(
      f"{compiled} has other infosets than its states have now; compile it again. Files do not keep action filters."
    )
  return ListedTree(compiled, found)


def _check_kind(compiled: CompiledGame) -> None:
  if not compiled.is_two_player_constant_sum:
    raise errors.UnsupportedGameError(
      f"Search is for constant-sum games of two players; {compiled.name} is not one. With more players, or "
      "other sums, no search is safe."
    )


def check_cut(game: AnyGame, cut: Any) -> list[PublicState]:
  """Returns a cut as it is.

  Raises:
    ArgumentError: the public states are of another game, or one is below another; or there are none.
    GameError: see `compile_game`.
  """
  if not isinstance(cut, list | tuple) or not all(isinstance(each, PublicState) for each in cut):
    raise errors.ArgumentError(
      f"cut must be a list of public states, each a PublicState, not {arguments.shortened(cut)}."
    )
  if not cut:
    raise errors.ArgumentError(f"The cut of {game} has no public state: name a cut that has some.")
  wanted, tree = compile_game(game).original, cut[0].tree
  for state in cut:
    its = state.tree.game
    # Trees of several forms number a game's public states differently.
    alike = type(state.tree) is type(tree)
    if its.digest != wanted.digest or not alike:
      problem = f"not of {wanted.name}"
      if its.name == wanted.name:
        problem = (
          "compiled otherwise" if alike else "in a tree of another form than the first of the cut"
        )
      raise errors.ArgumentError(
        f"{state!r} is a public state of {its.name}, {problem}: call public_states on this compiled game."
      )
  marked = np.zeros(len(tree), bool)
  marked[[state.number for state in cut]] = True
  if len(tree.first_of(marked)) < len(cut):
    raise errors.ArgumentError(
      "The public states of a cut are not below each other, and named once."
    )
  return list(cut)
