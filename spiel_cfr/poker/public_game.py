"""Compiles a poker game in vector form: its public tree, and one vector over private hands at each public state.

See `hand_layout` for where things are, `showdown_kernels` for how payoffs are computed.
"""

import functools
import hashlib
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pyspiel

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Uint32s
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.abstraction_map import AbstractionMap
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.game_facts import walked_facts
from spiel_cfr.games.compiled.infosets import Infosets
from spiel_cfr.games.compiled.trunk_and_subtrees import PLAYERS, Partition
from spiel_cfr.games.openspiel import loading
from spiel_cfr.games.openspiel.game_view import ActionFilter, GameView
from spiel_cfr.games.sequence_form.treeplex import Treeplex
from spiel_cfr.poker.boards import list_boards
from spiel_cfr.poker.deal import find_deal
from spiel_cfr.poker.hand_infosets import list_infosets, places
from spiel_cfr.poker.hand_layout import TERMINALS, Layout
from spiel_cfr.poker.hand_payoff import PokerTerminals
from spiel_cfr.poker.public_subtrees import number_all, parts_of
from spiel_cfr.poker.public_tree import check_random_deals, walk_public_tree

CHECKED_DEALS = 10_000
# From this many hands on a player, `compile_game` chooses the vector form.
WORTHWHILE_HANDS = 50
# Games with more sequences than this are cut into parts, if chance deals public cards in them.
LARGE = 1 << 20


class PublicGame(CompiledGame):
  """A poker game in vector form. Make one with `compile_public_game`.

  Infostates, which only policies need, are listed when they are first asked for; a turn endgame has millions.
  `num_states` and `num_terminals` count public states.

  Attributes:
    layout: where the sequences of its public states are.
  """

  def __init__(
    self,
    view: GameView,
    layout: Layout,
    dtype: npt.DTypeLike,
    num_threads: int | None,
    original: "PublicGame | None" = None,
    map_from_original: AbstractionMap | None = None,
  ) -> None:
    """Describes the game as `CompiledGame` does; without threads it is not cut into parts.

    An abstraction has an original game, and a map from that game's sequences to its own.
    """
    self.layout = layout
    on_level = [
      [node for node in layout.nodes if node.level == board.level] for board in layout.boards
    ]
    facts = walked_facts(
      view.game,
      payoff_range=(-layout.largest_payoff, layout.largest_payoff),
      constant_sum=0.0,
      num_states=sum(map(len, on_level)),
      num_terminals=sum(node.kind in TERMINALS for nodes in on_level for node in nodes),
    )
    treeplexes = tuple(
      Treeplex(
        root=layout.roots[player],
        end=layout.roots[player + 1],
        first_infoset=int(layout.first_infosets[player, 0]),
        groups=np.concatenate(layout.groups[player]),
        parent=functools.partial(_parents, layout, player),
      )
      for player in PLAYERS
    )
    super().__init__(facts, treeplexes, original, map_from_original)
    self._view = view
    if num_threads is not None:
      parts = parts_of(layout, PokerTerminals.build)
      # A thread has a subtree at a time, so that more threads would have nothing to do.
      self._partition = Partition(parts, max(1, min(num_threads, len(parts) - 1)))
    self._dtype = np.dtype(dtype)

  @property
  def view(self) -> GameView:
    """How the public tree was walked."""
    return self._view

  @functools.cached_property
  def payoff(self) -> PokerTerminals:
    """The terminals of all boards; solvers of a game in parts use those of the parts."""
    return PokerTerminals.build(
      self.layout, [number_all(self.layout, player) for player in PLAYERS]
    )

  @property
  def num_threads(self) -> int | None:
    """How many threads share the parts; None of a game that is not cut into parts."""
    return None if self._partition is None else self._partition.num_threads

  @functools.cached_property
  def infosets(self) -> tuple[Infosets, ...]:
    """Each player's infosets, listed when they are first asked for."""
    if self._map is None:
      return tuple(list_infosets(self.layout, self.view, player) for player in PLAYERS)
    result = []
    for player, known in enumerate(self.original.infosets):
      found = places(
        self.layout, player, self._map.sequences[known.first_sequence].astype(np.int64)
      )
      result.append(Infosets(known.infostates, known.actions, known.num_actions, *found))
    return tuple(result)

  @property
  def dtype(self) -> np.dtype[Any]:
    """The precision that the game was compiled for."""
    return self._dtype

  @property
  def num_leaves(self) -> int:
    """How many terminals all boards have together, each a pair of vectors over hands."""
    return self.num_terminals

  @functools.cached_property
  def digest(self) -> str:
    """Of the public tree, the boards, hands and reaches, and how solvers go through them."""
    if self._map is not None:
      return self._map.digest(self.original.digest)
    layout = self.layout
    described = layout.nodes, self.partition is not None, self.dtype
    digest = hashlib.sha256(repr(described).encode())
    for board in layout.boards:
      digest.update(repr(board.cards).encode())
      for array in (*board.hands, *board.reaches):
        digest.update(array.tobytes())
    return digest.hexdigest()

  @property
  def size(self) -> str:
    """Public states, and infosets of both players."""
    if self._original is not None:
      return super().size
    return f"{self.num_states:,} public states, {super().size} in vector form"

  def memory_estimate(self, action_lines: int = 1) -> int:
    """Returns about how many bytes a solver will take, the game's own arrays included.

    Args:
      action_lines: numbers that the regret minimizer keeps for each action.

    Raises:
      ArgumentError: that is no count.
    """
    action_lines = arguments.integer(action_lines, "action_lines", 0)
    sequences, size = self.layout.roots[-1], self.dtype.itemsize
    # Parents and scales.
    tree = 6 * self.num_infosets
    if self.partition is None:
      # Regrets, strategy, sequence form, average, utilities.
      return size * sequences * (4 + action_lines) + tree
    largest = int(np.diff(self.layout.begins, axis=1).max())
    workspaces = size * largest * self.partition.num_threads * 4
    return size * sequences * (2 + action_lines) + tree + workspaces


