"""Compiles a poker game in vector form: its public tree, and one vector over private hands at each public state.

See `layout` for where things are, `terminals` for how payoffs are computed.
"""

import dataclasses
import functools
import hashlib
import importlib.metadata
import os
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyspiel

from spiel_cfr import errors
from spiel_cfr.game import loading
from spiel_cfr.game.compiled import CompiledGame
from spiel_cfr.game.payoff import Payoff, register_gradient
from spiel_cfr.game.subtrees import Subtree
from spiel_cfr.game.treeplex import DEPTH, FIRST_INFOSET, FIRST_SEQUENCE, Treeplex
from spiel_cfr.game.view import ActionFilter, GameView
from spiel_cfr.kernels.arrays import Int64s, Uint32s
from spiel_cfr.poker.deal import find_deal
from spiel_cfr.poker.layout import TERMINALS, Board, Layout, list_boards
from spiel_cfr.poker.public_tree import (
  DEALT,
  Kind,
  check_random_deals,
  walk_public_tree,
)
from spiel_cfr.poker.terminals import POKER_TERMINALS, terminal_gradient

CHECKED_DEALS = 10_000
# From this many hands on a player, `compile_game` chooses the vector form.
WORTHWHILE_HANDS = 50
# Games with more sequences than this are cut into a trunk and subtrees, if chance deals public cards in them.
LARGE = 1 << 20
register_gradient(POKER_TERMINALS, terminal_gradient)


@dataclasses.dataclass(frozen=True)
class Discovery:
  """A player's infosets in order of discovery: what `CompiledGame` and `Treeplex` hold in that order."""

  infostates: list[str]
  actions: Int64s
  num_actions: Int64s
  position: Uint32s
  first_sequence: Uint32s
  stride: Uint32s


class PublicTreeplex(Treeplex):
  """A treeplex whose infosets are pairs of a public state and a hand.

  Arrays that not every solver needs are made when they are first asked for.
  """

  _player: int
  _layout: Layout
  _discovered: Callable[[], Discovery]

  def __init__(self, player: int, layout: Layout, discovered: Callable[[], Discovery]) -> None:
    """Takes the layout of both players, and what lists a player's infosets."""
    fields = {
      "root": layout.roots[player],
      "end": layout.roots[player + 1],
      "first_infoset": int(layout.first_infosets[player, 0]),
      "groups": np.concatenate(layout.groups[player]),
      "_player": player,
      "_layout": layout,
      "_discovered": discovered,
    }
    for name, value in fields.items():
      # The class is frozen, so that nobody changes a treeplex that solvers share.
      object.__setattr__(self, name, value)

  @property
  def num_infosets(self) -> int:
    """How many infosets the player has."""
    first, *_, end = self._layout.first_infosets[self._player].tolist()
    return int(end - first)

  @property
  def depth(self) -> int:
    """The largest number of the player's infosets on one path."""
    return 1 + int(self.groups[:, DEPTH].max()) if len(self.groups) else 0

  @functools.cached_property
  def parent(self) -> Uint32s:
    """See `Treeplex`."""
    return self._layout.whole.parent[self._player]

  @functools.cached_property
  def position(self) -> Uint32s:
    """See `Treeplex`."""
    return self._discovered().position

  @functools.cached_property
  def first_sequence(self) -> Uint32s:
    """See `Treeplex`."""
    return self._discovered().first_sequence

  @functools.cached_property
  def stride(self) -> Uint32s:
    """See `Treeplex`."""
    return self._discovered().stride


