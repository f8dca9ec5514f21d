"""Pruning as the papers have it: history by history, in NumPy, to be read, to count with and to test against.

    partial         Lanctot, Waugh, Zinkevich and Bowling, "Monte Carlo Sampling for Regret Minimization in Extensive
                    Games" (2009): where others' reach is 0, nothing is learned, and nothing is visited.
    regret          Brown and Sandholm, "Regret-Based Pruning in Extensive-Form Games" (2015).
    best_response   Brown and Sandholm, "Reduced Space and Faster Convergence in Imperfect-Information Games via
                    Pruning" (2017).

The last two leave a sequence ja alone that is not played, below the topmost such action of its owner, while

    P = R(ja) + sum over these iterations t of w_t (pi^t(j) U(ja) - v^t(j))  <=  0

with pi^t(j) the others' and chance's reach of infoset j, U(ja) the largest payoff below ja: without looking, nobody
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
from spiel_cfr.cfr.pruning.history_tables import Tables
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.policies import forms
from spiel_cfr.regret_minimizers.regret_minimizer import tie_tolerances

RULES = ("partial", "regret", "best_response")


class Window(NamedTuple):
  """What is known of a sequence that is left alone.

  Attributes:
    most: P, no less than what its regret would be, times the weight of the iteration.
    faced: F when it was opened, shape (sequences,).
    value: Z of its infoset then.
  """

  most: float
  faced: Float64s
  value: float


class ReferenceCFR:
  """CFR or CFR+ with pruning as the papers have it, on a game whose histories are listed.

  Averages are those that the others face, as in `cfr.pruning.pruned`; with more than two players, those before updates.

  Attributes:
    strategy: of all infosets, shape (sequences,).
    regrets: R, likewise.
    values: Z, the weighted sum of each infoset's values, shape (infosets,).
    faced: the weighted sum of sequence forms as the others faced them, shape (sequences,).
    closed: which sequences are left alone, those below them not counted.
    visited: how many histories have been visited.
    largest_excess: by how much the regret with which a sequence has come back was larger than P, at most.
    num_returns: how many have come back.
  """

  def __init__(
    self,
    game: CompiledGame,
    rule: str | None = None,
    regret_matching_plus: bool = False,
    alternating_updates: bool = True,
    least: int = 1,
    where: Bools | None = None,
    max_nodes: int = 10**6,
  ) -> None:
    """Makes the solver.

    Args:
      game: a compiled game whose histories are listed.
      rule: "partial", "regret", "best_response", or None for no pruning.
      regret_matching_plus: whether it is CFR+, with linear weights, or CFR.
      alternating_updates: whether a player sees the strategies to which those before it have just updated.
      least: for how many iterations, at least, nobody need look, or a sequence is not left alone. The paper's choice
        for a large game is 25.
      where: which sequences may be left alone, shape (sequences,); by default, all.
      max_nodes: how many histories there may be.

    Raises:
      ArgumentError: there is no such rule, or `least` is no positive integer.
      PruningError: there are more than two players, and the rule is not "partial".
      GameError: see `compile_histories`.
    """
    if rule is not None:
      arguments.one_of(rule, "rule", RULES)
    if game.num_players > 2 and rule not in (None, "partial"):
      raise errors.PruningError(
        f"{game.game_string} has {game.num_players} players. What a player faces is then no sum of strategies; take "
        "rule='partial'."
      )
    self.tables = Tables(game, max_nodes)
    self.rule, self.plus, self.alternating = rule, regret_matching_plus, alternating_updates
    self._least = arguments.positive_integer(least, "least")
    self._where = np.ones(game.end, bool) if where is None else where
    self._ties = tie_tolerances(game)
    self.iteration = self.visited = self.num_returns = 0
    self.largest_excess = -np.inf
    self.strategy = forms.uniform(game)
    self.regrets, self.faced = np.zeros((2, game.end))
    self.values = np.zeros(game.num_infosets)
    self.closed = np.zeros(game.end, bool)
    self.windows: dict[int, Window] = {}

  @property
  def game(self) -> CompiledGame:
    """The game."""
    return self.tables.game

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
      sequence_form = forms.sequence_form(self.game, self.strategy)
      before = sequence_form
      for player in range(self.game.num_players):
        self._update(player, sequence_form)
        if self.alternating:
          sequence_form = forms.sequence_form(self.game, self.strategy)
      if self.game.num_players > 2:
        self.faced += self.weight(self.iteration) * before

  def _update(self, player: int, sequence_form: Float64s) -> None:
    """Does a player's part of an iteration."""
    tables, weight = self.tables, self.weight(self.iteration)
    own = tables.decisions[player]
    reach = np.zeros(self.game.num_infosets)
    np.add.at(reach, tables.infoset[own], tables.others(player, own, sequence_form))
    active, seen = self._active(player, reach)
    ends = tables.others(player, tables.ends, sequence_form)
    looked_at = active[tables.last[:, player]]
    if self.rule == "partial":
      looked_at &= tables.others(player, np.arange(len(looked_at)), sequence_form) > 0
    self.visited += int(looked_at.sum())
    utility = np.zeros(self.game.end)
    wanted = looked_at[tables.ends]
    last = tables.last[tables.ends[wanted], player]
    np.add.at(utility, last, ends[wanted] * tables.returns[wanted, player])
    if self.plus and self.iteration > 1:
      tree = self.game.treeplexes[player]
      own_regrets = self.regrets[tree.root : tree.end]
      own_regrets[own_regrets < 0] *= self.weight(self.iteration - 1) / weight
    found = np.zeros(self.game.num_infosets)
    for rows, infosets in reversed(tables.blocks[player]):
      value = (self.strategy[rows] * utility[rows]).sum(axis=0)
      np.add.at(utility, self.game.parent[infosets], np.where(seen[infosets], value, 0.0))
      found[infosets] = value
      added, before = utility[rows] - value, self.regrets[rows]
      forgotten = self.plus & (before <= 0) & (added > 0)
      updated = np.where(forgotten, added, before + added)
      self.regrets[rows] = np.where(active[rows], updated, before)
      self._match(rows[:, seen[infosets]], infosets[seen[infosets]])
    self.values[seen] += weight * found[seen]
    if self.game.num_players == 2:
      other = self.game.treeplexes[1 - player]
      theirs = slice(other.root, other.end)
      self.faced[theirs] += weight * sequence_form[theirs]
    if self.rule in ("regret", "best_response"):
      self._bring_back(player, reach, found)
      self._open(player, seen)

  def _active(self, player: int, reach: Float64s) -> tuple[Bools, Bools]:
    """Returns which sequences of a player are visited, and which infosets."""
    active, seen = np.zeros(self.game.end, bool), np.zeros(self.game.num_infosets, bool)
    active[self.game.treeplexes[player].root] = True
    for rows, infosets in self.tables.blocks[player]:
      seen[infosets] = active[self.game.parent[infosets]]
      if self.rule == "partial":
        seen[infosets] &= reach[infosets] > 0
      active[rows] = seen[infosets] & ~self.closed[rows]
    return active, seen

  def _match(self, rows: Int64s, infosets: Int64s) -> None:
    """Plays in proportion to positive regrets at some infosets of a block."""
    played = np.where(self.regrets[rows] > self._ties[infosets], self.regrets[rows], 0.0)
    total = played.sum(axis=0)
    self.strategy[rows] = np.where(
      total > 0, played / np.where(total > 0, total, 1.0), 1 / len(rows)
    )

  # Windows.

  def _bring_back(self, player: int, reach: Float64s, values: Float64s) -> None:
    """Lets time pass for what is left alone, and brings back what may have a positive regret by now."""
    weight, tree = self.weight(self.iteration), self.game.treeplexes[player]
    for row in [row for row in self.windows if tree.root <= row < tree.end]:
      j, window = self.tables.owner[row], self.windows[row]
      most = window.most + weight * (reach[j] * self.tables.largest[row] - values[j])
      self.windows[row] = window._replace(most=most)
      if most > 0:
        self._return(row)

  def _return(self, row: int) -> None:
    """Makes up the history below a sequence as if a best response had been played there."""
    window, j = self.windows.pop(row), self.tables.owner[row]
    weight, since = self.weight(self.iteration), self.rule == "regret"
    # C, or u.
    best: dict[int, float] = {}
    worth = self._best(row, self.faced - since * window.faced, best)
    self.visited += int(self.tables.num_nodes[row])
    for j_below, value in self._below(row, best):
      rows = self.tables.rows[j_below]
      made = (np.array([best[each] for each in rows.tolist()]) - value) / weight
      self.regrets[rows] = made + (self.regrets[rows] if since else 0.0)
      self.values[j_below] = value + (self.values[j_below] if since else 0.0)
      self._match(rows[:, None], np.array([j_below]))
    gained = (worth - (self.values[j] - since * window.value)) / weight
    self.regrets[row] = gained + (self.regrets[row] if since else 0.0)
    self.closed[row] = False
    rows = self.tables.rows[j]
    self._match(rows[:, None], np.array([j]))
    excess = float(self.regrets[row]) - window.most / weight
    self.largest_excess = max(self.largest_excess, excess)
    self.num_returns += 1

  def _best(self, row: int, faced: Float64s, best: dict[int, float]) -> float:
    """Notes what each sequence at and below one is worth with a best response; returns that of the first."""
    tables, ends = self.tables, self.tables.ends_at[row]
    player = int(np.searchsorted([tree.end for tree in self.game.treeplexes], row, "right"))
    nodes = tables.ends[ends]
    worth = float(tables.others(player, nodes, faced) @ tables.returns[ends, player])
    for j in tables.below[row]:
      worth += max(self._best(each, faced, best) for each in tables.rows[j].tolist())
    best[row] = worth
    return worth

  def _below(self, row: int, best: dict[int, float]) -> list[tuple[int, float]]:
    """Returns the infosets below a sequence, and what each is worth with a best response."""
    result = []
    for j in self.tables.below[row]:
      rows = self.tables.rows[j].tolist()
      result.append((j, max(best[each] for each in rows)))
      for each in rows:
        result += self._below(each, best)
    return result

  def _open(self, player: int, seen: Bools) -> None:
    """Leaves alone what can be left alone for `least` iterations at least, the topmost sequences only."""
    tables, weight = self.tables, self.weight(self.iteration)
    coming = sum(self.weight(self.iteration + later) for later in range(1, self._least + 1))
    free = np.zeros(self.game.end, bool)
    free[self.game.treeplexes[player].root] = True
    for rows, infosets in tables.blocks[player]:
      here = free[self.game.parent[infosets]] & seen[infosets]
      steepest = (tables.largest[rows] - tables.smallest[rows].min(axis=0)) * tables.most_reach[
        infosets
      ]
      below = self.regrets[rows] < -self._ties[infosets]
      hopeless = self.regrets[rows] * weight + coming * steepest <= 0
      wanted = here & below & hopeless & ~self.closed[rows] & self._where[rows]
      for row in rows[wanted & (self.strategy[rows] == 0)].tolist():
        self._close(row, coming * float(steepest[rows == row][0]))
      free[rows] = here & ~self.closed[rows]

  def _close(self, row: int, growth: float) -> None:
    """Leaves a sequence alone, unless its best response could have a positive regret too soon."""
    for each in self._rows_below(row):
      if each in self.windows:
        self._return(each)
    j = int(self.tables.owner[row])
    most = float(self.regrets[row]) * self.weight(self.iteration)
    if self.rule == "best_response":
      most = self._best(row, self.faced, {}) - float(self.values[j])
      self.visited += int(self.tables.num_nodes[row])
      if most + growth > 0:
        return
      below = self._rows_below(row)
      self.regrets[below] = np.nan
      self.values[self.tables.owner[below]] = np.nan
    self.closed[row] = True
    self.windows[row] = Window(most, self.faced.copy(), float(self.values[j]))

  def _rows_below(self, row: int) -> list[int]:
    """Returns the sequences below one."""
    result = []
    for j in self.tables.below[row]:
      for each in self.tables.rows[j].tolist():
        result += [each, *self._rows_below(each)]
    return result
