"""Compiles a poker game in vector form: its public tree, and one vector over private hands at each public state.

A *board* is a set of public cards. The betting between two deals of public cards is the same on every board, so the
public states are the pairs of a board and a node of the public tree. At each of them a player has an infoset for
every hand that can be there, and these stand next to each other in the treeplex: `[board][group][action][state][hand]`.
On boards that see a showdown the hands are in order of strength.
"""

import dataclasses
import functools
import importlib.metadata
import itertools
import math
import os
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyspiel

from spiel_cfr import errors
from spiel_cfr.game import loading
from spiel_cfr.game.compiled import CompiledGame
from spiel_cfr.game.payoff import Payoff, register_gradient
from spiel_cfr.game.treeplex import COLUMNS, DEPTH, FIRST_INFOSET, FIRST_SEQUENCE, Treeplex
from spiel_cfr.kernels import LINE, Int64s, Uint32s, Uint64s
from spiel_cfr.poker import cards
from spiel_cfr.poker.deal import Deal, find_deal
from spiel_cfr.poker.public_tree import (
  DEALT,
  ActionFilter,
  Kind,
  PublicNode,
  check_random_deals,
  keep_all,
  walk_public_tree,
)
from spiel_cfr.poker.terminals import BOARD_COLUMNS, WIDTH, terminal_gradient

POKER_TERMINALS = "poker terminals"
CHECKED_DEALS = 10_000
register_gradient(POKER_TERMINALS, terminal_gradient)


