"""Deep CFR's memory of a compiled game, without a sample in it.

A reservoir of samples r_j with weights w_j at infosets I(j) is there to be fitted:

    sum_j w_j |f(x_I(j)) - r_j|^2  =  sum_I W_I |f(x_I) - mean_I|^2  +  what does not depend on f

with W_I the sum of the weights at I, and mean_I the weighted mean of its samples. So sums at each infoset replace all
samples that there ever were, without loss; no sample is forgotten, and none is drawn.
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
from spiel_cfr.mccfr.traversal import Workspace, begin_traversal, traverse, valued
from spiel_cfr.mccfr.updates import FullAverage, average_all


class Collect(NamedTuple):
  """The arguments of `collect`.

  Attributes:
    entries: the estimates.
    workspace: the workspace of the traversal.
    numbers: float64. The first one is the weight of a sample.
    sums: float64 (entries,). The sums of weight times sample.
    visits: float64 (entries,). At action 0: the sum of the weights.
  """

  entries: Entries
  workspace: Workspace
  numbers: Doubles
  sums: Doubles
  visits: Doubles


@step(Collect, single=False)
def collect(record: Collect) -> None:
  """Adds the samples of a traversal to the sums, in place of an update.

  A sample is v(h, a) - v(h), without the weight that makes up for the player's own exploration.
  """
  entries, workspace, weight = record.entries, record.workspace, record.numbers[0]
  for i in range(valued(workspace)):
    begin = np.uint64(workspace.reached[i])
    end = begin + np.uint64(entries.touched[begin])
    entries.touched[begin] = 0
    record.visits[begin] += weight
    for entry in range(begin, end):
      record.sums[entry] += weight / entries.reach[begin] * entries.increment[entry]
      entries.increment[entry] = 0.0


class InfosetRows:
  """Infosets as rows, actions as columns, and back to the entries of a solver's table.

  Attributes:
    features: float32, shape (infosets, features), all players' end to end.
    mask: shape (infosets, actions of the game): which are legal.
    players: a slice of the infosets per player.
  """

  def __init__(self, compiled: CompiledGame, encoder: Encoder) -> None:
    """Walks the game for features of its infosets; raises FeaturesError where they do not tell these apart."""
    self.features: Float32s = all_features(compiled, encoder)
    self.mask: Bools = compiled.legal_actions_mask.astype(bool)
    self.players = [compiled.infoset_rows(player) for player in range(compiled.num_players)]
    self._num_players = compiled.num_players
    self._rows, self._columns = compiled.action_cells
    self._ends = np.concatenate([[0], np.cumsum(np.concatenate(compiled.num_actions))])

  def entries_of(self, player: int) -> slice:
    """Returns where a player's actions are in the arrays of a table."""
    begin, end = self._ends[[self.players[player].start, self.players[player].stop]].tolist()
    return slice(self._num_players + begin, self._num_players + end)

  def as_rows(self, numbers: Float64s, player: int) -> Float64s:
    """Returns what an array over a table's entries holds of a player, shape (infosets, actions), 0 elsewhere."""
    own, here = self.players[player], self.entries_of(player)
    result = np.zeros((own.stop - own.start, self.mask.shape[1]))
    result[self._cells(player)] = numbers[here]
    return result

  def as_entries(self, rows: Float64s, player: int) -> Float64s:
    """Returns the entries of a player, action by action, from the rows of its infosets."""
    result: Float64s = rows[self._cells(player)]
    return result

  def _cells(self, player: int) -> tuple[np.ndarray, np.ndarray]:
    here = self.entries_of(player)
    place = slice(here.start - self._num_players, here.stop - self._num_players)
    return self._rows[place] - self.players[player].start, self._columns[place]


@dataclasses.dataclass
class ExactMemory:
  """Sums of samples at each infoset of a compiled game, in arrays over the entries of a table.

  Attributes:
    sums: of weight times sample.
    visits: of weights, at action 0.
    strategy: what the networks say now.
    cumulative: weighted sum of strategies; the average strategy in proportion.
  """

  sums: Float64s
  visits: Float64s
  strategy: Float64s
  cumulative: Float64s


class ExactSamples:
  """Samples a compiled game, whose infosets are all asked about at once whenever a network has changed."""

  def __init__(self, engine: CompiledEngine, rows: InfosetRows) -> None:
    self.engine, self._rows = engine, rows
    entries = engine.table.entries
    sums, visits = np.zeros((2, len(entries.strategy)))
    self.memory = ExactMemory(sums, visits, entries.strategy, entries.cumulative)

  def sample(self, player: int, num_traversals: int, weight: float, forgets: bool) -> Rows:
    """Samples for a player, each sample weighing `weight`; returns mean advantages at infosets, and their weights.

    If it `forgets`, only these samples count, and none of earlier iterations.
    """
    engine, rows, memory = self.engine, self._rows, self.memory
    here = rows.entries_of(player)
    if forgets:
      memory.sums[here] = memory.visits[here] = 0.0
    record = engine.traversal(player)
    sums = Collect(record.entries, record.workspace, engine.numbers, memory.sums, memory.visits)
    steps = begin_traversal.on(record), traverse.on(record), collect.on(sums)
    rows_of_numbers = np.full((num_traversals, 1), weight)
    Chain(steps).repeat(rows_of_numbers, engine.numbers[:1], np.zeros(1, np.uint64))
    return self.means(player)

  def means(self, player: int) -> Rows:
    """Returns weighted means of samples at a player's infosets, and the weights."""
    rows, own = self._rows, self._rows.players[player]
    weights = self.memory.visits[self.engine.table.entries.first[own]]
    means = rows.as_rows(self.memory.sums, player) / np.where(weights > 0, weights, 1.0)[:, None]
    return Rows(rows.features[own], means, rows.mask[own], weights)

  def set_strategy(self, player: int, chances: Float64s) -> None:
    """Has a player play these from now on, shape (the player's infosets, actions)."""
    here = self._rows.entries_of(player)
    self.memory.strategy[here] = self._rows.as_entries(chances, player)

  def average(self, weight: float) -> None:
    """Adds all strategies to their averages."""
    engine = self.engine
    engine.numbers[0] = weight
    record = FullAverage(engine.table.entries, engine.numbers, len(self._rows.players))
    Chain([average_all.on(record)]).run()


def matched(advantages: Float64s, mask: Bools, tie: float, greedy: bool) -> Float64s:
  """Regret matching: max(advantage, 0), normalized; advantages of shape (..., actions) up to `tie` count as 0.

  Where none is positive, actions of the largest advantage are played if it is greedy; otherwise all legal ones, alike.
  """
  positive = np.where(mask & (advantages > tie), advantages, 0.0)
  totals = positive.sum(axis=-1, keepdims=True)
  if greedy:
    legal = np.where(mask, advantages, -np.inf)
    mask = legal >= legal.max(axis=-1, keepdims=True) - tie
  otherwise = mask / mask.sum(axis=-1, keepdims=True)
  result: Float64s = np.where(totals > 0, positive / np.where(totals > 0, totals, 1.0), otherwise)
  return result
