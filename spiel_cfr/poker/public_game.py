"""Compiled poker games in vector form: a public tree with one vector over private hands at each public state.

`compile_public_game` walks the betting in OpenSpiel, lists the boards and joins both in a `HandTree`. `PokerTerminals`
computes the payoffs.
"""

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyspiel

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Int32s, range_starts
from spiel_cfr._util import arguments
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.games.compiled.abstraction_map import AbstractionMap
from spiel_cfr.games.compiled.game_facts import walked_facts
from spiel_cfr.games.compiled.infosets import Infosets
from spiel_cfr.games.openspiel import loading
from spiel_cfr.games.openspiel.game_view import ActionFilter, GameView
from spiel_cfr.games.payoffs.payoff import Payoff
from spiel_cfr.games.vector.layout import Layout
from spiel_cfr.games.vector.parts import PayoffBuilder
from spiel_cfr.games.vector.public_tree import PLAYERS
from spiel_cfr.games.vector.public_tree_game import PublicTreeGame, threads_of_parts
from spiel_cfr.poker import cards
from spiel_cfr.poker.betting_line import find_decision
from spiel_cfr.poker.betting_tree import (
  BettingNode,
  NodeKind,
  check_random_deals,
  walk_betting_tree,
)
from spiel_cfr.poker.boards import list_boards
from spiel_cfr.poker.deal import Deal, endgame_in_full_game, find_deal
from spiel_cfr.poker.endgames import Endgame
from spiel_cfr.poker.game_estimate import GameEstimate, estimate_boards
from spiel_cfr.poker.hand_payoff import PokerTerminals
from spiel_cfr.poker.hand_tree import HandTree, first_deal, hand_tree
from spiel_cfr.poker.merged_hands import map_suits
from spiel_cfr.poker.rake import Rake, RakedReturns, raked
from spiel_cfr.poker.street_names import StreetNames

# Number of random deals that are compared with OpenSpiel.
CHECKED_DEALS = 10_000
# `compile_game` chooses the vector form for games with at least this many private hands.
WORTHWHILE_HANDS = 50
# Games with more sequences than this are cut into parts, if chance deals public cards.
LARGE = 1 << 20
# A game with merged suits has infostates if the unmerged game has at most this many infosets.
MOST_NAMES = 200_000


