"""The two ways to run traversals: in compiled code over a tree of histories, or over OpenSpiel's states.

Given the same random numbers both draw the same samples in the same order and round alike, so they compute the same
numbers, bit for bit.
"""

import dataclasses
import itertools
import warnings
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import pyspiel

from spiel_cfr import errors
from spiel_cfr.game.compiled import CompiledGame
from spiel_cfr.kernels import Uint64s
from spiel_cfr.sampling.histories import compile_histories
from spiel_cfr.sampling.loop import (
  KEY,
  POSITION,
  STREAM_LENGTH,
  Averaging,
  Schedule,
  Workspace,
  absorb,
  average_all,
  fill_uniform,
  pick,
  sample_iterations,
)
from spiel_cfr.sampling.rules import Sampler
from spiel_cfr.sampling.table import Table, table_of

_CHANCE = int(pyspiel.PlayerId.CHANCE)
_TERMINAL = int(pyspiel.PlayerId.TERMINAL)
_NUMBERS_AT_A_TIME = 1024


class ImperfectRecallWarning(UserWarning):
  """A player forgets something, so no theorem says that the average policy converges."""


@dataclasses.dataclass(frozen=True)
class Scheme:
  """What a Monte Carlo solver does, whatever the game and the minimizer.

  Attributes:
    sampler: what is explored.
    averaging: how visits are weighted.
    averages_own: whether a traversal averages the strategies of its own player, or of the next one.
    baseline_rate: how far a baseline moves to a new value, 0 for none.
  """

  sampler: Sampler
  averaging: Averaging
  averages_own: bool = False
  baseline_rate: float = 0.0


def new_stream(seed: int | np.random.Generator) -> Uint64s:
  """Returns a stream of random numbers at its beginning."""
  stream = np.zeros(STREAM_LENGTH, np.uint64)
  stream[KEY] = np.random.default_rng(seed).integers(1 << 64, dtype=np.uint64)
  return stream


class Engine(Protocol):
  """What runs iterations.

  Attributes:
    table: what is kept of each infoset.
    infostates: a player's information state strings -> the infoset's number in `table`.
  """

  table: Table
  infostates: list[dict[str, int]]

  def run(self, schedule: Schedule) -> int:
    """Does the iterations of the schedule, and returns how many nodes they visited."""

  def legal_actions(self, infoset: int) -> Sequence[int]:
    """Returns the legal actions at an infoset in the table."""


class CompiledEngine:
  """Samples a compiled game.

  Attributes:
    table: what is kept of each infoset of the game.
    infostates: a player's information state strings -> the infoset's number in `table`.
  """

  def __init__(self, compiled: CompiledGame, scheme: Scheme, stream: Uint64s) -> None:
    """Walks the game's histories."""
    self._compiled = compiled
    self._actions = np.concatenate(compiled.actions)
    self._scheme = scheme
    numbers = itertools.count()
    self.infostates = [dict(zip(own, numbers, strict=False)) for own in compiled.infostates]
    self._stream = stream
    self._histories, depth = compile_histories(compiled)
    self.table = table_of(compiled, scheme.baseline_rate > 0)
    actions = int(self.table.entries.num_actions.max(initial=1))
    self._workspace = Workspace(
      frames=np.zeros((depth, 3), np.uint64),
      weights=np.zeros((depth, 2)),
      explored=np.zeros((depth, actions)),
      values=np.zeros((depth, actions)),
      reached=np.zeros(self.table.num_infosets, np.uint32),
    )

  def run(self, schedule: Schedule) -> int:
    """Does the iterations of the schedule, and returns how many nodes they visited."""
    scheme = self._scheme
    visited = sample_iterations(
      self._histories,
      scheme.sampler.own.compiled,
      scheme.sampler.others.compiled,
      np.array(scheme.sampler.parameters, np.float64),
      scheme.sampler.repeats_draws,
      int(not scheme.averages_own),
      int(scheme.averaging),
      scheme.baseline_rate,
      schedule,
      self._stream,
      self.table.entries,
      self._workspace,
    )
    return int(visited)

  def legal_actions(self, infoset: int) -> Sequence[int]:
    """Returns the legal actions at an infoset in the table."""
    first = self.table.entries.first.item(infoset) - self._compiled.num_players
    actions: list[int] = self._actions[
      first : first + self.table.entries.num_actions[infoset]
    ].tolist()
    return actions


