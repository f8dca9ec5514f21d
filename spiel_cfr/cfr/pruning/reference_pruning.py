"""Pruning as the papers have it: history by history, in NumPy, to be read, to count with and to test against.

    partial         Lanctot, Waugh, Zinkevich and Bowling, "Monte Carlo Sampling for Regret Minimization in Extensive
                    Games" (2009): where others' reach is 0, nothing is learned, and nothing is visited.
    regret          Brown and Sandholm, "Regret-Based Pruning in Extensive-Form Games" (2015).
    best_response   Brown and Sandholm, "Reduced Space and Faster Convergence in Imperfect-Information Games via
                    Pruning" (2017).

The last two prune a sequence ja that is not played, below the topmost such action of its owner, while

    P = R(ja) + sum over these iterations t of w_t (pi^t(j) U(ja) - v^t(j))  <=  0

with pi^t(j) the other's and chance's reach of infoset j, U(ja) the largest payoff below ja: without looking, nobody
knows more about its regret. "best_response" begins with C(ja) - Z(j) in place of R(ja). Then what is below is made up
as if a best response had been played there, to what was faced meanwhile (dF), or ever (F):

    regret          R(j'a') += u(j'a') - u(j'),  R(ja) += u(ja) - sum of w_t v^t(j),     u the best response to dF
    best_response   R(j'a') = C(j'a') - C(j'),   R(ja) = C(ja) - Z(j),  Z(j') = C(j'),   C the best response to F

Regret matching+ forgets how negative regrets are, and with that for how long an action can be pruned. R remembers it:

    R = r if R <= 0 < r, else R + r;        a negative R is first multiplied by w_{t-1} / w_t

whose positive part is that of regret matching+. Where "best_response" prunes, its numbers are forgotten: they are NaN
until they are made up, which shows that nobody needs them.

`cfr.pruning.pruned` prunes for many iterations at a time and much faster, with fewer promises.
"""

from typing import NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s, Int64s
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.history_walk import HistoryWalk
from spiel_cfr.games.openspiel.history_list import CHANCE, TERMINAL
from spiel_cfr.policies import forms
from spiel_cfr.regret_minimizers.regret_minimizer import tie_tolerances

RULES = ("partial", "regret", "best_response")
_MOST_HISTORIES = 10**6


class Window(NamedTuple):
  """What is known of a sequence that is pruned.

  Attributes:
    most: P, no less than what its regret would be, times the weight of the iteration.
    faced: F when it was opened, shape (sequences,).
    value: Z of its infoset then.
  """

  most: float
  faced: Float64s
  value: float


