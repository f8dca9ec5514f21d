"""Exact memory of Deep CFR on a compiled game: sums of samples at each infoset.

The loss of a network f on samples r_j with weights w_j at infosets I(j) is

    sum_j w_j |f(x_I(j)) - r_j|^2  =  sum_I W_I |f(x_I) - mean_I|^2  +  a constant

with W_I the sum of the weights at I, and mean_I the weighted mean of its samples. Two sums at each infoset therefore
replace all samples without loss.
"""

import dataclasses
from typing import NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import Bools, Float64s
from spiel_cfr._numba.records import Doubles
from spiel_cfr._numba.steps import Chain, step
from spiel_cfr.deep_cfr.features import Encoder, all_features
from spiel_cfr.deep_cfr.network import Rows
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.openspiel.infoset_features import Float32s
from spiel_cfr.mccfr.compiled_engine import CompiledEngine
from spiel_cfr.mccfr.infoset_table import Entries
from spiel_cfr.mccfr.traversal import Workspace, begin_traversal, num_visited, traverse
from spiel_cfr.mccfr.updates import FullAverage, average_all


class Collect(NamedTuple):
  """The arguments of `collect`.

  Attributes:
    entries: `Entries`. The estimates of the traversal.
    workspace: `Workspace` of the traversal.
    numbers: float64 (3,). The first one is the weight of a sample.
    sums: float64 (entries,). The sums of weight times sample.
    visits: float64 (entries,). The sum of the weights, at action 0 of each infoset.
  """

  entries: Entries
  workspace: Workspace
  numbers: Doubles
  sums: Doubles
  visits: Doubles


@step(Collect, single=False)
def collect(record: Collect) -> None:
  """Adds the samples of a traversal to the sums.

  A sample is v(h, a) - v(h), without the weight that corrects for the player's own exploration.
  """
  entries, workspace, weight = record.entries, record.workspace, record.numbers[0]
  for i in range(num_visited(workspace)):
    begin = np.uint64(workspace.reached[i])
    end = begin + np.uint64(entries.touched[begin])
    entries.touched[begin] = 0
    record.visits[begin] += weight
    for entry in range(begin, end):
      record.sums[entry] += weight / entries.reach[begin] * entries.increment[entry]
      entries.increment[entry] = 0.0


