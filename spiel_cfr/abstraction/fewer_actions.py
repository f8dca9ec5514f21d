"""A game without some of its actions, made of its arrays instead of being walked again.

Actions come and go in units: an action at all infosets of a public state, so that whoever knows more does not see what
is missing. What is left out takes with it all that it leads to, and comes back with that.
"""

import abc
import functools
from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s, Int64s
from spiel_cfr.abstraction.abstract_leaves import find_public_states
from spiel_cfr.games.compiled.compiled_game import CompiledGame, Infosets
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame
from spiel_cfr.games.compiling import lay_out
from spiel_cfr.games.payoffs.build_payoff import merged_leaves
from spiel_cfr.poker.hand_infosets import first_deal
from spiel_cfr.poker.hand_layout import TERMINALS
from spiel_cfr.poker.kept_nodes import kept_layout
from spiel_cfr.poker.public_game import PublicGame
from spiel_cfr.poker.public_tree import Kind

# A move of chance in a `way`.
_DEALT = -1


class Spot(NamedTuple):
  """Infosets where actions come and go together: one, or in vector form those of a public state.

  Attributes:
    player: whose.
    state: one of OpenSpiel's states there.
    actions: its legal actions.
    sequences: shape (actions, infosets).
    units: the number of each action's unit.
  """

  player: int
  state: Any
  actions: list[int]
  sequences: Int64s
  units: list[int]


class Smaller(NamedTuple):
  """A game without some actions.

  Attributes:
    game: the game.
    places: for each of its sequences, that of the whole game; -1 for padding.
  """

  game: CompiledGame
  places: Int64s


class Choices(abc.ABC):
  """A game's actions in units.

  Attributes:
    game: the whole game.
    spots: all its infosets.
    unit: int64 of shape (sequences,): the unit of each, -1 for what no action leads to.
    num_units: how many there are.
  """

  def __init__(self, game: CompiledGame) -> None:
    """Lists the units."""
    self.game = game
    self.spots: list[Spot] = []
    self.unit = np.full(game.end, -1)
    self._units: dict[tuple[Hashable, int], int] = {}
    self._find_spots()
    self.num_units = len(self._units)

  def _add(
    self, player: int, group: Hashable, state: Any, actions: list[int], sequences: Int64s
  ) -> None:
    units = [self._units.setdefault((group, action), len(self._units)) for action in actions]
    self.spots.append(Spot(player, state, actions, sequences, units))
    self.unit[sequences] = np.array(units)[:, None]

  def kept_sequences(self, kept: Bools) -> Bools:
    """Returns which sequences are kept, whatever is above them; `kept` is of shape (units,)."""
    result: Bools = np.append(kept, True)[self.unit]
    return result

  def alive(self, kept: Bools) -> Bools:
    """Returns which sequences are kept with all that is above them, shape (sequences,)."""
    own, result = self.kept_sequences(kept), np.zeros(self.game.end, bool)
    for tree in self.game.treeplexes:
      result[tree.root] = True
      for sequences, infosets in tree.blocks():
        result[sequences] = own[sequences] & result[tree.parent[infosets]]
    return result

  def smaller(self, kept: Bools) -> Smaller:
    """Returns the game with the units that are kept; the whole game if all are."""
    if kept.all():
      places = np.where(self.unit >= 0, np.arange(self.game.end), -1)
      for tree in self.game.treeplexes:
        places[tree.root] = tree.root
      return Smaller(self.game, places)
    return self._smaller(kept)

  @abc.abstractmethod
  def _find_spots(self) -> None:
    """Adds all spots."""

  @abc.abstractmethod
  def look_up(self, state: Any, way: tuple[int, ...]) -> int | None:
    """Returns the number of the spot that a state is at.

    Args:
      state: where a player is to move.
      way: the actions that have led there, those of chance as -1.
    """

  @abc.abstractmethod
  def new_payoffs(self, kept: Bools) -> Int64s:
    """Counts the payoffs that each unit would add by itself, shape (units,)."""

  @abc.abstractmethod
  def _smaller(self, kept: Bools) -> Smaller:
    """Makes the game."""


def make_choices(game: CompiledGame) -> Choices:
  """Returns the choices of a game.

  Raises:
    UnsupportedGameError: the game is an abstraction.
  """
  if isinstance(game, PublicGame) and game.original is game:
    return _PublicChoices(game)
  return _ListedChoices(game)