@dataclasses.dataclass(frozen=True)
class Board:
  """Public cards, and the hands that can be there.

  Attributes:
    cards: in ascending order.
    parent: number of the board before the last deal of public cards; the first board is its own.
    level: how many times public cards were dealt.
    probability: that chance deals it, given hands that share no card with it.
    hands: int64 (hands,) a player: rows of `Deal.hands`.
    strengths: int64 (hands,) a player, ascending; all 0 where no showdown can be.
  """

  cards: tuple[int, ...]
  parent: int
  level: int
  probability: float
  hands: tuple[Int64s, Int64s]
  strengths: tuple[Int64s, Int64s]


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

  The arrays in order of discovery, which only policies need, are made when they are first asked for.
  """

  def __init__(
    self,
    root: int,
    end: int,
    first_infoset: int,
    groups: Uint64s,
    parent: Uint32s,
    discovered: Callable[[], Discovery],
  ) -> None:
    """Takes what `Treeplex` has, and what makes the rest."""
    fields = {
      "root": root,
      "end": end,
      "first_infoset": first_infoset,
      "groups": groups,
      "parent": parent,
      "_discovered": discovered,
    }
    for name, value in fields.items():
      # The class is frozen, so that nobody changes a treeplex that solvers share.
      object.__setattr__(self, name, value)

  @property
  def depth(self) -> int:
    """The largest number of the player's infosets on one path."""
    return 1 + int(self.groups[:, DEPTH].max()) if len(self.groups) else 0

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
    deal: how the game deals.
    nodes: its public tree, the same on all boards of a level.
    boards: all boards, parents before children.
    starts: int64 (boards, nodes): the sequence of the first action of the first hand at a decision; 0 elsewhere.
    strides: int64 (boards, nodes): from there to the sequence of the next action.
  """

  deal: Deal
  nodes: list[PublicNode]
  boards: list[Board]
  starts: Int64s
  strides: Int64s

  def __init__(
    self, game: pyspiel.Game, deal: Deal, nodes: list[PublicNode], boards: list[Board]
  ) -> None:
    """Lays out the treeplexes and the payoff."""
    starts = np.zeros((len(boards), len(nodes)), np.int64)
    strides = np.zeros_like(starts)
    treeplexes: list[Treeplex] = []
    root = first_infoset = 0
    for player in (0, 1):
      end, groups, parent = _lay_out(player, root, first_infoset, nodes, boards, starts, strides)
      discovered = functools.cache(functools.partial(self._discover, player))
      treeplexes.append(PublicTreeplex(root, end, first_infoset, groups, parent, discovered))
      root, first_infoset = end, first_infoset + len(parent)
    payoffs = [node.payoff for node in nodes if node.kind in (Kind.FOLD, Kind.SHOWDOWN)]
    largest = max(map(abs, payoffs))
    states = [(board, node) for board in boards for node in nodes if node.level == board.level]
    fields: dict[str, Any] = {
      "game_string": str(game),
      "open_spiel_version": importlib.metadata.version("open_spiel"),
      "treeplexes": tuple(treeplexes),
      "payoff": _payoff(treeplexes, deal, nodes, boards, starts, strides),
      "num_distinct_actions": game.num_distinct_actions(),
      "payoff_range": (-largest, largest),
      "constant_sum": 0.0,
      "num_states": len(states),
      "num_terminals": sum(node.kind in (Kind.FOLD, Kind.SHOWDOWN) for _, node in states),
      "_game": game,
      "deal": deal,
      "nodes": nodes,
      "boards": boards,
      "starts": starts,
      "strides": strides,
    }
    for name, value in fields.items():
      # The class is frozen, so that nobody changes a game that solvers share.
      object.__setattr__(self, name, value)

  @property
  def num_leaves(self) -> int:
    """How many terminals all boards have together, each a pair of vectors over hands."""
    return self.num_terminals

  @functools.cached_property
  def infostates(self) -> tuple[list[str], ...]:  # type: ignore[override]
    """See `CompiledGame`."""
    return tuple(treeplex._discovered().infostates for treeplex in self._public_treeplexes)

  @functools.cached_property
  def actions(self) -> tuple[Int64s, ...]:  # type: ignore[override]
    """See `CompiledGame`."""
    return tuple(treeplex._discovered().actions for treeplex in self._public_treeplexes)

  @functools.cached_property
  def num_actions(self) -> tuple[Int64s, ...]:  # type: ignore[override]
    """See `CompiledGame`."""
    return tuple(treeplex._discovered().num_actions for treeplex in self._public_treeplexes)

  @property
  def num_bytes(self) -> int:
    """Memory of the arrays that solvers use."""
    return self.payoff.num_bytes + sum(
      treeplex.groups.nbytes + treeplex.parent.nbytes for treeplex in self.treeplexes
    )

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
    decision = self.nodes[node]
    hands = len(self.boards[board].hands[decision.player])
    index = np.arange(len(decision.actions))[:, None] * self.strides[board, node]
    return np.asarray(self.starts[board, node] + index + np.arange(hands))

  def public_actions(self, board: int, node: int) -> list[int]:
    """Returns the actions, public cards included, that lead to a public state."""
    chain = [self.boards[board]]
    while chain[0].level:
      chain.insert(0, self.boards[chain[0].parent])
    dealt = [
      card
      for before, after in itertools.pairwise(chain)
      for card in sorted(set(after.cards) - set(before.cards), key=str)
    ]
    remaining = iter(dealt)
    return [next(remaining) if action == DEALT else action for action in self.nodes[node].path]

  @property
  def _public_treeplexes(self) -> tuple[PublicTreeplex, ...]:
    return self.treeplexes  # type: ignore[return-value]

  def _discover(self, player: int) -> Discovery:
    """Lists a player's infosets in the order of the first history of each, as strings."""
    treeplex = self.treeplexes[player]
    found: list[tuple[tuple[str, ...], tuple[str, ...], int, int, int]] = []
    for number, board in enumerate(self.boards):
      first_deals = [
        tuple(map(str, self._first_deal(player, board, hand)))
        for hand in board.hands[player].tolist()
      ]
      for index, node in enumerate(self.nodes):
        if node.kind is Kind.DECISION and (node.level, node.player) == (board.level, player):
          path = tuple(map(str, self.public_actions(number, index)))
          found.extend(
            (first_deal, path, number, index, lane) for lane, first_deal in enumerate(first_deals)
          )
    found.sort()
    root = self.game.new_initial_state()
    infostates = []
    for first_deal, path, *_ in found:
      state = root.clone()
      for action in (*first_deal, *path):
        state.apply_action(int(action))
      infostates.append(state.information_state_string(player))
    number, index, lane = np.array([entry[2:] for entry in found], np.int64).reshape(-1, 3).T
    moves = [self.nodes[entry[3]].actions for entry in found]
    # An infoset's place in the layout follows from its sequences' place in their group.
    first_sequence = self.starts[number, index] + lane
    starts = treeplex.groups[:, FIRST_SEQUENCE].astype(np.int64)
    group = np.searchsorted(starts, first_sequence, side="right") - 1
    laid_out = treeplex.groups[:, FIRST_INFOSET].astype(np.int64) - treeplex.first_infoset
    return Discovery(
      infostates=infostates,
      actions=np.array([action for actions in moves for action in actions], np.int64),
      num_actions=np.array([len(actions) for actions in moves], np.int64),
      position=(laid_out[group] + first_sequence - starts[group]).astype(np.uint32),
      first_sequence=first_sequence.astype(np.uint32),
      stride=self.strides[number, index].astype(np.uint32),
    )

  def _first_deal(self, player: int, board: Board, hand: int) -> list[int]:
    """Returns actions of chance that deal a player this hand and leave the board in the deck."""
    own = self.deal.hands[hand].tolist()
    gone = {*own, *board.cards}
    if self.deal.one_action:
      candidates = self.deal.hands[board.hands[1 - player]].tolist()
      other = next(cards for cards in candidates if not gone & set(cards))
    else:
      own.sort(key=str)
      left = sorted(set(range(self.deal.num_cards)) - gone, key=str)
      other = left[: self.deal.hand_size]
    return self.deal.actions(*((own, other) if player == 0 else (other, own)))


