"""Table of a Monte Carlo solver: regrets, strategies and averages of infosets, in arrays that can grow.

An entry is a sequence. Entry i is the empty sequence of player i; the actions of the infosets follow. The actions of an
infoset are adjacent in memory, because a sample visits few infosets that are far apart.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Uint64s, require
from spiel_cfr._numba.records import Doubles, DoubleTable, Indices
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.mccfr.random_draws import ITERATIONS


class Entries(NamedTuple):
  """The arrays of a table. An array "by infoset" has the value of an infoset at the entry of its action 0.

  Attributes:
    first: uint32 (infosets,). The entry of each infoset's action 0.
    num_actions: uint32 (infosets,). The number of actions of each infoset.
    parent: uint32 (infosets,). The entry of the player's last sequence before each infoset.
    regret: float64 (entries,). The cumulative regrets, discounted up to `caught_up`.
    strategy: float64 (entries,). The current strategy.
    cumulative: float64 (entries,). The weighted sum of strategies; the average strategy is proportional to it.
    increment: float64 (entries,). The regrets that the current traversal has estimated so far.
    touched: uint32 (entries,). By infoset: the number of actions if the current traversal has estimated their regrets,
      otherwise 0.
    reach: float64 (entries,). By infoset: the weight of the estimates of the current traversal. `average_all` uses the
      array as workspace.
    caught_up: float64 (2, entries). By infoset: the sums of logarithms up to which `regret` is discounted; see
      `SamplingState.logarithms`.
    baseline: float64 (players, entries). Each player's expected payoff after an action; (0, players) if the solver has
      no baselines.
  """

  first: Indices
  num_actions: Indices
  parent: Indices
  regret: Doubles
  strategy: Doubles
  cumulative: Doubles
  increment: Doubles
  touched: Indices
  reach: Doubles
  caught_up: DoubleTable
  baseline: DoubleTable


# The largest difference of a sum of probabilities from 1.
_TOLERANCE = 1e-6
# The largest logarithm of a product of discounts, whose exponential is finite.
_MOST_LOGARITHM = 300.0
# The arrays of `Entries` over infosets. All others are over entries.
_OVER_INFOSETS = ("first", "num_actions", "parent")


@dataclasses.dataclass
class SamplingState:
  """The state of a sampling solver.

  On the state engine, the arrays over entries are empty, because the engine's table grows and has them.

  Attributes:
    counters: uint64 (4,). See `random_draws.new_counters`.
    logarithms: float64 (3,). A number of iterations, and the sums of the logarithms of these iterations' discounts on
      positive and on negative regrets.
    regret: float64 (entries,). See `Entries`.
    strategy: float64 (entries,). See `Entries`.
    cumulative: float64 (entries,). See `Entries`.
    caught_up: float64 (2, entries). See `Entries`.
    baseline: float64 (players, entries). See `Entries`.
  """

  counters: Uint64s
  logarithms: Float64s
  regret: Float64s
  strategy: Float64s
  cumulative: Float64s
  caught_up: Float64s
  baseline: Float64s


class Table:
  """Table of infosets in the order in which they were added.

  Attributes:
    entries: `Entries`. Arrays with spare room; they are replaced when they become too short.
    num_infosets: int. The number of infosets so far.
    num_sequences: int. The number of sequences so far, empty ones included.
  """

  def __init__(self, num_players: int, has_baseline: bool = False) -> None:
    self.num_infosets = 0
    self.num_sequences = num_players
    no_infosets, floats = np.zeros(0, np.uint32), np.zeros(num_players)
    self.entries = Entries(
      first=no_infosets,
      num_actions=no_infosets,
      parent=no_infosets,
      regret=floats,
      strategy=floats + 1.0,
      cumulative=floats.copy(),
      increment=floats.copy(),
      touched=np.zeros(num_players, np.uint32),
      reach=floats.copy(),
      caught_up=np.zeros((2, num_players)),
      baseline=np.zeros((num_players if has_baseline else 0, num_players)),
    )

  @property
  def num_bytes(self) -> int:
    """Size of the arrays in bytes."""
    return sum(array.nbytes for array in self.entries)

  def state(self, counters: Uint64s, has_arrays: bool) -> SamplingState:
    """Returns the state before the first iteration. It has the arrays of this table if `has_arrays`, or empty ones."""
    entries, included = self.entries, slice(None if has_arrays else 0)
    return SamplingState(
      counters,
      logarithms=np.zeros(3),
      regret=entries.regret[included],
      strategy=entries.strategy[included],
      cumulative=entries.cumulative[included],
      caught_up=entries.caught_up[:, included],
      baseline=entries.baseline[:, included],
    )

  def reserve(self, num_infosets: int, num_sequences: int) -> None:
    """Makes room for numbers of infosets and sequences. Arrays that are too short at least double in length."""
    entries = self.entries
    if num_infosets <= len(entries.first) and num_sequences <= len(entries.regret):
      return
    grown = {}
    for name, array in entries._asdict().items():
      length = num_infosets if name in _OVER_INFOSETS else num_sequences
      capacity = array.shape[-1]
      if length > capacity:
        grown[name] = np.zeros((*array.shape[:-1], max(length, 2 * capacity)), array.dtype)
        grown[name][..., :capacity] = array
    self.entries = entries._replace(**grown)

  def check(self, state: Mapping[str, Any]) -> None:
    """Raises ValueError for a state that no run can have. Its arrays must have the shapes of this table's."""
    done, logarithms = int(state["counters"][ITERATIONS]), state["logarithms"]
    require(logarithms[0] == done and np.isfinite(logarithms).all(), "discounts are up to date")
    for name in ("regret", "cumulative", "baseline", "caught_up"):
      require(np.isfinite(state[name]), f"{name} is finite")
    self.check_averages(state["strategy"], state["cumulative"])
    # The product of the discounts since the last visit must be finite.
    since_visit = logarithms[1:, None] - state["caught_up"]
    require(since_visit <= _MOST_LOGARITHM, "sums of logarithms are possible")

  def check_averages(self, strategy: Float64s, cumulative: Float64s) -> None:
    """Raises ValueError if a strategy is not a distribution, or a sum of strategies is negative."""
    require(cumulative >= 0, "averages are not negative")
    require((strategy >= 0) & (strategy <= 1 + _TOLERANCE), "probabilities are between 0 and 1")
    first = self.entries.first[: self.num_infosets]
    if len(first):
      sums = np.add.reduceat(strategy[: self.num_sequences], first)
      require(np.abs(sums - 1) <= _TOLERANCE, "probabilities sum to 1")

  def add(self, num_actions: int, parent: int) -> int:
    """Adds an infoset with the uniform strategy after its player's sequence `parent`. Returns the infoset's number."""
    infoset, first = self.num_infosets, self.num_sequences
    self.num_infosets, self.num_sequences = infoset + 1, first + num_actions
    self.reserve(self.num_infosets, self.num_sequences)
    entries = self.entries
    entries.first[infoset] = first
    entries.num_actions[infoset] = num_actions
    entries.parent[infoset] = parent
    entries.strategy[first : first + num_actions] = 1.0 / num_actions
    return infoset


def table_of(compiled: CompiledGame, has_baseline: bool = False) -> Table:
  """Returns a table of all infosets of a compiled game, in order of discovery, player by player.

  After the empty sequences, entries are numbered by `CompiledGame.shared_entries`. The table has a shared infoset once.
  """
  num_players, sequences = compiled.num_players, compiled.all_action_sequences
  action_entries = num_players + compiled.shared_entries
  entry_of_sequence = np.zeros(compiled.end, np.int64)
  entry_of_sequence[[treeplex.root for treeplex in compiled.treeplexes]] = np.arange(num_players)
  entry_of_sequence[sequences] = action_entries
  table = Table(num_players, has_baseline)
  table.reserve(compiled.num_infosets, num_players + len(sequences))
  begin = 0
  for treeplex, infosets in zip(compiled.treeplexes, compiled.infosets, strict=True):
    parents = entry_of_sequence[treeplex.parent[infosets.position]]
    for actions, parent in zip(infosets.num_actions.tolist(), parents.tolist(), strict=True):
      first_entry = action_entries[begin : begin + actions].min(initial=table.num_sequences)
      # Otherwise the infoset is shared, and already in the table.
      if first_entry == table.num_sequences:
        table.add(actions, parent)
      begin += actions
  return table