class InfosetRows:
  """Translation between rows, one an infoset, with a column an action, and the entries of a solver's table.

  Attributes:
    features: float32 (infosets, features). The features of all players' infosets, player by player.
    mask: bool (infosets, actions of the game). True for legal actions.
    players: one slice a player. The player's rows.
  """

  def __init__(self, compiled: CompiledGame, encoder: Encoder) -> None:
    """Walks the game for the features of its infosets; raises FeaturesError if two infosets share features."""
    self.features: Float32s = all_features(compiled, encoder)
    self.mask: Bools = compiled.legal_actions_mask.astype(bool)
    self.players = [compiled.infoset_rows(player) for player in range(compiled.num_players)]
    self._num_players = compiled.num_players
    self._rows, self._columns = compiled.action_cells
    self._ends = np.concatenate([[0], np.cumsum(np.concatenate(compiled.num_actions))])

  def entries_of(self, player: int) -> slice:
    """Returns the slice of a player's actions in arrays over entries."""
    begin, end = self._ends[[self.players[player].start, self.players[player].stop]].tolist()
    return slice(self._num_players + begin, self._num_players + end)

  def as_rows(self, numbers: Float64s, player: int) -> Float64s:
    """Returns a player's entries as rows, shape (infosets, actions), 0 at illegal actions."""
    rows = self.players[player]
    result = np.zeros((rows.stop - rows.start, self.mask.shape[1]))
    result[self._cells(player)] = numbers[self.entries_of(player)]
    return result

  def as_entries(self, rows: Float64s, player: int) -> Float64s:
    """Returns a player's entries, shape (actions,), from rows of shape (infosets, actions)."""
    result: Float64s = rows[self._cells(player)]
    return result

  def _cells(self, player: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the row and the column of each of a player's entries."""
    entries = self.entries_of(player)
    actions = slice(entries.start - self._num_players, entries.stop - self._num_players)
    return self._rows[actions] - self.players[player].start, self._columns[actions]


@dataclasses.dataclass
class ExactMemory:
  """Sums of samples at each infoset of a compiled game.

  Attributes:
    sums: float64 (entries,). The sums of weight times sample.
    visits: float64 (entries,). The sum of the weights, at action 0 of each infoset.
    strategy: float64 (entries,). The current strategy.
    cumulative: float64 (entries,). The weighted sum of strategies; the average strategy is proportional to it.
  """

  sums: Float64s
  visits: Float64s
  strategy: Float64s
  cumulative: Float64s


class ExactSamples:
  """Samples of a compiled game, in compiled code, as sums at infosets.

  Attributes:
    engine: `CompiledEngine`. The engine that samples.
    memory: `ExactMemory`. The sums and strategies.
  """

  def __init__(self, engine: CompiledEngine, rows: InfosetRows) -> None:
    self.engine, self._rows = engine, rows
    entries = engine.table.entries
    sums, visits = np.zeros((2, len(entries.strategy)))
    self.memory = ExactMemory(sums, visits, entries.strategy, entries.cumulative)

  def sample(self, player: int, num_traversals: int, weight: float, forgets: bool) -> Rows:
    """Runs traversals for a player; each sample has weight `weight`. Returns `means` of the player.

    If `forgets`, the sums are set to 0 first.
    """
    engine, rows, memory = self.engine, self._rows, self.memory
    if forgets:
      entries = rows.entries_of(player)
      memory.sums[entries] = memory.visits[entries] = 0.0
    record = engine.traversal(player)
    sums = Collect(record.entries, record.workspace, engine.numbers, memory.sums, memory.visits)
    steps = begin_traversal.on(record), traverse.on(record), collect.on(sums)
    rows_of_numbers = np.full((num_traversals, 1), weight)
    Chain(steps).repeat(rows_of_numbers, engine.numbers[:1], np.zeros(1, np.uint64))
    return self.means(player)

  def means(self, player: int) -> Rows:
    """Returns the weighted means of samples at a player's infosets as targets, with the sums of weights."""
    rows, of_player = self._rows, self._rows.players[player]
    weights = self.memory.visits[self.engine.table.entries.first[of_player]]
    means = rows.as_rows(self.memory.sums, player) / np.where(weights > 0, weights, 1.0)[:, None]
    return Rows(rows.features[of_player], means, rows.mask[of_player], weights)

  def set_strategy(self, player: int, chances: Float64s) -> None:
    """Sets a player's strategy from probabilities of shape (the player's infosets, actions)."""
    entries = self._rows.entries_of(player)
    self.memory.strategy[entries] = self._rows.as_entries(chances, player)

  def average(self, weight: float) -> None:
    """Adds all strategies to their averages with this weight."""
    engine = self.engine
    engine.numbers[0] = weight
    record = FullAverage(engine.table.entries, engine.numbers, len(self._rows.players))
    Chain([average_all.on(record)]).run()


def match_advantages(advantages: Float64s, mask: Bools, tie: float, greedy: bool) -> Float64s:
  """Regret matching: returns max(advantage, 0), normalized, shape (..., actions); advantages up to `tie` count as 0.

  If none is positive, a greedy player plays the actions of the largest advantage; otherwise all legal actions have the
  same probability.
  """
  positive = np.where(mask & (advantages > tie), advantages, 0.0)
  totals = positive.sum(axis=-1, keepdims=True)
  if greedy:
    legal = np.where(mask, advantages, -np.inf)
    mask = legal >= legal.max(axis=-1, keepdims=True) - tie
  fallback = mask / mask.sum(axis=-1, keepdims=True)
  result: Float64s = np.where(totals > 0, positive / np.where(totals > 0, totals, 1.0), fallback)
  return result