def compile_public_game(
  game: str | pyspiel.Game, action_filter: ActionFilter | None = None
) -> PublicGame:
  """Compiles a poker game in vector form, without listing deals.

  Args:
    game: `kuhn_poker`, `leduc_poker` or `universal_poker` with two players, or such a game's string.
    action_filter: called with a state and its legal actions; returns those to keep. It sees the states of an
      arbitrary deal, and must not look at private cards.

  Returns:
    The compiled game, for any solver.

  Raises:
    UnsupportedGameError: the game is another, or OpenSpiel plays it in a way that the vector form can't hold.
    ArgumentError: the filter returns no legal action.
    GameError: the string can't be loaded.
  """
  loaded = loading.load_game(game) if isinstance(game, str) else game
  deal = find_deal(loaded)
  deal.check_probabilities(loaded.new_initial_state())
  nodes = walk_public_tree(loaded, deal, action_filter or keep_all)
  check_random_deals(loaded, deal, nodes, CHECKED_DEALS, np.random.default_rng(0))
  return PublicGame(loaded, deal, nodes, list_boards(deal, nodes))


def list_boards(deal: Deal, nodes: list[PublicNode]) -> list[Board]:
  """Lists the boards of a public tree, parents before children."""
  num_dealt: dict[int, int] = {}
  for node in nodes:
    if node.kind is Kind.CHANCE and num_dealt.setdefault(node.level, node.num_cards) != node.num_cards:
      raise errors.UnsupportedGameError(
        "The game has no vector form: how many public cards are dealt depends on the betting."
      )
  with_showdown = {node.level for node in nodes if node.kind is Kind.SHOWDOWN}
  boards: list[Board] = []

  def add(known: tuple[int, ...], parent: int, level: int, probability: float) -> None:
    board = _board(deal, known, parent, level, probability, level in with_showdown)
    if board is None:
      return
    number = len(boards)
    boards.append(board)
    if level in num_dealt:
      left = [card for card in range(deal.num_cards) if card not in known]
      ways = math.comb(len(left) - 2 * deal.hand_size, num_dealt[level])
      for dealt in itertools.combinations(left, num_dealt[level]):
        add(tuple(sorted((*known, *dealt))), number, level + 1, probability / ways)

  add(deal.board, 0, 0, 1.0)
  return boards


