"""The table of a Monte Carlo solver: regrets, strategies and averages of its infosets, in arrays that may grow.

Unlike in sequence form, the actions of an infoset stand side by side: a sample touches few infosets, far apart. Entry
i of the arrays is the empty sequence of player i; the actions of the infosets follow.
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
  """The arrays of a table. In "at action 0" the other actions of the infoset have no meaning there.

  Attributes:
    first: uint32 (infosets,). The entry of each infoset's action 0.
    num_actions: uint32 (infosets,). The number of actions.
    parent: uint32 (infosets,). The entry of the owner's sequence above.
    regret: float64 (entries,). Cumulative regrets, as the minimizer has discounted them.
    strategy: float64 (entries,). The current strategy.
    cumulative: float64 (entries,). The weighted sum of strategies; the average strategy in proportion.
    increment: float64 (entries,). The regrets that the traversal under way has estimated.
    touched: uint32 (entries,). At action 0: the number of actions if that traversal has valued them, otherwise 0.
    reach: float64 (entries,). Workspace; at action 0 of an infoset that a traversal has valued: the weight of its
      estimates.
    caught_up: float64 (2, entries). At action 0: the sums of logarithms up to which `regret` is discounted, see
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


# The most by which sums of probabilities may differ from 1.
_TOLERANCE = 1e-6
_MOST_LOGARITHM = 300.0
_OVER_INFOSETS = ("first", "num_actions", "parent")


@dataclasses.dataclass
class SamplingState:
  """The state of a sampling solver. On the state engine the last five are empty, since its table has them.

  Attributes:
    counters: see `random_draws.new_counters`.
    logarithms: float64 (3,). A number of iterations, and the sums of the logarithms of their discounts, of positive and
      of negative regrets.
    regret, strategy, cumulative, caught_up, baseline: see `Entries`.
  """

  counters: Uint64s
  logarithms: Float64s
  regret: Float64s
  strategy: Float64s
  cumulative: Float64s
  caught_up: Float64s
  baseline: Float64s


class Table:
  """The infosets met so far, in order of their first appearance.

  Attributes:
    entries: the arrays; longer than needed, and replaced when they become too short.
    num_infosets: the number of infosets so far.
    num_sequences: the number of sequences, empty ones included.
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
    """Memory of the arrays."""
    return sum(array.nbytes for array in self.entries)

  def state(self, counters: Uint64s, is_whole: bool) -> SamplingState:
    """Returns the state of a solver before its first iteration, with the arrays of a table that `is_whole`."""
    entries, shown = self.entries, slice(None if is_whole else 0)
    lines = (entries.regret, entries.strategy, entries.cumulative)
    tables = entries.caught_up, entries.baseline
    return SamplingState(
      counters,
      np.zeros(3),
      *(line[shown] for line in lines),
      *(table[:, shown] for table in tables),
    )

  def reserve(self, num_infosets: int, num_sequences: int) -> None:
    """Makes room for this many infosets and sequences in all; doubles what has become too short."""
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
    """Raises ValueError if samples can't lead to a state, whose arrays have the shapes of these."""
    done, logarithms = int(state["counters"][ITERATIONS]), state["logarithms"]
    require(logarithms[0] == done and np.isfinite(logarithms).all(), "discounts are up to date")
    for name in ("regret", "cumulative", "baseline", "caught_up"):
      require(np.isfinite(state[name]), f"{name} is finite")
    self.check_averages(state["strategy"], state["cumulative"])
    # The product of discounts since the last visit must be a number.
    idle = logarithms[1:, None] - state["caught_up"]
    require(idle <= _MOST_LOGARITHM, "sums of logarithms are possible")

  def check_averages(self, strategy: Float64s, cumulative: Float64s) -> None:
    """Raises ValueError if strategies are no distributions, or sums of them are negative."""
    require(cumulative >= 0, "averages are not negative")
    require((strategy >= 0) & (strategy <= 1 + _TOLERANCE), "probabilities are between 0 and 1")
    first = self.entries.first[: self.num_infosets]
    if len(first):
      sums = np.add.reduceat(strategy[: self.num_sequences], first)
      require(np.abs(sums - 1) <= _TOLERANCE, "probabilities sum to 1")

  def add(self, num_actions: int, parent: int) -> int:
    """Adds an infoset, which plays the uniform strategy, below a sequence of its owner; returns its number."""
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

  Behind the empty sequences, its sequences are numbered as `CompiledGame.shared_entries` says; infosets that share them
  are one.
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