def _parents(layout: Layout, player: int) -> Uint32s:
  return number_all(layout, player).parents(layout)


def is_worth_it(game: pyspiel.Game) -> bool:
  """Returns whether `compile_game` should choose the vector form by itself."""
  try:
    deal = find_deal(game)
  except errors.UnsupportedGameError:
    return False
  return len(deal.hands) >= WORTHWHILE_HANDS


def compile_public_game(
  game: str | pyspiel.Game,
  action_filter: ActionFilter | None = None,
  *,
  partitioned: bool | None = None,
  dtype: npt.DTypeLike = np.float64,
  num_threads: int = 1,
) -> PublicGame:
  """Compiles a poker game in vector form, without listing deals.

  Args:
    game: `kuhn_poker`, `leduc_poker` or `universal_poker` with two players, or such a game's string.
    action_filter: called with a state and its legal actions; returns those to keep. It sees the states of an
      arbitrary deal, and must not look at private cards.
    partitioned: whether solvers go through what follows each deal of public cards one at a time, which takes little
      memory and can be done by several threads. By default they do in large games.
    dtype: what solvers compute with and keep: float64, or float32 for half the memory and about half the time.
    num_threads: how many threads solvers of a partitioned game use. Results do not depend on it.

  Returns:
    The compiled game, for any full-width solver.

  Raises:
    UnsupportedGameError: the game is another, or OpenSpiel plays it in a way that the vector form can't hold.
    ImperfectRecallError: public cards are dealt more than once, as before the turn.
    GameTooLargeError: the game has too many public states, or sequences.
    ArgumentError: the filter returns no legal action, or another argument makes no sense.
    GameError: the string can't be loaded.
  """
  dtype = arguments.precision(dtype)
  num_threads = arguments.positive_integer(num_threads, "num_threads")
  loaded = game if isinstance(game, pyspiel.Game) else loading.load_game(game)
  deal = find_deal(loaded)
  view = GameView(loaded, action_filter)
  nodes = walk_public_tree(view, deal)
  check_random_deals(loaded, deal, nodes, CHECKED_DEALS, np.random.default_rng(0))
  layout = Layout(deal, nodes, list_boards(deal, nodes))
  has_subtrees = len(layout.boards) > 1
  if partitioned is None:
    partitioned = has_subtrees and layout.roots[-1] > LARGE
  if partitioned and not has_subtrees:
    raise errors.ArgumentError("No public cards are dealt, so the game can't be partitioned.")
  if not partitioned and num_threads > 1:
    raise errors.ArgumentError(
      "Threads are for partitioned games; this one is not, but partitioned=True may make it one."
    )
  return PublicGame(view, layout, dtype, num_threads if partitioned else None)


def has_many_hands(game: pyspiel.Game) -> bool:
  """Returns whether histories are not to be listed, since there is one for each pair of hands."""
  parameters = game.get_parameters()
  if game.get_type().short_name != "universal_poker":
    return False
  deck = parameters["numRanks"] * parameters["numSuits"]
  return math.comb(deck, parameters["numHoleCards"]) >= WORTHWHILE_HANDS