class PublicGame(PublicTreeGame):
  """Poker game in vector form. Make one with `compile_public_game`."""

  tree: HandTree
  # Forced moves are rare in poker.
  _skips_forced = False

  def __init__(
    self,
    view: GameView,
    tree: HandTree,
    dtype: npt.DTypeLike,
    num_threads: int | None,
    original: "PublicGame | None" = None,
    map_from_original: AbstractionMap | None = None,
  ) -> None:
    """Takes a public tree, and the other arguments of `PublicTreeGame`."""
    facts = walked_facts(
      view.game,
      payoff_range=(-tree.largest_payoff, tree.largest_payoff),
      constant_sum=None if tree.is_raked else 0.0,
      num_states=tree.num_nodes + tree.num_terminals,
      num_terminals=tree.num_terminals,
    )
    super().__init__(facts, tree, dtype, num_threads, view, original, map_from_original)

  def __reduce__(self) -> tuple[Any, ...]:
    """Pickles the constructor's arguments."""
    arguments_of_init = (
      self._view, self.tree, self.dtype, self.num_threads, self._original, self._map,
    )  # fmt: skip
    return type(self), arguments_of_init

  def _builder(self, layout: Layout, above: Int32s) -> PayoffBuilder:
    """Returns the function that builds the payoffs of a part."""
    return functools.partial(PokerTerminals, self.tree, layout, above)

  @property
  def _bounding_payoff(self) -> Payoff:
    # Bounds from any part hold for the whole game, see `PokerTerminals`. The payoff of the whole need not be built.
    return super()._bounding_payoff if self.partition is None else self.partition.parts[0].payoff

  @property
  def size(self) -> str:
    """The numbers of public states and infosets in words, and "with rake" for a game with rake."""
    says_rake = self.tree.is_raked and self._original is None
    return super().size + (", with rake" if says_rake else "")

  @functools.cached_property
  def infosets(self) -> tuple[Infosets, ...]:
    """The infosets of each player; those of a game with merged suits have the infostates of the unmerged game."""
    if self._map is None and self.tree.is_merged:
      raise self._no_names()
    if self._map is None:
      return super().infosets
    result = []
    for named, treeplex in zip(self.original.infosets, self.treeplexes, strict=True):
      sequences = self._map.sequences[named.sequences]
      first_sequences = sequences[1 + range_starts(named.num_actions)]
      position = np.searchsorted(treeplex.first_sequences, first_sequences).astype(np.uint32)
      result.append(
        Infosets(named.infostates, named.actions, named.num_actions, sequences, position)
      )
    return tuple(result)

  @typed
  def infostates_at(self, moves: Sequence[int | str] = ()) -> dict[str, str]:
    """Returns the infostate of each hand of the player who decides after some moves.

        game.infostates_at([1, 300, 1, "2c"])["AsKs"]  # check, bet to 300, call, the deuce of clubs

    Only the names at this decision are computed. With merged suits, they are those of the unmerged game.

    Args:
      moves: the moves from the beginning of the game on, in order. A player's action is OpenSpiel's: in hold'em, 0
        folds, 1 checks or calls, and a larger number is the player's total in the pot after a bet or raise. A deal of
        public cards is a string, such as `"2c"`.

    Returns:
      A dictionary from hands, such as `"AsKs"` with the higher card first, to infostates. It has the hands with a
      positive weight that share no card with the board, in descending order of their cards. Of two cards with one rank,
      spades are the highest, then hearts, diamonds and clubs.

    Raises:
      ArgumentError: a move is not possible, or no player decides after the moves.
      UnsupportedGameError: the game has merged suits and no names of infosets.
    """
    game = self.original
    assert isinstance(game, PublicGame)
    tree = game.tree
    if tree.is_merged:
      raise self._no_names()
    number, node = find_decision(tree, moves)
    board, player = tree.boards[number], tree.nodes[node].player
    actions = tree.actions_above(tree.node_at(number, node))
    root, result = game.view.new_initial_state(), {}
    hands = [
      (sorted(tree.deal.hands[row].tolist(), reverse=True), row)
      for row in board.hands[player].tolist()
    ]
    for hand, row in sorted(hands, reverse=True):
      state = root.clone()
      for action in (*first_deal(tree.deal, board, player, row), *actions):
        state.apply_action(action)
      name = "".join(cards.card_name(card, tree.deal.num_suits) for card in hand)
      result[name] = game.view.infostate(state)
    return result

  def _no_names(self) -> errors.UnsupportedGameError:
    """Returns the error for a game with merged suits whose infosets have no names."""
    return errors.UnsupportedGameError(
      f"{self.name} was compiled with merge_suits=True, and without it would have more than {MOST_NAMES:,} infosets, "
      "too many for names. Read strategies with game.layout.sequences(node)."
    )

  @functools.cached_property
  def digest(self) -> str:
    """The digest of the game, see `PublicTreeGame.digest`; for an abstraction, the digest of its map."""
    return super().digest if self._map is None else self._map.digest(self.original.digest)


def is_chosen_by_default(game: pyspiel.Game) -> bool:
  """Returns True for a poker game with many hands or several deals of public cards, which needs the vector form."""
  try:
    deal = find_deal(game)
  except errors.UnsupportedGameError:
    return False
  return len(deal.hands) >= WORTHWHILE_HANDS or len(deal.streets) > 1