class PublicGame(CompiledGame):
  """A poker game in vector form. Make one with `compile_public_game`.

  Infostates, which only policies need, are listed when they are first asked for; a turn endgame has millions.
  `num_states` and `num_terminals` count public states.

  Attributes:
    layout: where the sequences of its public states are.
    subtrees: the trunk and what follows each deal of public cards, where solvers are to go through these one at a
      time; else none.
    dtype: of the arrays that solvers keep. They compute in float64 in any case.
    num_threads: how many subtrees solvers go through at once.
  """

  layout: Layout
  dtype: np.dtype[Any]
  num_threads: int
  _partitioned: bool
  _discovered: tuple[Callable[[], Discovery], ...]

  def __init__(
    self,
    view: GameView,
    layout: Layout,
    *,
    partitioned: bool,
    dtype: npt.DTypeLike,
    num_threads: int,
  ) -> None:
    """Describes the game as `CompiledGame` does."""
    payoffs = [node.payoff for node in layout.nodes if node.kind in TERMINALS]
    largest = max(map(abs, payoffs))
    on_level = [
      [node for node in layout.nodes if node.level == board.level] for board in layout.boards
    ]
    discovered = [functools.cache(functools.partial(self._discover, player)) for player in (0, 1)]
    fields: dict[str, Any] = {
      "game_string": str(view.game),
      "open_spiel_version": importlib.metadata.version("open_spiel"),
      "treeplexes": tuple(PublicTreeplex(player, layout, discovered[player]) for player in (0, 1)),
      "num_distinct_actions": view.game.num_distinct_actions(),
      "payoff_range": (-largest, largest),
      "constant_sum": 0.0,
      "num_states": sum(map(len, on_level)),
      "num_terminals": sum(node.kind in TERMINALS for nodes in on_level for node in nodes),
      "_view": view,
      "layout": layout,
      "dtype": np.dtype(dtype),
      "num_threads": num_threads,
      "_partitioned": partitioned,
      "_discovered": tuple(discovered),
    }
    for name, value in fields.items():
      # The class is frozen, so that nobody changes a game that solvers share.
      object.__setattr__(self, name, value)

  @functools.cached_property
  def payoff(self) -> Payoff:
    """See `CompiledGame`."""
    return self.layout.whole.payoff

  @functools.cached_property
  def subtrees(self) -> list[Subtree]:
    """The trunk and what follows each first deal of public cards, if the game is partitioned; else none."""
    if not self._partitioned:
      return []
    boards = range(len(self.layout.boards))
    return [self.layout.subtree(board) for board in boards]

  @property
  def num_leaves(self) -> int:
    """How many terminals all boards have together, each a pair of vectors over hands."""
    return self.num_terminals

  @functools.cached_property
  def infostates(self) -> tuple[list[str], ...]:
    """See `CompiledGame`."""
    return tuple(discovered().infostates for discovered in self._discovered)

  @functools.cached_property
  def actions(self) -> tuple[Int64s, ...]:
    """See `CompiledGame`."""
    return tuple(discovered().actions for discovered in self._discovered)

  @functools.cached_property
  def num_actions(self) -> tuple[Int64s, ...]:
    """See `CompiledGame`."""
    return tuple(discovered().num_actions for discovered in self._discovered)

  @functools.cached_property
  def digest(self) -> str:
    """See `CompiledGame`."""
    layout = self.layout
    digest = hashlib.sha256(repr((layout.nodes, self._partitioned, self.dtype)).encode())
    digest.update(layout.deal.reaches.tobytes())
    for board in layout.boards:
      digest.update(repr(board.cards).encode())
      for hands in board.hands:
        digest.update(hands.tobytes())
    return digest.hexdigest()

  def __str__(self) -> str:
    """Returns the size in words."""
    name = textwrap.shorten(self.game_string, 100, placeholder="...")
    infosets = " + ".join(f"{treeplex.num_infosets:,}" for treeplex in self.treeplexes)
    return f"{name}: {self.num_states:,} public states, {infosets} infosets in vector form"

  def save(self, path: str | os.PathLike[str]) -> None:
    """Does not save: compiling again takes about a second.

    Raises:
      UnsupportedGameError: always.
    """
    raise errors.UnsupportedGameError(
      "A game in vector form is not saved: compiling it again takes about a second."
    )

  def sequences(self, board: int, node: int) -> Int64s:
    """Returns the sequences of a decision, shape (actions, hands); hands as in `Board.hands`."""
    decision = self.layout.nodes[node]
    hands = len(self.layout.boards[board].hands[decision.player])
    rows = np.arange(len(decision.actions))[:, None] * self.layout.strides[board, node]
    return np.asarray(self.layout.starts[board, node] + rows + np.arange(hands))

  def public_actions(self, board: int, node: int) -> list[int]:
    """Returns the actions, public cards included, that lead to a public state."""
    layout = self.layout
    dealt = layout.boards[board].cards[len(layout.deal.board) :]
    remaining = iter(sorted(dealt, key=str))
    return [
      next(remaining) if action == DEALT else action for action in self.layout.nodes[node].path
    ]

  def find_public_state(self, actions: Sequence[int]) -> tuple[int, int]:
    """Returns the board and the node of a decision.

    Args:
      actions: those that lead to it from the deal of the hands; for public cards, their numbers as in OpenSpiel.

    Raises:
      ArgumentError: these actions lead nowhere, or to no decision.
    """
    layout, node = self.layout, 0
    dealt: list[int] = []
    remaining = list(actions)
    while remaining:
      here = layout.nodes[node]
      if here.kind is Kind.CHANCE and len(remaining) >= here.num_cards:
        dealt = sorted(remaining[: here.num_cards])
        del remaining[: here.num_cards]
        node = here.children[0]
      elif here.kind is Kind.DECISION and remaining[0] in here.actions:
        node = here.children[here.actions.index(remaining.pop(0))]
      else:
        break
    cards = (*layout.deal.board, *dealt)
    boards = [number for number, board in enumerate(layout.boards) if board.cards == cards]
    if remaining or not boards or layout.nodes[node].kind is not Kind.DECISION:
      raise errors.ArgumentError(
        f"The actions {list(actions)} do not lead to a decision. After {len(actions) - len(remaining)} of them "
        f"there is: {layout.nodes[node]}."
      )
    return boards[0], node

  def memory_estimate(self, state_lines: int = 1) -> int:
    """Returns about how many bytes a solver will take, the game's own arrays included.

    Args:
      state_lines: numbers that the local minimizer keeps for each action.
    """
    sequences = self.layout.roots[-1]
    if not self._partitioned:
      # Regrets, strategy, sequence form, average, utilities; parents.
      return 8 * sequences * (4 + state_lines) + 4 * self.num_infosets
    largest = int(np.diff(self.layout.begins, axis=1).max())
    workspaces = (
      8 * largest * self.num_threads * 2 * (2 if self.dtype == np.float64 else 4 + state_lines)
    )
    return self.dtype.itemsize * sequences * (2 + state_lines) + 4 * self.num_infosets + workspaces

  def _discover(self, player: int) -> Discovery:
    """Lists a player's infosets in the order of the first history of each, as strings."""
    treeplex = self.treeplexes[player]
    found: list[tuple[tuple[str, ...], tuple[str, ...], int, int, int]] = []
    for number, board in enumerate(self.layout.boards):
      first_deals = [
        tuple(map(str, self._first_deal(player, board, hand)))
        for hand in board.hands[player].tolist()
      ]
      for node in self.layout.decisions(player, number):
        path = tuple(map(str, self.public_actions(number, node)))
        found.extend(
          (first_deal, path, number, node, lane) for lane, first_deal in enumerate(first_deals)
        )
    found.sort()
    root = self.view.new_initial_state()
    infostates = []
    for first_deal, path, *_ in found:
      state = root.clone()
      for action in (*first_deal, *path):
        state.apply_action(int(action))
      infostates.append(self.view.infostate(state))
    boards, nodes, lanes = np.array([entry[2:] for entry in found], np.int64).reshape(-1, 3).T
    moves = [self.layout.nodes[entry[3]].actions for entry in found]
    # An infoset's place in the layout follows from its sequences' place in their group.
    first_sequence = self.layout.starts[boards, nodes] + lanes
    starts = treeplex.groups[:, FIRST_SEQUENCE].astype(np.int64)
    group = np.searchsorted(starts, first_sequence, side="right") - 1
    laid_out = treeplex.groups[:, FIRST_INFOSET].astype(np.int64) - treeplex.first_infoset
    return Discovery(
      infostates=infostates,
      actions=np.array([action for actions in moves for action in actions], np.int64),
      num_actions=np.array([len(actions) for actions in moves], np.int64),
      position=(laid_out[group] + first_sequence - starts[group]).astype(np.uint32),
      first_sequence=first_sequence.astype(np.uint32),
      stride=self.layout.strides[boards, nodes].astype(np.uint32),
    )

  def _first_deal(self, player: int, board: Board, hand: int) -> list[int]:
    """Returns actions of chance that deal a player this hand and leave the board in the deck."""
    own = self.layout.deal.hands[hand].tolist()
    gone = {*own, *board.cards}
    if self.layout.deal.one_action:
      candidates = self.layout.deal.hands[board.hands[1 - player]].tolist()
      other = next(cards for cards in candidates if not gone & set(cards))
    else:
      own.sort(key=str)
      left = sorted(set(range(self.layout.deal.num_cards)) - gone, key=str)
      other = left[: self.layout.deal.hand_size]
    return self.layout.deal.actions(*((own, other) if player == 0 else (other, own)))


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
    dtype: of the arrays that solvers of a partitioned game keep: float64, or float32 for half the memory.
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
  if np.dtype(dtype) not in (np.float32, np.float64):
    raise errors.ArgumentError(f"dtype must be float64 or float32, not {dtype!r}.")
  if isinstance(num_threads, bool) or not isinstance(num_threads, int) or num_threads < 1:
    raise errors.ArgumentError(f"num_threads must be a positive integer, not {num_threads!r}.")
  loaded = loading.load_game(game) if isinstance(game, str) else game
  deal = find_deal(loaded)
  deal.check_probabilities(loaded.new_initial_state())
  view = GameView(loaded, action_filter)
  nodes = walk_public_tree(view, deal)
  check_random_deals(loaded, deal, nodes, CHECKED_DEALS, np.random.default_rng(0))
  layout = Layout(deal, nodes, list_boards(deal, nodes))
  has_subtrees = len(layout.boards) > 1
  if partitioned is None:
    partitioned = has_subtrees and layout.roots[-1] > LARGE
  if partitioned and not has_subtrees:
    raise errors.ArgumentError("No public cards are dealt, so the game can't be partitioned.")
  if not partitioned and (np.dtype(dtype) != np.float64 or num_threads > 1):
    raise errors.ArgumentError(
      "float32 and threads are for partitioned games; this one is not, but partitioned=True may "
      "make it one."
    )
  return PublicGame(view, layout, partitioned=partitioned, dtype=dtype, num_threads=num_threads)
