"""Compiled poker games in files: the betting, boards and hands as arrays.

`to_file` makes the arrays, `from_file` a game, without another walk of the betting in OpenSpiel.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyspiel

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Int64s, require, require_array
from spiel_cfr._util import files
from spiel_cfr.games.openspiel import loading
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.vector.public_tree import PLAYERS
from spiel_cfr.poker import cards
from spiel_cfr.poker.betting_tree import DEALT, BettingNode, NodeKind, path_after
from spiel_cfr.poker.boards import Board, list_boards
from spiel_cfr.poker.deal import NUM_SUITS, Deal, find_deal
from spiel_cfr.poker.hand_tree import hand_tree
from spiel_cfr.poker.public_game import PublicGame
from spiel_cfr.poker.rake import RakedReturns
from spiel_cfr.poker.street_names import StreetNames

# Fields of `Deal` in the header of a file.
_OF_DEAL = ("num_ranks", "num_suits", "hand_size", "board", "one_action", "path", "streets")
# Fields of `BettingNode` and `Board` that are arrays of a file, with one number for each node, board or hand.
_OF_NODES = ("level", "player", "payoff", "rake")
_OF_BOARDS = ("level", "parent", "probability", "copies")
_OF_HANDS = ("hands", "strengths", "infoset_of_hand")


class KeptActions:
  """Action filter of a game from a file: it keeps the actions of the saved betting."""

  def __init__(self, deal: Deal, nodes: Sequence[BettingNode]) -> None:
    self._num_moves_before = deal.num_moves_before
    self._actions = {node.path: node.actions for node in nodes if node.kind is NodeKind.DECISION}

  def __call__(self, state: Any, actions: list[int]) -> list[int]:
    """Returns the kept actions; before the beginning of the game, all actions."""
    return list(self._actions.get(path_after(state, self._num_moves_before), actions))


def without_names(game: PublicGame) -> PublicGame:
  """Returns a copy of a game with merged suits that drops the unmerged game, and so the infostates.

  A game without merged suits is returned as it is.

  Raises:
    UnsupportedGameError: the game is an abstraction of another kind.
  """
  if game.original is game:
    return game
  tree = game.tree
  with_merged_suits = list_boards(tree.deal, tree.nodes, merged=True)
  infosets, expected = (
    [of_hand for board in boards for of_hand in board.infoset_of_hand]
    for boards in (tree.boards, with_merged_suits)
  )
  if len(with_merged_suits) != len(tree.boards) or not all(map(np.array_equal, infosets, expected)):
    raise errors.UnsupportedGameError(
      f"{game.name} is an abstraction, in which hands share infosets that do not play alike. Save its solver instead: "
      "solver.save."
    )
  return PublicGame(game.view, tree, game.dtype, game.num_threads)


def to_file(game: PublicGame) -> tuple[dict[str, Any], files.Arrays]:
  """Returns the header and the arrays of a game, for `files.write`."""
  tree = game.tree
  deal, nodes, boards = tree.deal, tree.nodes, tree.boards
  header = {
    "game": game.game_string,
    "game_sha256": game.digest,
    "dtype": game.dtype.name,
    "partitioned": game.num_threads is not None,
    "deal": {name: getattr(deal, name) for name in _OF_DEAL},
  }
  parent, move = np.full((2, len(nodes)), -1)
  for number, node in enumerate(nodes):
    parent[node.children] = number
    if node.actions:
      move[node.children] = node.actions
  arrays: files.Arrays = {"reaches": deal.reaches, "node.parent": parent, "node.move": move}
  arrays["node.kind"] = np.array([node.kind.value for node in nodes], np.int8)
  arrays |= {
    f"node.{name}": np.array([getattr(node, name) for node in nodes]) for name in _OF_NODES
  }
  arrays |= {
    f"board.{name}": np.array([getattr(board, name) for board in boards]) for name in _OF_BOARDS
  }
  arrays["board.cards"] = np.array([card for board in boards for card in board.cards], np.int8)
  arrays["board.counts"] = np.array([[len(hands) for hands in board.hands] for board in boards])
  for name in _OF_HANDS:
    flat = np.concatenate([of_player for board in boards for of_player in getattr(board, name)])
    arrays[f"board.{name}"] = flat.astype(np.int32)
  return header, arrays


def from_file(header: Mapping[str, Any], arrays: files.Arrays) -> PublicGame:
  """Returns the game of a file, after checks of all its parts.

  Raises:
    ValueError, LookupError, TypeError, ArithmeticError, SpielCFRError: the file is not from `to_file`.
  """
  loaded = loading.load_game(header["game"])
  deal = _read_deal(header["deal"], arrays["reaches"])
  nodes = _read_nodes(deal, arrays)
  _check_game(loaded, deal, nodes[0].player)
  tree = hand_tree(deal, nodes, _read_boards(deal, arrays))
  view = GameView(loaded, KeptActions(deal, nodes), infostate=StreetNames.of(deal))
  if tree.is_raked:
    view = view.with_returns(RakedReturns.of(nodes, deal))
  game = PublicGame(view, tree, np.dtype(header["dtype"]), 1 if header["partitioned"] else None)
  if game.digest != header["game_sha256"]:
    raise errors.FileFormatError("its game has another digest than the game that was saved.")
  return game


def _check_game(game: pyspiel.Game, deal: Deal, player: int) -> None:
  """Checks that OpenSpiel's game has the deck and the path of a deal, and that a player moves after the path."""
  decks = [
    (of_deal.num_ranks, of_deal.num_suits, of_deal.hand_size, of_deal.one_action)
    for of_deal in (find_deal(game), deal)
  ]
  require(decks[0] == decks[1], "the deck is the game's")
  is_in_range = deal.reaches > 0
  require(is_in_range.any(axis=1), "both players have hands")
  first_hand = deal.hands[int(np.argmax(is_in_range[0]))].tolist()
  opponents = [hand for hand in deal.hands[is_in_range[1]].tolist() if not {*hand} & {*first_hand}]
  require(len(opponents) > 0, "some hands share no card")
  state = game.new_initial_state()
  for action in deal.actions(first_hand, opponents[0]):
    require(not state.is_terminal() and action in state.legal_actions(), "moves are legal")
    state.apply_action(action)
  require(state.current_player() == player, "the player of the first node is to move")


