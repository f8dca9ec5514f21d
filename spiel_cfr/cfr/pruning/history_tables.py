"""A game's histories as arrays: who has done what on the way, and what can come of it; for small games, in NumPy."""

import functools

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.history_walk import CHANCE, TERMINAL, HistoryWalk
from spiel_cfr.games.openspiel.histories import compile_histories
from spiel_cfr.policies import forms


class Tables:
  """A game's histories, as `reference_pruning` needs them.

  Attributes:
    game: the game.
    last: each player's last sequence at each history, shape (histories, players).
    chance: chance's reach of each history.
    ends: the terminal histories.
    returns: of these, shape (terminal histories, players).
    decisions: of each player, the histories where it moves.
    infoset: of each history where a player moves, in the numbering of all players.
    owner: the infoset of each sequence.
    blocks: of each player, sequences of shape (actions, infosets) and infosets, parents first.
    rows: the sequences of each infoset.
    below: infosets right below each sequence.
    num_nodes: how many histories there are at and below each sequence of its owner.
    largest: the largest payoff of its owner at and below each sequence.
    smallest: likewise, the smallest.
    most_reach: no more than this is the others' reach of each infoset.
  """

  def __init__(self, game: CompiledGame, max_nodes: int) -> None:
    """Goes through the histories once, no more than `max_nodes`."""
    found, _ = compile_histories(
      game.view, game.infostates, game.actions, game.num_actions, max_nodes
    )
    walk = HistoryWalk(game, found)
    players = range(game.num_players)
    self.game, roots = game, [tree.root for tree in game.treeplexes]
    self.blocks = [
      [
        (rows, np.arange(tree.num_infosets)[own] + tree.first_infoset)
        for rows, own in tree.blocks()
      ]
      for tree in game.treeplexes
    ]
    self.owner = np.full(game.end, -1)
    self.below: list[list[int]] = [[] for _ in range(game.end)]
    for player in players:
      for rows, infosets in self.blocks[player]:
        self.owner[rows] = infosets
        for j in infosets.tolist():
          self.below[game.parent[j]].append(j)
    self.rows = [np.flatnonzero(self.owner == j) for j in range(game.num_infosets)]
    uniform = walk.probabilities(forms.uniform(game))
    made = np.where(walk.mover[walk.parent] == CHANCE, uniform, 1.0)
    made[0] = 1.0
    self.chance = walk.reach(made)
    self.last = np.tile(roots, (len(walk.mover), 1))
    place = np.arange(len(walk.mover)) - walk.first_child[walk.parent]
    for level in walk.levels[1:]:
      above = walk.parent[level]
      self.last[level] = self.last[above]
      for player in players:
        moved = level[walk.mover[above] == player]
        entry = walk.entry[walk.parent[moved]] + place[moved]
        self.last[moved, player] = game.all_action_sequences[entry]
    self.ends = np.flatnonzero(walk.mover == TERMINAL)
    self.returns = found.returns[walk.index[self.ends]]
    self.decisions = [np.flatnonzero(walk.mover == player) for player in players]
    self.infoset = np.full(len(walk.mover), -1)
    moves = np.concatenate(self.decisions)
    self.infoset[moves] = self.owner[game.all_action_sequences[walk.entry[moves]]]
    self.num_nodes = self._summed(np.ones(len(walk.mover)), np.arange(len(walk.mover)))
    self.largest, self.smallest = self._extreme(np.fmax, -np.inf), self._extreme(np.fmin, np.inf)
    self.most_reach = np.ones(game.num_infosets)
    for player in players:
      own = self.decisions[player]
      reach = np.bincount(self.infoset[own], self.chance[own], game.num_infosets)
      self.most_reach = np.where(reach > 0, np.minimum(reach, 1.0), self.most_reach)

  def _summed(self, numbers: Float64s, nodes: Int64s) -> Float64s:
    """Sums numbers of histories at and below each sequence of each player; shape (sequences,)."""
    result = np.zeros(self.game.end)
    for player, blocks in enumerate(self.blocks):
      np.add.at(result, self.last[nodes, player], numbers)
      for rows, infosets in reversed(blocks):
        np.add.at(result, self.game.parent[infosets], result[rows].sum(axis=0))
    return result

  def _extreme(self, extreme: np.ufunc, start: float) -> Float64s:
    """Returns the extreme payoff of its owner at and below each sequence."""
    result = np.full(self.game.end, start)
    for player, blocks in enumerate(self.blocks):
      extreme.at(result, self.last[self.ends, player], self.returns[:, player])
      for rows, infosets in reversed(blocks):
        extreme.at(result, self.game.parent[infosets], extreme.reduce(result[rows], axis=0))
    return result

  @functools.cached_property
  def ends_at(self) -> list[Int64s]:
    """The terminal histories, as places in `ends`, at which each sequence is its owner's last."""
    result = [np.zeros(0, np.int64)] * self.game.end
    for player in range(self.game.num_players):
      last = self.last[self.ends, player]
      order = np.argsort(last, kind="stable")
      cuts = np.flatnonzero(np.diff(last[order])) + 1
      for each in np.split(order, cuts):
        result[last[each[0]]] = each
    return result

  def others(self, player: int, nodes: Int64s, sequence_form: Float64s) -> Float64s:
    """Returns chance's and the other players' reach of some histories."""
    result = self.chance[nodes].copy()
    for other in range(self.game.num_players):
      if other != player:
        result *= sequence_form[self.last[nodes, other]]
    return result