@typed
def compile_public_game(
  game: str | pyspiel.Game | Endgame,
  action_filter: ActionFilter | None = None,
  *,
  partitioned: bool | None = None,
  dtype: npt.DTypeLike = np.float64,
  num_threads: int = 1,
  merge_suits: bool = False,
  rake: Rake | None = None,
) -> PublicGame:
  """Compiles a poker game in vector form, without listing deals.

  Args:
    game: `kuhn_poker`, `leduc_poker` or `universal_poker` with two players, as a game or a string; or an `Endgame`. The
      game of an `Endgame` is hold'em with every size of bet as an action, for filters such as `bet_sizes`.
    action_filter: function of a state and its legal actions that returns the actions to keep. It sees the states of an
      arbitrary deal, and must not look at private cards.
    partitioned: whether solvers visit the subtrees after each deal of public cards one at a time, which takes little
      memory and allows several threads. By default they do in large games.
    dtype: the precision of solvers: float64, or float32 for half the memory and about half the time.
    num_threads: number of threads of solvers of a partitioned game. Results do not depend on it.
    merge_suits: whether isomorphic boards and hands are merged, which takes less time and memory for the same values;
      see `suit_symmetries`. The game is then an abstraction of the unmerged game, `original`, and its policies have the
      infostates of the unmerged game. If the unmerged game has more than 200,000 infosets, it is not built: `original`
      is the merged game itself, which has no infostates.
    rake: the part of each pot that the house keeps, which makes it a general-sum game.

  Returns:
    The compiled game, for any full-width solver.

  Raises:
    UnsupportedGameError: the game is not of these kinds, or OpenSpiel plays it in a way that does not fit.
    GameTooLargeError: the game has too many public states or sequences, or takes more memory than is free.
    ArgumentError: the filter returns no legal action, or another argument is out of its range.
    GameError: the string can't be loaded.
  """
  dtype = arguments.precision(dtype)
  num_threads = arguments.positive_integer(num_threads, "num_threads")
  arguments.boolean(merge_suits, "merge_suits")
  if partitioned is not None:
    arguments.boolean(partitioned, "partitioned")
  view, deal, nodes = _walk(game, action_filter, rake)
  boards = list_boards(deal, nodes, merged=merge_suits)
  estimate_boards(nodes, boards, dtype).check_memory()
  check_random_deals(view.game, deal, nodes, CHECKED_DEALS, np.random.default_rng(0))
  tree = hand_tree(deal, nodes, boards)
  options = dtype, threads_of_parts(tree, num_threads, partitioned, LARGE)
  merged = PublicGame(view, tree, *options)
  if not tree.is_merged or _num_whole_infosets(tree) > MOST_NAMES:
    return merged
  whole = PublicGame(view, hand_tree(deal, nodes, list_boards(deal, nodes)), *options)
  return PublicGame(view, tree, *options, whole, map_suits(whole.layout, merged.layout))


def _num_whole_infosets(tree: HandTree) -> int:
  """Returns the number of infosets of the game without merged suits."""
  return sum(
    board.copies * len(board.hands[player]) * len(tree.decisions(player, number))
    for number, board in enumerate(tree.boards)
    for player in PLAYERS
  )


@typed
def estimate(
  game: str | pyspiel.Game | Endgame,
  action_filter: ActionFilter | None = None,
  *,
  dtype: npt.DTypeLike = np.float64,
  merge_suits: bool = False,
) -> GameEstimate:
  """Returns the size and memory of the game that `compile_public_game` would make of the same arguments.

  It takes a second or two, and makes no large arrays.
  """
  _, deal, nodes = _walk(game, action_filter)
  # Without showdowns, `list_boards` does not compute strengths.
  without_showdowns = [node for node in nodes if node.kind is not NodeKind.SHOWDOWN]
  boards = list_boards(deal, without_showdowns, merged=merge_suits)
  return estimate_boards(nodes, boards, arguments.precision(dtype))


def _walk(
  game: str | pyspiel.Game | Endgame, action_filter: ActionFilter | None, rake: Rake | None = None
) -> tuple[GameView, Deal, list[BettingNode]]:
  """Walks the betting of a game, with the rake; returns the view, the deal and the nodes."""
  if isinstance(game, Endgame):
    loaded, deal = endgame_in_full_game(game)
  else:
    loaded = game if isinstance(game, pyspiel.Game) else loading.load_game(game)
    deal = find_deal(loaded)
  view = GameView(loaded, action_filter, infostate=StreetNames.of(deal))
  nodes = walk_betting_tree(view, deal)
  if rake is not None:
    nodes = raked(nodes, deal, rake)
    if any(node.rake for node in nodes):
      view = view.with_returns(RakedReturns.of(nodes, deal))
  return view, deal, nodes


def has_many_hands(game: pyspiel.Game) -> bool:
  """Returns True for a game of `universal_poker` with too many pairs of hands for a list of histories."""
  parameters = game.get_parameters()
  if game.get_type().short_name != "universal_poker":
    return False
  deck = parameters["numRanks"] * parameters["numSuits"]
  return math.comb(deck, parameters["numHoleCards"]) >= WORTHWHILE_HANDS