def _read_deal(fields: Mapping[str, Any], reaches: npt.NDArray[Any]) -> Deal:
  """Returns the deal of a file."""
  board = tuple(fields["board"])
  num_ranks, num_suits, hand_size = (
    fields[name] for name in ("num_ranks", "num_suits", "hand_size")
  )
  require(1 <= num_ranks <= len(cards.RANKS) and 1 <= num_suits <= NUM_SUITS, "there is a deck")
  require(hand_size in (1, 2), "a hand has one or two cards")
  hands = cards.all_hands(num_ranks * num_suits, hand_size, board)
  require(reaches.shape == (len(PLAYERS), len(hands)), "every hand has a reach")
  require(np.isfinite(reaches) & (reaches >= 0) & (reaches <= 1), "reaches are probabilities")
  path, streets = fields["path"], fields["streets"]
  require([type(number) is int for number in (*path, *streets)], "moves and streets are integers")
  require([1 <= count <= num_ranks * num_suits for count in streets], "streets have cards")
  return Deal(
    num_ranks,
    num_suits,
    hands,
    reaches,
    board,
    bool(fields["one_action"]),
    tuple(path),
    tuple(streets),
  )


def _read_nodes(deal: Deal, arrays: files.Arrays) -> list[BettingNode]:
  """Returns the betting of a file."""
  count = len(arrays["node.kind"])
  for name in ("parent", "move", "level", "player"):
    require_array(arrays[f"node.{name}"], name, np.int64, count)
  for name in ("payoff", "rake"):
    require_array(arrays[f"node.{name}"], name, np.float64, count)
    require(np.isfinite(arrays[f"node.{name}"]), "payoffs are finite")
  parents, moves = arrays["node.parent"].tolist(), arrays["node.move"].tolist()
  columns = [arrays[f"node.{name}"].tolist() for name in ("kind", *_OF_NODES)]
  nodes = [
    BettingNode(NodeKind(kind), level, (), player, payoff=payoff, rake=rake)
    for kind, level, player, payoff, rake in zip(*columns, strict=True)
  ]
  for number, parent in enumerate(parents[1:], 1):
    require(0 <= parent < number, "parents come first")
    nodes[parent].children.append(number)
  for number, node in enumerate(nodes):
    if node.kind is NodeKind.DECISION:
      require(node.player in PLAYERS, "a player decides")
      node.children.sort(key=moves.__getitem__)
      node.actions = tuple(moves[child] for child in node.children)
    elif node.kind is NodeKind.CHANCE:
      node.num_cards = deal.streets[node.level]
    _set_paths(nodes, number)
  return nodes