def _board(
  deal: Deal,
  known: tuple[int, ...],
  parent: int,
  level: int,
  probability: float,
  has_showdown: bool,
) -> Board | None:
  """Returns a board, or None where no pair of hands can see it."""
  possible = (deal.reaches > 0) & ~np.isin(deal.hands, known).any(axis=1)
  hands, strengths = [], []
  for player in (0, 1):
    # Counted in integers: a hand whose opponents all hold one of its cards must come out at exactly 0.
    opponents = deal.compatible_mass(possible[1 - player].astype(np.int64))
    own = np.flatnonzero(possible[player] & (opponents > 0))
    strength = np.zeros(len(own), np.int64)
    if has_showdown:
      strength = cards.hand_strengths(deal.hands[own], known, deal.num_suits)
    order = np.argsort(strength, kind="stable")
    hands.append(own[order])
    strengths.append(strength[order])
  if not len(hands[0]):
    return None
  return Board(known, parent, level, probability, (hands[0], hands[1]), (strengths[0], strengths[1]))


def _lay_out(
  player: int,
  root: int,
  first_infoset: int,
  nodes: list[PublicNode],
  boards: list[Board],
  starts: Int64s,
  strides: Int64s,
) -> tuple[int, Uint64s, Uint32s]:
  """Places a player's infosets; fills in `starts` and `strides`, and returns the end, groups and parents."""
  groups: list[tuple[int, ...]] = []
  parents: list[Uint32s] = []
  end, laid_out = _align(root + 1), 0
  for number, board in enumerate(boards):
    hands = len(board.hands[player])

    def above(index: int, number: int = number) -> Int64s:
      place = _last_row(player, root, index, number, nodes, boards, starts, strides)
      return place.first + place.lanes

    own = [
      index
      for index, node in enumerate(nodes)
      if node.kind is Kind.DECISION and (node.level, node.player) == (board.level, player)
    ]
    shape = [(nodes[index].depth, len(nodes[index].actions)) for index in own]
    for depth, actions in sorted(set(shape)):
      states = [index for index, other in zip(own, shape, strict=True) if other == (depth, actions)]
      # Children in the order of their parents: both sweeps then read and write the parents in order.
      parent_of = {index: above(index) for index in states}
      states.sort(key=lambda index: int(parent_of[index].min()))
      count = len(states) * hands
      stride = _align(count)
      for place, index in enumerate(states):
        starts[number, index] = end + place * hands
        strides[number, index] = stride
        parents.append(parent_of[index].astype(np.uint32))
      groups.append((end, stride, count, actions, first_infoset + laid_out, depth))
      end += actions * stride
      laid_out += count
  return (
    end,
    np.array(groups, np.uint64).reshape(-1, COLUMNS),
    np.concatenate([np.zeros(0, np.uint32), *parents]),
  )


