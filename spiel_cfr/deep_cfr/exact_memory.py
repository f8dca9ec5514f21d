"""Exact memory of Deep CFR on a compiled game: sums of samples at each infoset.

The loss of a network f on samples r_j with weights w_j at infosets I(j) is

    sum_j w_j |f(x_I(j)) - r_j|^2  =  sum_I W_I |f(x_I) - mean_I|^2  +  a constant

with W_I the sum of the weights at infoset I, and mean_I the weighted mean of the samples at I. So it is enough to keep
two sums at each infoset, of weights and of weighted samples.
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
    numbers: float64 (3,). The first number is the weight of a sample.
    sums: float64 (entries,). The sum of weight times sample of each action.
    visits: float64 (entries,). The sum of the weights of each infoset's samples, at the entry of action 0.
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
  """Rows of training data for all infosets, and the translation between rows and the entries of a solver's table.

  A row is an infoset, and a column an action of the game. An entry is an action of an infoset.

  Attributes:
    features: float32 (infosets, features). The features of all players' infosets, player by player.
    mask: bool (infosets, actions of the game). True for legal actions.
    players: list of a slice for each player. The rows of the player's infosets.
  """

  def __init__(self, compiled: CompiledGame, encoder: Encoder) -> None:
    """Computes the features of all infosets; raises FeaturesError if two infosets have the same features."""
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
    """Returns a player's part of an array over entries as rows, shape (infosets, actions); 0 at illegal actions."""
    rows = self.players[player]
    result = np.zeros((rows.stop - rows.start, self.mask.shape[1]))
    result[self._cells(player)] = numbers[self.entries_of(player)]
    return result

  def as_entries(self, rows: Float64s, player: int) -> Float64s:
    """Returns rows of shape (infosets, actions) as a player's part of an array over entries."""
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
    sums: float64 (entries,). The sum of weight times sample of each action.
    visits: float64 (entries,). The sum of the weights of each infoset's samples, at the entry of action 0.
    strategy: float64 (entries,). The current strategy.
    cumulative: float64 (entries,). The weighted sum of strategies; the average strategy is proportional to it.
  """

  sums: Float64s
  visits: Float64s
  strategy: Float64s
  cumulative: Float64s


class ExactSamples:
  """Sampling of a compiled game in compiled code, with sums of samples at infosets.

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
    """Runs traversals for a player, and adds their samples to the sums. Returns the player's `means`.

    Args:
      player: the updating player.
      num_traversals: the number of traversals.
      weight: the weight of each sample.
      forgets: True to set the player's sums to 0 before.
    """
    engine, rows, memory = self.engine, self._rows, self.memory
    if forgets:
      entries = rows.entries_of(player)
      memory.sums[entries] = memory.visits[entries] = 0.0
    record = engine.traversal(player)
    sums = Collect(record.entries, record.workspace, engine.numbers, memory.sums, memory.visits)
    steps = begin_traversal.on(record), traverse.on(record), collect.on(sums)
    weights = np.full((num_traversals, 1), weight)
    Chain(steps).repeat(weights, engine.numbers[:1], np.zeros(1, np.uint64))
    return self.means(player)

  def means(self, player: int) -> Rows:
    """Returns a player's training data: weighted means of samples at its infosets, and the sums of their weights."""
    rows, player_rows = self._rows, self._rows.players[player]
    weights = self.memory.visits[self.engine.table.entries.first[player_rows]]
    means = rows.as_rows(self.memory.sums, player) / np.where(weights > 0, weights, 1.0)[:, None]
    return Rows(rows.features[player_rows], means, rows.mask[player_rows], weights)

  def set_strategy(self, player: int, probabilities: Float64s) -> None:
    """Sets a player's strategy from probabilities of shape (the player's infosets, actions)."""
    entries = self._rows.entries_of(player)
    self.memory.strategy[entries] = self._rows.as_entries(probabilities, player)

  def average(self, weight: float) -> None:
    """Adds the strategies of all players to their averages, with the weight of the iteration."""
    engine = self.engine
    engine.numbers[0] = weight
    record = FullAverage(engine.table.entries, engine.numbers, len(self._rows.players))
    Chain([average_all.on(record)]).run()


def match_advantages(advantages: Float64s, mask: Bools, tie: float, greedy: bool) -> Float64s:
  """Returns the strategy of regret matching: max(advantage, 0), normalized.

  Args:
    advantages: float64 (..., actions).
    mask: bool (..., actions). True for legal actions.
    tie: advantages up to this value count as 0.
    greedy: the strategy where no advantage is positive. True plays the actions with the largest advantage, False plays
      all legal actions uniformly.

  Returns:
    float64 (..., actions).
  """
  positive = np.where(mask & (advantages > tie), advantages, 0.0)
  totals = positive.sum(axis=-1, keepdims=True)
  if greedy:
    legal = np.where(mask, advantages, -np.inf)
    mask = legal >= legal.max(axis=-1, keepdims=True) - tie
  fallback = mask / mask.sum(axis=-1, keepdims=True)
  result: Float64s = np.where(totals > 0, positive / np.where(totals > 0, totals, 1.0), fallback)
  return result