def _set_paths(nodes: list[BettingNode], parent: int) -> None:
  """Sets `path` and `last` of a node's children, and checks their levels."""
  node = nodes[parent]
  is_chance = node.kind is NodeKind.CHANCE
  for index, child in enumerate(node.children):
    require(nodes[child].level == node.level + is_chance, "only chance deals cards")
    moves = [DEALT] * node.num_cards if is_chance else [node.actions[index]]
    nodes[child].path = (*node.path, *moves)
    nodes[child].last = tuple(
      (parent, index) if owner == node.player and not is_chance else before
      for owner, before in enumerate(node.last)
    )


def _read_boards(deal: Deal, arrays: files.Arrays) -> list[Board]:
  """Returns the boards of a file."""
  columns = [arrays[f"board.{name}"].tolist() for name in _OF_BOARDS]
  counts, public = arrays["board.counts"].tolist(), arrays["board.cards"].tolist()
  chances = arrays["board.probability"]
  require((chances > 0) & (chances <= 1), "boards have probabilities")
  num_hands = int(arrays["board.counts"].sum())
  for name in _OF_HANDS:
    require_array(arrays[f"board.{name}"], name, np.int32, num_hands)
  of_hands = [arrays[f"board.{name}"].astype(np.int64) for name in _OF_HANDS]
  require([0 <= card < deal.num_cards for card in public], "cards are those of the deck")
  require((of_hands[0] >= 0) & (of_hands[0] < len(deal.hands)), "hands are those of the deal")
  num_public = list(itertools.accumulate(deal.streets, initial=len(deal.board)))
  boards: list[Board] = []
  first_card = first_hand = 0
  for (level, parent, probability, copies), counts_of_board in zip(
    zip(*columns, strict=True), counts, strict=True
  ):
    level_before = boards[parent].level if boards else level - 1
    is_after_parent = 0 <= parent <= len(boards) and level_before == level - 1
    require(is_after_parent, "boards follow their parents")
    dealt = tuple(public[first_card : first_card + num_public[level]])
    first_card += num_public[level]
    of_players: list[list[Int64s]] = []
    for count in counts_of_board:
      of_players.append([column[first_hand : first_hand + count] for column in of_hands])
      first_hand += count
    hands, strengths, infosets = zip(*of_players, strict=True)
    for of_hand in infosets:
      require((of_hand >= 0) & (of_hand < len(of_hand)), "infosets are at most as many as hands")
    reaches = tuple(deal.reaches[player, rows] for player, rows in enumerate(hands))
    boards.append(
      Board(dealt, level, probability, hands, strengths, infosets, reaches, parent, copies)
    )
  require(first_card == len(public), "cards are those of boards")
  return boards
