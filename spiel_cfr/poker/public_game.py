"""Poker games in vector form: a public tree, and one vector over private hands at each public state.

`hand_tree` has the public tree, `showdown_kernels` the computation of payoffs.
"""

import functools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pyspiel

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Int32s, Int64s, Uint32s
from spiel_cfr._util import arguments
from spiel_cfr._util.doors import typed
from spiel_cfr.games.compiled.abstraction_map import AbstractionMap
from spiel_cfr.games.compiled.game_facts import walked_facts
from spiel_cfr.games.compiled.infosets import Infosets
from spiel_cfr.games.openspiel import loading
from spiel_cfr.games.openspiel.game_view import ActionFilter, GameView
from spiel_cfr.games.sequence_form.treeplex import FIRST_INFOSET, FIRST_SEQUENCE, STRIDE, Treeplex
from spiel_cfr.games.vector.layout import Layout
from spiel_cfr.games.vector.parts import PayoffBuilder
from spiel_cfr.games.vector.public_tree import PLAYERS
from spiel_cfr.games.vector.public_tree_game import PublicTreeGame
from spiel_cfr.poker.betting_tree import BettingNode, Kind, check_random_deals, walk_betting_tree
from spiel_cfr.poker.boards import list_boards
from spiel_cfr.poker.deal import Deal, endgame_in_full_game, find_deal
from spiel_cfr.poker.endgames import Endgame
from spiel_cfr.poker.game_estimate import GameEstimate, estimate_boards
from spiel_cfr.poker.hand_payoff import PokerTerminals
from spiel_cfr.poker.hand_tree import HandTree, hand_tree
from spiel_cfr.poker.merged_hands import map_suits
from spiel_cfr.poker.rake import Rake, RakedReturns
from spiel_cfr.poker.street_names import StreetNames

# Number of random deals that are compared with OpenSpiel.
CHECKED_DEALS = 10_000
# `compile_game` chooses the vector form if a player may have this many hands.
WORTHWHILE_HANDS = 50
# Games with more sequences than this are cut into parts, if chance deals public cards.
LARGE = 1 << 20
# Merged games have names of infosets if the whole game has at most this many infosets.
MOST_NAMES = 200_000


class PublicGame(PublicTreeGame):
  """A poker game in vector form. Make one with `compile_public_game`; a turn endgame has millions of infosets."""

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
    """Takes the view, the tree and the precision; arguments as of `PublicTreeGame`."""
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
    made_of = self._view, self.tree, self.dtype, self.num_threads, self._original, self._map
    return type(self), made_of

  def _builder(self, layout: Layout, above: Int32s) -> PayoffBuilder:
    return functools.partial(PokerTerminals.build, self.tree, layout, above)

  @property
  def size(self) -> str:
    """Numbers of public states and infosets, and whether there is a rake."""
    is_named = self.tree.is_raked and self._original is None
    return super().size + (", with rake" if is_named else "")

  @functools.cached_property
  def infosets(self) -> tuple[Infosets, ...]:
    """Each player's infosets; an abstraction has the names of the whole game."""
    if self._map is None and self.tree.is_merged:
      raise errors.UnsupportedGameError(
        f"{self.name} was compiled with merge_suits=True, and without it would have more than {MOST_NAMES:,} infosets, "
        "too many for names. Read strategies with game.layout.sequences(node)."
      )
    if self._map is None:
      return super().infosets
    result = []
    for known, treeplex in zip(self.original.infosets, self.treeplexes, strict=True):
      first = self._map.sequences[known.first_sequence].astype(np.int64)
      found = _places(treeplex, first)
      result.append(Infosets(known.infostates, known.actions, known.num_actions, *found))
    return tuple(result)

  @functools.cached_property
  def digest(self) -> str:
    """The digest of `PublicTreeGame`; for an abstraction, that of its map."""
    return super().digest if self._map is None else self._map.digest(self.original.digest)


def _places(treeplex: Treeplex, first_sequence: Int64s) -> tuple[Uint32s, Uint32s, Uint32s]:
  """Returns `position`, `first_sequence` and `stride` of `Infosets`, given the first sequence of each infoset.

  An infoset's place in the layout follows from its sequences' place in their group.
  """
  groups = treeplex.groups.astype(np.int64)
  starts = groups[:, FIRST_SEQUENCE]
  group = np.searchsorted(starts, first_sequence, side="right") - 1
  laid_out = groups[:, FIRST_INFOSET] - treeplex.first_infoset
  position = laid_out[group] + first_sequence - starts[group]
  stride = groups[group, STRIDE]
  return position.astype(np.uint32), first_sequence.astype(np.uint32), stride.astype(np.uint32)


