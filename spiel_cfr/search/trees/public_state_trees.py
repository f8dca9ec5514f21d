"""Public trees of games in any form.

Vector form has a `VectorTree`, and `universal_poker` with many hands a `RiverTree`. The histories of other games are
listed, in a `ListedTree`. `forest_of` refuses a `RiverTree` where private states must be listed.
"""

from spiel_cfr import errors
from spiel_cfr._util import arguments
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.loading import load_game
from spiel_cfr.games.vector import vector_game
from spiel_cfr.games.vector.vector_game import VectorGame
from spiel_cfr.poker import public_game
from spiel_cfr.poker.public_game import PublicGame, has_many_hands
from spiel_cfr.search.trees.history_tree import tree_of
from spiel_cfr.search.trees.listed_tree import ListedTree
from spiel_cfr.search.trees.rivers import RiverTree
from spiel_cfr.search.trees.search_tree import SearchTree
from spiel_cfr.search.trees.vector_tree import VectorTree

DEFAULT_MAX_HISTORIES = 5_000_000


@typed
def public_states(game: AnyGame, *, max_histories: int = DEFAULT_MAX_HISTORIES) -> SearchTree:
  """Returns the tree of a game's public states.

      tree = public_states("leduc_poker")
      tree.public_state_of(state).private_states(0)

  If common knowledge does not split a game, there is one public state for each number of moves, and the tree's `repr`
  says so. The tree of a game in vector form is its public tree. The tree of poker over vectors of hands consists of its
  rivers. These two list no histories.

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
  max_histories = arguments.positive_integer(max_histories, "max_histories")
  compiled = _compiled(game, max_histories)
  _check_two_player_constant_sum(compiled)
  if isinstance(compiled, VectorGame):
    return VectorTree(compiled)
  if isinstance(compiled, PublicGame) and has_many_hands(compiled.view.game):
    return RiverTree(compiled)
  return list_histories(compiled, max_histories)


def list_histories(game: AnyGame, max_histories: int = DEFAULT_MAX_HISTORIES) -> ListedTree:
  """Returns the tree of a game's public states by listing its histories, whatever its compiled form."""
  limit = arguments.positive_integer(max_histories, "max_histories")
  compiled = _compiled(game, limit, lists=True)
  _check_two_player_constant_sum(compiled)
  histories = tree_of(compiled.view, limit)
  if [*map(list, compiled.infostates)] != histories.names:
    raise errors.InconsistentInfosetError(
      f"{compiled} has other infosets than its OpenSpiel states. Compile it again: files do not keep action filters."
    )
  return ListedTree(compiled, histories)


def _compiled(game: AnyGame, max_histories: int, *, lists: bool = False) -> CompiledGame:
  """Returns a game in vector form where `compile_game` chooses it, and otherwise with a list of its leaves.

  Its histories will be listed if it is not in vector form. The limit of histories therefore holds for its compilation.

  Args:
    game: see `public_states`.
    max_histories: see `public_states`.
    lists: whether histories will be listed in any case.
  """
  if isinstance(game, CompiledGame):
    return game.original
  loaded = load_game(game)
  if not lists and public_game.is_chosen_by_default(loaded):
    return compile_game(loaded)
  if not lists and vector_game.is_chosen_by_default(GameView(loaded)):
    try:
      return compile_game(loaded, vector_form=True)
    except errors.UnsupportedGameError:
      pass
  try:
    return compile_game(loaded, max_nodes=max_histories, vector_form=False)
  except errors.GameTooLargeError as error:
    # The traceback would keep the leaves of the walk in memory.
    raise errors.GameTooLargeError(
      f"{loaded} has more than {max_histories:,} histories, or too many for the memory. Raise max_histories."
    ) from error.with_traceback(None)


def _check_two_player_constant_sum(compiled: CompiledGame) -> None:
  if not compiled.is_two_player_constant_sum:
    raise errors.UnsupportedGameError(
      f"Search is for constant-sum games of two players; {compiled.name} is not one. No search is safe with more "
      "players or with returns that do not sum to a constant."
    )