class ReferenceCFR:
  """CFR or CFR+ with alternating updates and pruning as the papers have it, for two players.

  Averages are those that the others face, as in `cfr.pruning.pruned`.

  Attributes:
    game: the game.
    num_histories: how many it has.
    strategy: of all infosets, shape (sequences,).
    regrets: R, likewise.
    values: Z, the weighted sum of each infoset's values, shape (infosets,).
    faced: the weighted sum of sequence forms as the others faced them, shape (sequences,).
    may_close: which sequences may be pruned, shape (sequences,); all unless somebody writes to it.
    closed: which are, those below them not counted.
    windows: what is known of these.
    visited: how many histories have been visited.
    largest_excess: by how much the regret with which a sequence has come back was larger than P, at most.
    num_returns: how many have come back.
  """

  def __init__(
    self, game: CompiledGame, rule: str | None = None, regret_matching_plus: bool = False
  ) -> None:
    """Makes the solver.

    Args:
      game: a compiled game of two players whose histories can be listed, a million at most.
      rule: "partial", "regret", "best_response", or None for no pruning.
      regret_matching_plus: whether it is CFR+, with linear weights, or CFR.

    Raises:
      ArgumentError: there is no such rule.
      PruningError: there are more than two players.
      GameError: see `compile_histories`.
    """
    if rule is not None:
      arguments.one_of(rule, "rule", RULES)
    if game.num_players != 2:
      raise errors.PruningError(
        f"{game.name} has {game.num_players} players. What a player faces is then no sum of strategies."
      )
    self.game, self.rule, self.plus = game, rule, regret_matching_plus
    self._ties = tie_tolerances(game)
    self.iteration = self.visited = self.num_returns = 0
    self.largest_excess = -np.inf
    self.strategy = forms.uniform(game)
    self.regrets, self.faced = np.zeros((2, game.end))
    self.values = np.zeros(game.num_infosets)
    self.may_close, self.closed = np.ones(game.end, bool), np.zeros(game.end, bool)
    self.windows: dict[int, Window] = {}
    self._list_infosets()
    self._list_histories()

  def _list_infosets(self) -> None:
    """Lists each player's blocks of infosets, parents first; each sequence's owner, and what is right below it."""
    game = self.game
    self._blocks = [
      [
        (rows, tree.first_infoset + np.arange(infosets.start, infosets.stop))
        for rows, infosets in tree.blocks()
      ]
      for tree in game.treeplexes
    ]
    self._owner = np.full(game.end, -1)
    self._infosets_below: list[list[int]] = [[] for _ in range(game.end)]
    for rows, infosets in self._blocks[0] + self._blocks[1]:
      self._owner[rows] = infosets
      for j in infosets.tolist():
        self._infosets_below[game.parent[j]].append(j)
    self._rows = [np.flatnonzero(self._owner == j) for j in range(game.num_infosets)]

  def _list_histories(self) -> None:
    """Lists the players' last sequences and chance's reach at each history, and what can come of each sequence."""
    game = self.game
    walk = HistoryWalk(game, _MOST_HISTORIES)
    self.num_histories = len(walk.mover)
    by_chance = walk.mover[walk.parent] == CHANCE
    by_chance[0] = False
    self._chance = walk.reach(np.where(by_chance, walk.probabilities(forms.uniform(game)), 1.0))
    self._last = np.tile([tree.root for tree in game.treeplexes], (self.num_histories, 1))
    place = np.arange(self.num_histories) - walk.first_child[walk.parent]
    for level in walk.levels[1:]:
      above = walk.parent[level]
      self._last[level] = self._last[above]
      for player in range(2):
        moved = level[walk.mover[above] == player]
        entry = walk.entry[walk.parent[moved]] + place[moved]
        self._last[moved, player] = game.all_action_sequences[entry]
    self._ends = np.flatnonzero(walk.mover == TERMINAL)
    self._returns = walk.returns[walk.index[self._ends]]
    self._moves = [np.flatnonzero(walk.mover == player) for player in range(2)]
    self._infoset = np.full(self.num_histories, -1)
    self._num_below, self._most_reach = np.zeros(game.end), np.zeros(game.num_infosets)
    self._largest, self._smallest = np.full(game.end, -np.inf), np.full(game.end, np.inf)
    for player in range(2):
      moves, last = self._moves[player], self._last[:, player]
      self._infoset[moves] = self._owner[game.all_action_sequences[walk.entry[moves]]]
      np.add.at(self._most_reach, self._infoset[moves], self._chance[moves])
      for ufunc, result, nodes, numbers in (
        (np.add, self._num_below, slice(None), 1.0),
        (np.maximum, self._largest, self._ends, self._returns[:, player]),
        (np.minimum, self._smallest, self._ends, self._returns[:, player]),
      ):
        # Of histories at and below each sequence.
        ufunc.at(result, last[nodes], numbers)
        for rows, infosets in reversed(self._blocks[player]):
          ufunc.at(result, game.parent[infosets], ufunc.reduce(result[rows], axis=0))

  def _reach(self, player: int, nodes: Int64s, sequence_form: Float64s) -> Float64s:
    """Returns chance's and the other player's reach of some histories."""
    result: Float64s = self._chance[nodes] * sequence_form[self._last[nodes, 1 - player]]
    return result

  def weight(self, iteration: int) -> float:
    """Returns what an iteration weighs."""
    return float(iteration) if self.plus else 1.0

  def average(self) -> Float64s:
    """Returns the average in behavioural form, shape (sequences,)."""
    return forms.behavioral_form(self.game, self.faced)

  def run(self, iterations: int) -> None:
    """Does some iterations.

    Raises:
      ArgumentError: `iterations` is not a positive integer.
    """
    for _ in range(arguments.positive_integer(iterations, "iterations")):
      self.iteration += 1
      for player in range(2):
        self._update(player, forms.sequence_form(self.game, self.strategy))

  def _update(self, player: int, sequence_form: Float64s) -> None:
    """Does a player's part of an iteration."""
    game, weight, moves = self.game, self.weight(self.iteration), self._moves[player]
    reach = np.zeros(game.num_infosets)
    np.add.at(reach, self._infoset[moves], self._reach(player, moves, sequence_form))
    active, seen = self._active(player, reach)
    looked_at = active[self._last[:, player]]
    if self.rule == "partial":
      looked_at &= self._reach(player, np.arange(self.num_histories), sequence_form) > 0
    self.visited += int(looked_at.sum())
    utility, wanted = np.zeros(game.end), looked_at[self._ends]
    ends = self._ends[wanted]
    worth = self._reach(player, ends, sequence_form) * self._returns[wanted, player]
    np.add.at(utility, self._last[ends, player], worth)
    if self.plus and self.iteration > 1:
      own = self._own(self.regrets, player)
      own[own < 0] *= self.weight(self.iteration - 1) / weight
    found = np.zeros(game.num_infosets)
    for rows, infosets in reversed(self._blocks[player]):
      value = (self.strategy[rows] * utility[rows]).sum(axis=0)
      np.add.at(utility, game.parent[infosets], np.where(seen[infosets], value, 0.0))
      found[infosets] = value
      added, before = utility[rows] - value, self.regrets[rows]
      forgotten = self.plus & (before <= 0) & (added > 0)
      updated = np.where(forgotten, added, before + added)
      self.regrets[rows] = np.where(active[rows], updated, before)
      self._match(rows[:, seen[infosets]], infosets[seen[infosets]])
    self.values[seen] += weight * found[seen]
    theirs = self._own(self.faced, 1 - player)
    theirs += weight * self._own(sequence_form, 1 - player)
    if self.rule in ("regret", "best_response"):
      self._bring_back(player, reach, found)
      self._open(player, seen)

  def _own(self, array: Float64s, player: int) -> Float64s:
    tree = self.game.treeplexes[player]
    return array[tree.root : tree.end]

  def _active(self, player: int, reach: Float64s) -> tuple[Bools, Bools]:
    """Returns which sequences of a player are visited, and which infosets."""
    active, seen = np.zeros(self.game.end, bool), np.zeros(self.game.num_infosets, bool)
    active[self.game.treeplexes[player].root] = True
    for rows, infosets in self._blocks[player]:
      seen[infosets] = active[self.game.parent[infosets]]
      if self.rule == "partial":
        seen[infosets] &= reach[infosets] > 0
      active[rows] = seen[infosets] & ~self.closed[rows]
    return active, seen

  def _match(self, rows: Int64s, infosets: Int64s) -> None:
    """Plays in proportion to positive regrets at some infosets of a block."""
    played = np.where(self.regrets[rows] > self._ties[infosets], self.regrets[rows], 0.0)
    total, uniform = played.sum(axis=0), np.full(rows.shape, 1 / len(rows))
    self.strategy[rows] = np.divide(played, total, out=uniform, where=total > 0)

  def _bring_back(self, player: int, reach: Float64s, values: Float64s) -> None:
    """Lets time pass for what is pruned, and brings back what may have a positive regret by now."""
    weight, tree = self.weight(self.iteration), self.game.treeplexes[player]
    for row in [row for row in self.windows if tree.root <= row < tree.end]:
      j, window = self._owner[row], self.windows[row]
      most = window.most + weight * (reach[j] * self._largest[row] - values[j])
      self.windows[row] = window._replace(most=most)
      if most > 0:
        self.bring_back(row)

  def bring_back(self, row: int) -> None:
    """Makes up the history at and below a pruned sequence as if a best response had been played there."""
    window, j = self.windows.pop(row), self._owner[row]
    weight, since = self.weight(self.iteration), self.rule == "regret"
    # C, or u.
    best: dict[int, float] = {}
    worth = self._best(row, self.faced - since * window.faced, best)
    self.visited += int(self._num_below[row])
    for j_below in self._below(row):
      rows = self._rows[j_below]
      own = np.array([best[each] for each in rows.tolist()])
      made = (own - own.max()) / weight
      self.regrets[rows] = made + (self.regrets[rows] if since else 0.0)
      self.values[j_below] = own.max() + (self.values[j_below] if since else 0.0)
      self._match(rows[:, None], np.array([j_below]))
    gained = (worth - (self.values[j] - since * window.value)) / weight
    self.regrets[row] = gained + (self.regrets[row] if since else 0.0)
    self.closed[row] = False
    self._match(self._rows[j][:, None], np.array([j]))
    excess = float(self.regrets[row]) - window.most / weight
    self.largest_excess = max(self.largest_excess, excess)
    self.num_returns += 1

  def _best(self, row: int, faced: Float64s, best: dict[int, float]) -> float:
    """Notes what each sequence at and below one is worth with a best response; returns that of the first."""
    player = int(row >= self.game.treeplexes[1].root)
    ends = np.flatnonzero(self._last[self._ends, player] == row)
    reach = self._reach(player, self._ends[ends], faced)
    worth = float(reach @ self._returns[ends, player])
    for j in self._infosets_below[row]:
      worth += max(self._best(each, faced, best) for each in self._rows[j].tolist())
    best[row] = worth
    return worth

  def _below(self, row: int) -> list[int]:
    """Returns the infosets below a sequence."""
    result = []
    for j in self._infosets_below[row]:
      result.append(j)
      for each in self._rows[j].tolist():
        result += self._below(each)
    return result

  def _open(self, player: int, seen: Bools) -> None:
    """Prunes what can be pruned for an iteration at least, the topmost sequences only."""
    weight, coming = self.weight(self.iteration), self.weight(self.iteration + 1)
    free = np.zeros(self.game.end, bool)
    free[self.game.treeplexes[player].root] = True
    for rows, infosets in self._blocks[player]:
      here = free[self.game.parent[infosets]] & seen[infosets]
      spread = self._largest[rows] - self._smallest[rows].min(axis=0)
      growth = coming * spread * self._most_reach[infosets]
      negative = self.regrets[rows] < -self._ties[infosets]
      negative &= self.regrets[rows] * weight + growth <= 0
      wanted = here & negative & ~self.closed[rows] & self.may_close[rows]
      wanted &= self.strategy[rows] == 0
      for row, more in zip(rows[wanted].tolist(), growth[wanted].tolist(), strict=True):
        self._close(row, more)
      free[rows] = here & ~self.closed[rows]

  def _close(self, row: int, growth: float) -> None:
    """Prunes a sequence, unless its best response could have a positive regret too soon."""
    infosets, j = self._below(row), int(self._owner[row])
    rows = [each for below in infosets for each in self._rows[below].tolist()]
    for each in rows:
      if each in self.windows:
        self.bring_back(each)
    most = float(self.regrets[row]) * self.weight(self.iteration)
    if self.rule == "best_response":
      most = self._best(row, self.faced, {}) - float(self.values[j])
      self.visited += int(self._num_below[row])
      if most + growth > 0:
        return
      self.regrets[rows] = np.nan
      self.values[infosets] = np.nan
    self.closed[row] = True
    self.windows[row] = Window(most, self.faced.copy(), float(self.values[j]))
