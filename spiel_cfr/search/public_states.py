"""Public states of a game, of either form, and checks of the cuts that users name."""

from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from spiel_cfr import errors
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.games.vector.vector_game import VectorGame
from spiel_cfr.search.listed_states import PublicState, PublicTree
from spiel_cfr.search.public_trees import AnyPublicState, State
from spiel_cfr.search.shared_trees import tree_of
from spiel_cfr.search.vector_states import VectorPublicTree

DEFAULT_MAX_HISTORIES = 5_000_000


@overload
def public_states(  # type: ignore[overload-overlap]
  game: VectorGame, *, max_histories: int = DEFAULT_MAX_HISTORIES
) -> VectorPublicTree: ...
@overload
def public_states(game: AnyGame, *, max_histories: int = DEFAULT_MAX_HISTORIES) -> PublicTree: ...
def public_states(
  game: AnyGame, *, max_histories: int = DEFAULT_MAX_HISTORIES
) -> PublicTree | VectorPublicTree:
  """Returns the tree of a game's public states.

      tree = public_states("leduc_poker")
      tree.public_state_of(state).private_states(0)

  A game that common knowledge does not split has one public state a length; its `repr` says so. In vector form public
  states are the nodes of the public tree, and no histories are listed.

  Args:
    game: a compiled game, or what `compile_game` takes; of an abstraction, the original. If it is not in vector form,
      it is walked once.
    max_histories: how many histories it may have then.

  Raises:
    UnsupportedGameError: the game is not a constant-sum game of two players, or infosets span lengths.
    GameTooLargeError: there are more histories.
    InconsistentInfosetError: the game was compiled with an action filter that a file has not kept.
    ArgumentError: `max_histories` is not a positive integer.
    GameError: see `compile_game`.
  """
  compiled = compile_game(game).original
  if not isinstance(compiled, VectorGame):
    return list_histories(compiled, max_histories)
  _check_kind(compiled)
  arguments.positive_integer(max_histories, "max_histories")
  return VectorPublicTree(compiled)


def list_histories(game: AnyGame, max_histories: int = DEFAULT_MAX_HISTORIES) -> PublicTree:
  """Returns the tree of a game's public states by listing its histories, whatever form it is compiled to."""
  limit = arguments.positive_integer(max_histories, "max_histories")
  compiled = compile_game(game).original
  _check_kind(compiled)
  found = tree_of(compiled.view, limit)
  if [*map(list, compiled.infostates)] != found.names:
    raise errors.InconsistentInfosetError(
      f"{compiled} has other infosets than its states have now; compile it again. Files do not keep action filters."
    )
  return PublicTree(compiled, found)


def _check_kind(compiled: CompiledGame) -> None:
  if not compiled.is_two_player_constant_sum:
    raise errors.UnsupportedGameError(
      f"Search is for constant-sum games of two players; {compiled.name} is not one. With more players, or "
      "other sums, no search is safe."
    )


def cut_of(
  game: AnyGame,
  cut: Sequence[PublicState] | None,
  max_histories: int = DEFAULT_MAX_HISTORIES,
) -> list[PublicState]:
  """Returns a cut as it is, or a game's natural one, of listed histories.

  Raises:
    ArgumentError: the public states are of another game, or one is below another; or there are none.
    GameError: as `public_states` does.
  """
  if cut is None:
    cut = list_histories(game, max_histories).natural_cut()
  return check_cut(game, cut, PublicState)


def check_cut(game: AnyGame, cut: Any, kind: type[State]) -> list[State]:
  """Returns a cut as it is.

  Raises:
    ArgumentError: the public states are of another game or kind, or one is below another; or there are none.
    GameError: see `compile_game`.
  """
  if not isinstance(cut, list | tuple) or not all(isinstance(each, kind) for each in cut):
    raise errors.ArgumentError(
      f"cut must be a list of public states, each a {kind.__name__}, not {arguments.shortened(cut)}."
    )
  if not cut:
    raise errors.ArgumentError(f"The cut of {game} has no public state: name a cut that has some.")
  check_game(game, cut[0])
  tree = cut[0].tree
  marked = np.zeros(len(tree), bool)
  marked[[state.number for state in cut]] = True
  if len(tree.first_of(marked)) < len(cut):
    raise errors.ArgumentError(
      "The public states of a cut are not below each other, and named once."
    )
  return list(cut)


def check_game(game: AnyGame, state: AnyPublicState) -> None:
  """Checks that a public state is one of a game.

  Raises:
    ArgumentError: it is not.
    GameError: see `compile_game`.
  """
  wanted, found = compile_game(game).original, state.tree.game
  if wanted.digest != found.digest:
    problem = "compiled otherwise" if found.name == wanted.name else f"not of {wanted.name}"
    raise errors.ArgumentError(
      f"{state!r} is a public state of {found.name}, {problem}: call public_states on this compiled game."
    )