class StateEngine:
  """Samples a game through OpenSpiel's states; knows the infosets that it has met.

  Attributes:
    table: what is kept of each of them.
    infostates: a player's information state strings -> the infoset's number in `table`.
    actions: the legal actions at each infoset.
  """

  def __init__(
    self, game: pyspiel.Game, scheme: Scheme, stream: Uint64s, max_infosets: int
  ) -> None:
    """Starts with an empty table."""
    self.table = Table(game.num_players(), scheme.baseline_rate > 0)
    self.infostates: list[dict[str, int]] = [{} for _ in range(game.num_players())]
    self.actions: list[tuple[int, ...]] = []
    self._known_actions: dict[tuple[int, ...], tuple[int, ...]] = {}
    self._game = game
    self._scheme = scheme
    self._stream = stream
    self._max_infosets = max_infosets
    self._warned = False
    # Random numbers drawn ahead, next one last; `_ahead` is the stream behind them.
    self._numbers: list[float] = []
    self._ahead = stream.copy()

  def legal_actions(self, infoset: int) -> Sequence[int]:
    """Returns the legal actions at an infoset in the table."""
    return self.actions[infoset]

  def run(self, schedule: Schedule) -> int:
    """Does the iterations of the schedule, and returns how many nodes they visited.

    Raises:
      GameTooLargeError: there are more than `max_infosets` infosets, or histories are too long for Python's stack.
      InconsistentInfosetError: two states of an infoset have different legal actions.
    """
    scheme, num_players = self._scheme, self._game.num_players()
    visited = 0
    for iteration, weight in enumerate(schedule.weights.tolist()):
      start = self._stream[POSITION]
      for player in range(num_players):
        if scheme.sampler.repeats_draws:
          self._stream[POSITION] = start
        visited += self._traverse(player, weight, schedule, iteration)
      if scheme.averaging is Averaging.FULL:
        average_all(num_players, self.table.num_infosets, weight, self.table.entries)
    return visited

  def _traverse(self, player: int, weight: float, schedule: Schedule, iteration: int) -> int:
    """Runs one traversal. If it is interrupted, it leaves nothing behind but infosets not seen before."""
    num_players = self._game.num_players()
    self._player = player
    self._averaged_player = (player + (not self._scheme.averages_own)) % num_players
    self._visited = 0
    self._sequences = list(range(num_players))
    self._averaged: list[int] = []
    self._average_weights: list[float] = []
    self._valued: list[int] = []
    self._estimates: list[float] = []
    if self._stream[POSITION] + len(self._numbers) != self._ahead[POSITION]:
      self._numbers, self._ahead = [], self._stream.copy()
    try:
      self._value(self._game.new_initial_state(), 1.0, weight)
    except RecursionError:
      raise errors.GameTooLargeError(
        "A history of the game is longer than Python's recursion limit allows. Raise it with "
        "sys.setrecursionlimit, or compile the game."
      ) from None
    absorb(
      np.array(self._averaged, np.uint32),
      np.array(self._average_weights, np.float64),
      np.array(self._valued, np.uint32),
      np.array(self._estimates, np.float64),
      np.empty(len(self._valued), np.uint32),
      schedule,
      iteration,
      self.table.entries,
    )
    self._stream[POSITION] = self._ahead[POSITION] - len(self._numbers)
    return self._visited

  def _value(self, state: Any, weight: float, average_weight: float) -> float:
    """Estimates what the traversal's player gets after a history; uses `state` up.

    Args:
      state: the history.
      weight: what samples from here on weigh in estimates of regrets.
      average_weight: what they weigh in averages.
    """
    scheme, player = self._scheme, self._player
    importance = scheme.averaging is Averaging.IMPORTANCE
    self._visited += 1
    mover = state.current_player()
    while mover == _CHANCE:
      outcomes = state.chance_outcomes()
      chosen = self._pick([probability for _, probability in outcomes])
      action, chance = outcomes[chosen]
      if importance:
        average_weight /= chance
      state.apply_action(action)
      self._visited += 1
      mover = state.current_player()
    if mover == _TERMINAL:
      result: float = state.player_return(player)
      return result

    infoset, actions = self._infoset(state, mover)
    parent = self._sequences[mover]
    entries = self.table.entries
    first = entries.first.item(infoset)
    here = slice(first, first + len(actions))
    strategy = entries.strategy[here].tolist()
    if mover == self._averaged_player and scheme.averaging is not Averaging.FULL:
      self._averaged.append(infoset)
      self._average_weights.append(average_weight)
    explored = [0.0] * len(actions)
    values = entries.baseline[player, here].tolist() if scheme.baseline_rate else explored.copy()
    rule = scheme.sampler.own if mover == player else scheme.sampler.others
    each = rule.function(
      strategy, entries.average[here], 0, len(actions), scheme.sampler.parameters, explored
    )
    chosen = -1 if each else self._pick(explored)
    for action, (chance, played) in enumerate(zip(explored, strategy, strict=True)):
      if not (self._happens(chance) if each else action == chosen):
        continue
      weight_below = weight / chance if mover == player else weight * (played / chance)
      average_weight_below = average_weight
      if mover == self._averaged_player:
        average_weight_below *= played / chance
      elif mover == player or importance:
        average_weight_below /= chance
      child = state
      if each and action + 1 < len(actions):
        child = state.child(actions[action])
      else:
        state.apply_action(actions[action])
      self._sequences[mover] = first + action
      value = self._value(child, weight_below, average_weight_below)
      values[action] += (value - values[action]) / chance
      if scheme.baseline_rate:
        baseline = self.table.entries.baseline
        baseline[player, first + action] += scheme.baseline_rate * (
          value - baseline[player, first + action]
        )
    self._sequences[mover] = parent
    if mover == player:
      self._valued.append(infoset)
      self._estimates.extend(weight * value for value in values)
    value = 0.0
    for played, action_value in zip(strategy, values, strict=True):
      value += played * action_value
    return value

  def _infoset(self, state: Any, player: int) -> tuple[int, tuple[int, ...]]:
    """Returns the number and the legal actions of the infoset of a state; adds it to the table if it is new."""
    infostate = state.information_state_string()
    legal = tuple(state.legal_actions())
    infoset = self.infostates[player].get(infostate)
    parent = self._sequences[player]
    table = self.table
    if infoset is None:
      if table.num_infosets >= self._max_infosets:
        raise errors.GameTooLargeError(
          f"The samples have met more than max_infosets={self._max_infosets:,} infosets, which take "
          f"{table.num_bytes / 2**20:,.0f} MiB besides their names. Raise max_infosets if there is "
          "the memory."
        )
      infoset = self.infostates[player][infostate] = table.add(len(legal), parent)
      self.actions.append(self._known_actions.setdefault(legal, legal))
      if self._scheme.averaging is Averaging.FULL:
        # What it would have added to its average had it been known from the start.
        first, entries = table.entries.first.item(infoset), table.entries
        entries.average[first : first + len(legal)] = entries.average[parent] / len(legal)
    elif self.actions[infoset] != legal:
      raise errors.InconsistentInfosetError(
        f"States of player {player}'s infostate {infostate!r} have different legal actions: "
        f"{self.actions[infoset]}, and {legal} after the history [{state.history_str()}]."
      )
    elif table.entries.parent.item(infoset) != parent and not self._warned:
      self._warned = True
      warnings.warn(
        f"Player {player}'s infostate {infostate!r} can be reached by different sequences of that "
        "player's own actions: the game has imperfect recall, and nothing guarantees that the "
        "average policy converges.",
        ImperfectRecallWarning,
        stacklevel=2,
      )
    return infoset, legal

  def _pick(self, probabilities: Sequence[float]) -> int:
    """Draws one outcome."""
    return pick(probabilities, 0, len(probabilities), self._uniform())  # type: ignore[arg-type]

  def _happens(self, probability: float) -> bool:
    """Draws whether something happens; no random number is used for what is certain."""
    return probability >= 1.0 or self._uniform() < probability

  def _uniform(self) -> float:
    """Draws the next random number."""
    if not self._numbers:
      numbers = np.empty(_NUMBERS_AT_A_TIME)
      fill_uniform(self._ahead, numbers)
      self._numbers = numbers[::-1].tolist()
    return self._numbers.pop()
