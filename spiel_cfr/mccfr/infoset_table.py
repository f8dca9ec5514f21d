"""Table of a Monte Carlo solver: regrets, strategies and averages of infosets, in arrays that can grow.

The actions of an infoset are adjacent, because a sample touches few infosets, far apart. Entry i of the arrays is the
empty sequence of player i; the actions of the infosets follow.
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
  """The arrays of a table. Those "per infoset" hold their value at the infoset's action 0.

  Attributes:
    first: uint32 (infosets,). The entry of each infoset's action 0.
    num_actions: uint32 (infosets,). The number of actions.
    parent: uint32 (infosets,). The entry of the owner's last sequence above.
    regret: float64 (entries,). Cumulative regrets, discounted up to `caught_up`.
    strategy: float64 (entries,). The current strategy.
    cumulative: float64 (entries,). The weighted sum of strategies; the average strategy is proportional to it.
    increment: float64 (entries,). The regrets estimated by the current traversal.
    touched: uint32 (entries,). Per infoset: the number of actions if the current traversal has valued them, else 0.
    reach: float64 (entries,). Workspace. Per infoset valued by the current traversal: the weight of its estimates.
    caught_up: float64 (2, entries). Per infoset: the sums of logarithms up to which `regret` is discounted, see
      `SamplingState.logarithms`.
    baseline: float64 (players, entries). The expected payoff of each player after an action; (0, players) without
      baselines.
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


# The largest difference of sums of probabilities from 1.
_TOLERANCE = 1e-6
_MOST_LOGARITHM = 300.0
_OVER_INFOSETS = ("first", "num_actions", "parent")


@dataclasses.dataclass
class SamplingState:
  """The state of a sampling solver. On the state engine, the arrays over entries are empty: its table has them.

  Attributes:
    counters: uint64 (4,). See `random_draws.new_counters`.
    logarithms: float64 (3,). A number of iterations, and the sums of the logarithms of their discounts on positive and
      on negative regrets.
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
  """Infosets met so far, in order of their first appearance.

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
    """Returns the state before the first iteration, with the arrays of this table if `has_arrays`."""
    entries, part = self.entries, slice(None if has_arrays else 0)
    return SamplingState(
      counters,
      logarithms=np.zeros(3),
      regret=entries.regret[part],
      strategy=entries.strategy[part],
      cumulative=entries.cumulative[part],
      caught_up=entries.caught_up[:, part],
      baseline=entries.baseline[:, part],
    )

  def reserve(self, num_infosets: int, num_sequences: int) -> None:
    """Makes room for this many infosets and sequences; arrays that are too short double at least."""
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
    """Raises ValueError if samples can't lead to a state, whose arrays must have the shapes of this table's."""
    done, logarithms = int(state["counters"][ITERATIONS]), state["logarithms"]
    require(logarithms[0] == done and np.isfinite(logarithms).all(), "discounts are up to date")
    for name in ("regret", "cumulative", "baseline", "caught_up"):
      require(np.isfinite(state[name]), f"{name} is finite")
    self.check_averages(state["strategy"], state["cumulative"])
    # The product of the discounts since the last visit must be finite.
    idle = logarithms[1:, None] - state["caught_up"]
    require(idle <= _MOST_LOGARITHM, "sums of logarithms are possible")

  def check_averages(self, strategy: Float64s, cumulative: Float64s) -> None:
    """Raises ValueError if a strategy is no distribution, or a sum of strategies is negative."""
    require(cumulative >= 0, "averages are not negative")
    require((strategy >= 0) & (strategy <= 1 + _TOLERANCE), "probabilities are between 0 and 1")
    first = self.entries.first[: self.num_infosets]
    if len(first):
      sums = np.add.reduceat(strategy[: self.num_sequences], first)
      require(np.abs(sums - 1) <= _TOLERANCE, "probabilities sum to 1")

  def add(self, num_actions: int, parent: int) -> int:
    """Adds an infoset with the uniform strategy below its owner's sequence `parent`. Returns its number."""
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

  After the empty sequences, sequences are numbered by `CompiledGame.shared_entries`. Shared infosets have one row.
  """
  num_players = compiled.num_players
  entry = np.zeros(compiled.end, np.int64)
  entry[[treeplex.root for treeplex in compiled.treeplexes]] = np.arange(num_players)
  sequences = compiled.all_action_sequences
  entry[sequences] = num_players + compiled.shared_entries
  table = Table(num_players, has_baseline)
  table.reserve(compiled.num_infosets, num_players + len(sequences))
  firsts, begin = num_players + compiled.shared_entries, 0
  for treeplex, own in zip(compiled.treeplexes, compiled.infosets, strict=True):
    parents = entry[treeplex.parent[own.position]]
    for actions, parent in zip(own.num_actions.tolist(), parents.tolist(), strict=True):
      if firsts[begin : begin + actions].min(initial=table.num_sequences) == table.num_sequences:
        table.add(actions, parent)
      begin += actions
  return table