class _ListedChoices(Choices):
  """Of a game that lists its leaves."""

  game: EnumeratedGame

  def _find_spots(self) -> None:
    game = self.game
    public = find_public_states(game)
    states = iter(game.first_states())
    self._names: dict[tuple[int, str], int] = {}
    begin = 0
    for player, (own, groups) in enumerate(zip(game.infosets, public, strict=True)):
      legal = np.split(own.actions, np.cumsum(own.num_actions)[:-1])
      for infostate, group, actions in zip(own.infostates, groups.tolist(), legal, strict=False):
        cells = game.all_action_sequences[begin : begin + len(actions)]
        self._names[player, infostate] = len(self.spots)
        self._add(player, (player, group), next(states), actions.tolist(), cells[:, None])
        begin += len(actions)

  def look_up(self, state: Any, way: tuple[int, ...]) -> int | None:
    return self._names.get((state.current_player(), self.game.view.infostate(state)))

  @functools.cached_property
  def _cells(self) -> list[Int64s]:
    """Per player, the sequences in order of discovery, the empty one first."""
    ends = np.cumsum([len(own.actions) for own in self.game.infosets])[:-1]
    pieces = np.split(self.game.all_action_sequences, ends)
    return [
      np.append(tree.root, own) for tree, own in zip(self.game.treeplexes, pieces, strict=True)
    ]

  @functools.cached_property
  def _leaves(self) -> tuple[Int64s, Float64s]:
    """The leaves' sequences and payoffs, shapes (players, leaves) and (leaves, players), in order of discovery."""
    game = self.game
    number = np.zeros(game.end, np.uint32)
    for cells in self._cells:
      number[cells] = np.arange(len(cells))
    leaves, payoffs = merged_leaves(game.payoff, game.num_players, number, np.ones(game.end))
    every = [cells[own] for cells, own in zip(self._cells, leaves, strict=True)]
    return np.stack(every), payoffs

  def new_payoffs(self, kept: Bools) -> Int64s:
    # How many units are missing on the way to each sequence, and the sum of their numbers.
    missing = ~self.kept_sequences(kept)
    count, total = missing.astype(np.int64), np.where(missing, self.unit, 0)
    for tree in self.game.treeplexes:
      for sequences, infosets in tree.blocks():
        count[sequences] += count[tree.parent[infosets]]
        total[sequences] += total[tree.parent[infosets]]
    leaves, _ = self._leaves
    alone = count[leaves].sum(axis=0) == 1
    return np.bincount(total[leaves[:, alone]].sum(axis=0), minlength=self.num_units)

  def _smaller(self, kept: Bools) -> Smaller:
    game = self.game
    alive, own_kept = self.alive(kept), self.kept_sequences(kept)
    leaves, payoffs = self._leaves
    # Leaves that are worth nothing are not listed. So an infoset stays if its owner plays to it and the others to any
    # leaf below it, kept or not; or if no leaf below it is listed.
    used, listed = np.zeros((2, game.end), bool)
    for player, own_leaves in enumerate(leaves):
      used[own_leaves[alive[np.delete(leaves, player, axis=0)].all(axis=0)]] = True
      listed[own_leaves] = True
    left = alive[leaves].all(axis=0)
    leaves, payoffs = leaves[:, left], payoffs[left]
    number = np.zeros(game.end, np.uint32)
    parents, num_actions, cells, here = [], [], [], []
    for player, (tree, own) in enumerate(zip(game.treeplexes, game.infosets, strict=True)):
      live = np.zeros(tree.num_infosets, bool)
      for sequences, infosets in reversed(list(tree.blocks())):
        above = tree.parent[infosets]
        some = used[sequences].any(axis=0) | ~listed[sequences].any(axis=0)
        live[infosets] = some & alive[above]
        used[above[live[infosets]]] = True
        listed[above[listed[sequences].any(axis=0)]] = True
      here.append(live[own.position])
      of_all = self._cells[player][1:]
      infoset = np.repeat(np.arange(len(own.num_actions)), own.num_actions)
      stays = here[-1][infoset] & own_kept[of_all]
      cells.append(of_all[stays])
      number[cells[-1]] = 1 + np.arange(len(cells[-1]))
      parents.append(number[tree.parent[own.position[here[-1]]]].astype(np.int64))
      counts = np.bincount(infoset[stays], minlength=len(own.num_actions))
      num_actions.append(counts[here[-1]])
    placements, payoff = lay_out(parents, num_actions, number[leaves], payoffs)
    places = np.full(placements[-1].treeplex.end, -1)
    infosets = []
    for player, (placed, own) in enumerate(zip(placements, game.infosets, strict=True)):
      places[placed.sequences] = np.append(game.treeplexes[player].root, cells[player])
      infosets.append(
        Infosets(
          [name for name, stays in zip(own.infostates, here[player], strict=True) if stays],
          own.actions[np.isin(self._cells[player][1:], cells[player])],
          num_actions[player],
          placed.position,
          placed.first_sequence,
          placed.stride,
        )
      )
    treeplexes = tuple(placed.treeplex for placed in placements)
    small = game.with_payoff(payoff, treeplexes=treeplexes, infosets=tuple(infosets))
    return Smaller(small, places)