def _align(count: int) -> int:
  return -(-count // LINE) * LINE


class _Row(NamedTuple):
  """Where a player's sequences before a public node are, for the hands of a board: at `first + lanes`."""

  first: int
  lanes: Int64s


def _last_row(
  player: int,
  root: int,
  index: int,
  board: int,
  nodes: list[PublicNode],
  boards: list[Board],
  starts: Int64s,
  strides: Int64s,
) -> _Row:
  """Finds the row above a public state: of an earlier board where the player has not acted since."""
  hands = boards[board].hands[player]
  last = nodes[index].last[player]
  if last is None:
    return _Row(root, np.zeros(len(hands), np.int64))
  decision, action = last
  while boards[board].level > nodes[decision].level:
    board = boards[board].parent
  earlier = boards[board].hands[player]
  by_hand = np.argsort(earlier)
  lanes = by_hand[np.searchsorted(earlier, hands, sorter=by_hand)]
  return _Row(int(starts[board, decision] + action * strides[board, decision]), lanes)


def _payoff(
  treeplexes: Sequence[Treeplex],
  deal: Deal,
  nodes: list[PublicNode],
  boards: list[Board],
  starts: Int64s,
  strides: Int64s,
) -> Payoff:
  """Writes down the terminals of all boards for `terminal_gradient`."""
  table = np.zeros((2 + len(boards), BOARD_COLUMNS), np.uint64)
  rows = _Pieces(np.uint32)
  values = _Pieces(np.float64)
  terminals: list[tuple[int, int, int, int]] = []
  payoffs: list[float] = []
  for number, board in enumerate(boards):
    counts = [len(hands) for hands in board.hands]
    described = [rows.add(_describe_hands(player, deal, board)) for player in (0, 1)]
    reaches = [values.add(deal.reaches[player][board.hands[player]]) for player in (0, 1)]
    levels = np.unique(np.concatenate(board.strengths))
    level_starts = [
      np.append(np.searchsorted(board.strengths[player], levels), counts[player])
      for player in (0, 1)
    ]
    table[2 + number, :8] = *counts, *described, *reaches, rows.add(*level_starts), len(levels)
    lane_maps: dict[tuple[int, bytes], int] = {}
    for column, kind in ((8, Kind.FOLD), (10, Kind.SHOWDOWN)):
      table[2 + number, column] = len(terminals) // WIDTH
      for index, node in enumerate(nodes):
        if node.kind is not kind or node.level != board.level:
          continue
        places, maps = [], []
        for player, treeplex in enumerate(treeplexes):
          place = _last_row(player, treeplex.root, index, number, nodes, boards, starts, strides)
          key = player, place.lanes.tobytes()
          if key not in lane_maps:
            lane_maps[key] = rows.add(place.lanes)
          places.append(place.first)
          maps.append(lane_maps[key])
        terminals.append((*places, *maps))  # type: ignore[arg-type]
        payoffs.append(node.payoff * board.probability / deal.total)
      while len(terminals) % WIDTH:
        # Batches are filled up with the last terminal again, at no payoff.
        terminals.append(terminals[-1])
        payoffs.append(0.0)
      table[2 + number, column + 1] = len(terminals) // WIDTH
  for player, treeplex in enumerate(treeplexes):
    table[player, :2] = treeplex.root, treeplex.end
  most = max(len(hands) for board in boards for hands in board.hands)
  table[0, 2:5] = values.add(payoffs), most, deal.num_cards + 2
  return Payoff(
    form=POKER_TERMINALS,
    table=table,
    rows=rows.joined(),
    others=np.array(terminals, np.uint32).reshape(-1, 4).T.copy(),
    values=values.joined(),
  )


def _describe_hands(player: int, deal: Deal, board: Board) -> Int64s:
  """Returns a player's hands as `terminal_gradient` needs them, shape (HAND_LINES, hands)."""
  own, other = board.hands[player], board.hands[1 - player]
  lanes = np.full(len(deal.hands), len(other))
  if deal.hand_size == 2:
    # Taking off what both cards hold takes off the same hand twice, so it is added again.
    lanes[other] = np.arange(len(other))
    low, high = deal.hands[own].T
    return np.stack([low, high, low, high, lanes[own]])
  # The place after the last card is written to and never read; the next is read and never written to.
  card = deal.hands[own, 0]
  unread, unwritten = np.full((2, len(own)), [[deal.num_cards], [deal.num_cards + 1]])
  return np.stack([card, unread, card, unwritten, lanes[own]])


class _Pieces:
  """Arrays to be joined end to end."""

  def __init__(self, dtype: type) -> None:
    self._dtype = dtype
    self._arrays: list[npt.NDArray[Any]] = []
    self._length = 0

  def add(self, *arrays: npt.ArrayLike) -> int:
    """Adds arrays and returns where the first begins."""
    start = self._length
    for array in arrays:
      self._arrays.append(np.asarray(array, self._dtype).reshape(-1))
      self._length += self._arrays[-1].size
    return start

  def joined(self) -> npt.NDArray[Any]:
    """Returns all of them."""
    return np.concatenate([np.zeros(0, self._dtype), *self._arrays])