def is_chosen_by_default(game: pyspiel.Game) -> bool:
  """Returns whether `compile_game` should choose the vector form: for many hands, or several deals of public cards."""
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
    game: `kuhn_poker`, `leduc_poker` or `universal_poker` with two players, or such a game's string; or an `Endgame`.
      The game of an `Endgame` is hold'em with every size of bet as an action, for filters such as `bet_sizes`.
    action_filter: called with a state and its legal actions; returns those to keep. It sees the states of an arbitrary
      deal, and must not look at private cards.
    partitioned: whether solvers visit the subtrees after each deal of public cards one at a time, which takes little
      memory and allows several threads. By default they do in large games.
    dtype: the precision of solvers: float64, or float32 for half the memory and about half the time.
    num_threads: number of threads of solvers of a partitioned game. Results do not depend on it.
    merge_suits: whether boards and hands that differ only by suits are merged, which takes less time and memory for the
      same values, see `suit_symmetries`. The game is then an abstraction of the whole game, and policies have the names
      of the whole game's infosets. If these are more than 200,000, `original` is the game itself, without names.
    rake: the part of each pot that the house keeps. The game is then of general sum.

  Returns:
    The compiled game, for any full-width solver.

  Raises:
    UnsupportedGameError: the game is another, or OpenSpiel plays it in a way that does not fit the vector form.
    GameTooLargeError: the game has too many public states or sequences, or takes more memory than is free.
    ArgumentError: the filter returns no legal action, or another argument is out of its range.
    GameError: the string can't be loaded.
  """
  dtype = arguments.precision(dtype)
  num_threads = arguments.positive_integer(num_threads, "num_threads")
  view, deal, nodes = _walk(game, action_filter, rake)
  boards = list_boards(deal, nodes, merged=merge_suits)
  estimate_boards(nodes, boards, dtype).check_memory()
  check_random_deals(view.game, deal, nodes, CHECKED_DEALS, np.random.default_rng(0))
  tree = hand_tree(deal, nodes, boards)
  if partitioned is None:
    partitioned = int(tree.num_sequences.sum()) > LARGE
  if not partitioned and num_threads > 1:
    raise errors.ArgumentError(
      "Threads are for partitioned games; this one is not, but partitioned=True may make it one."
    )
  options = dtype, num_threads if partitioned else None
  merged = PublicGame(view, tree, *options)
  if not tree.is_merged or _num_whole_infosets(tree) > MOST_NAMES:
    return merged
  whole = PublicGame(view, hand_tree(deal, nodes, list_boards(deal, nodes)), *options)
  return PublicGame(view, tree, *options, whole, map_suits(whole.layout, merged.layout))


def _num_whole_infosets(tree: HandTree) -> int:
  """Returns the number of infosets without merged suits."""
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
  """Returns the size of the game that `compile_public_game` makes of the same arguments, in a second or two."""
  _, deal, nodes = _walk(game, action_filter)
  # Hands need no strengths here.
  inner = [node for node in nodes if node.kind is not Kind.SHOWDOWN]
  boards = list_boards(deal, inner, merged=merge_suits)
  return estimate_boards(nodes, boards, arguments.precision(dtype))


def _walk(
  game: str | pyspiel.Game | Endgame, action_filter: ActionFilter | None, rake: Rake | None = None
) -> tuple[GameView, Deal, list[BettingNode]]:
  """Walks the betting of a game; returns its view, its deal and the nodes."""
  if isinstance(game, Endgame):
    loaded, deal = endgame_in_full_game(game)
  else:
    loaded = game if isinstance(game, pyspiel.Game) else loading.load_game(game)
    deal = find_deal(loaded)
  view = GameView(loaded, action_filter, infostate=StreetNames.of(deal))
  nodes = walk_betting_tree(view, deal)
  if rake is not None:
    nodes = rake.taken_from(nodes, deal)
    if any(node.rake for node in nodes):
      view = view.with_returns(RakedReturns.of(nodes, deal))
  return view, deal, nodes


def has_many_hands(game: pyspiel.Game) -> bool:
  """Returns whether a game has too many pairs of hands for a list of histories."""
  parameters = game.get_parameters()
  if game.get_type().short_name != "universal_poker":
    return False
  deck = parameters["numRanks"] * parameters["numSuits"]
  return math.comb(deck, parameters["numHoleCards"]) >= WORTHWHILE_HANDS