class _PublicChoices(Choices):
  """Of poker in vector form."""

  game: PublicGame

  def _find_spots(self) -> None:
    layout, view = self.game.layout, self.game.view
    self._ways: dict[tuple[int, ...], int] = {}
    root = view.new_initial_state()
    # Betting is the same on all boards.
    boards: dict[int, list[int]] = {}
    for number, board in enumerate(layout.boards):
      boards.setdefault(board.level, []).append(number)
    for index, node in enumerate(layout.nodes):
      if node.kind is not Kind.DECISION:
        continue
      first = boards[node.level][0]
      board = layout.boards[first]
      deal = first_deal(layout, node.player, board, int(board.hands[node.player][0]))
      state = root.clone()
      for action in (*deal, *layout.public_actions(first, index)):
        state.apply_action(action)
      self._ways[(*[_DEALT] * len(deal), *node.path)] = len(self.spots)
      every = [layout.sequences(number, index) for number in boards[node.level]]
      self._add(node.player, index, state, list(node.actions), np.hstack(every))

  def look_up(self, state: Any, way: tuple[int, ...]) -> int | None:
    return self._ways.get(way)

  def _kept_by_node(self, kept: Bools) -> dict[int, list[int]]:
    """Returns, for each decision, the indices of the actions that are kept."""
    return {
      index: [
        place for place, action in enumerate(node.actions) if kept[self._units[index, action]]
      ]
      for index, node in enumerate(self.game.layout.nodes)
      if node.kind is Kind.DECISION
    }

  def new_payoffs(self, kept: Bools) -> Int64s:
    layout = self.game.layout
    result = np.zeros(self.num_units, np.int64)
    vectors = [0, 0]
    for board in layout.boards:
      vectors[board.level] += sum(map(len, board.hands))
    missing: list[tuple[int, ...]] = [()] * len(layout.nodes)
    for index, node in enumerate(layout.nodes):
      for place, child in enumerate(node.children):
        missing[child] = missing[index]
        if node.kind is Kind.DECISION:
          unit = self._units[index, node.actions[place]]
          missing[child] += () if kept[unit] else (unit,)
      if node.kind in TERMINALS and len(missing[index]) == 1:
        result[missing[index][0]] += vectors[node.level]
    return result

  def _smaller(self, kept: Bools) -> Smaller:
    game, full = self.game, self.game.layout
    by_node = self._kept_by_node(kept)
    layout, origin, boards = kept_layout(full, by_node)
    parted = game.partition is not None and len(layout.boards) > 1
    threads = game.partition.num_threads if game.partition is not None else 1
    small = PublicGame(game.view, layout, game.dtype, threads, parted)
    places = np.full(small.end, -1)
    for player, tree in enumerate(small.treeplexes):
      places[tree.root] = game.treeplexes[player].root
    for number, board in enumerate(boards):
      for index, node in enumerate(layout.nodes):
        if node.kind is Kind.DECISION and node.level == layout.boards[number].level:
          before = full.sequences(board, origin[index])[by_node[origin[index]]]
          places[layout.sequences(number, index)] = before
    return Smaller(small, places)


def check_same_game(game: CompiledGame, other: CompiledGame) -> None:
  """Makes sure that a game is another one with fewer actions.

  Raises:
    AbstractionError: they have nothing to do with each other.
  """
  if game.game_string != other.game_string:
    raise errors.AbstractionError(f"{other} is not {game} with an action filter.")
