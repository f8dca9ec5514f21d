"""Samples a game through OpenSpiel's states, so that it need not fit into memory: for games too large to compile."""

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyspiel

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Int64s, Uint64s
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.state_checks import (
  PROBABILITY_TOLERANCE,
  ReturnsCheck,
  chance_outcomes,
  check_actions,
  unknown_player,
)
from spiel_cfr.mccfr.infoset_table import Table
from spiel_cfr.mccfr.random_draws import ITERATIONS, POSITION, VISITED, explore, fill_uniform, pick
from spiel_cfr.mccfr.sampling_rules import AverageType, Rule, Sampler
from spiel_cfr.mccfr.updates import Batch, absorb, average_all

_CHANCE = int(pyspiel.PlayerId.CHANCE)
_TERMINAL = int(pyspiel.PlayerId.TERMINAL)
_NUMBERS_AT_A_TIME = 1024


class ImperfectRecallWarning(UserWarning):
  """A player forgets something, so no theorem says that the average policy converges."""


class StateEngine:
  """Samples a game through OpenSpiel's states; knows the infosets that it has met.

  Attributes:
    infostates: a player's information state strings -> the infoset's number in `table`.
    actions: the legal actions at each infoset.
  """

  def __init__(
    self, view: GameView, sampler: Sampler, counters: Uint64s, max_infosets: int
  ) -> None:
    """Starts with an empty table of at most `max_infosets` infosets; it advances the counters."""
    self.table = Table(view.num_players, sampler.baseline_rate > 0)
    self.infostates: list[dict[str, int]] = [{} for _ in range(view.num_players)]
    self.actions: list[list[int]] = []
    # Most infosets share their list of actions with others.
    self._known_actions: dict[tuple[int, ...], list[int]] = {}
    self.view, self.counters, self._check = view, counters, ReturnsCheck(view)
    self._sampler, self._max_infosets = sampler, max_infosets
    self._full = sampler.average_type == AverageType.FULL.value
    self._importance = sampler.average_type == AverageType.IMPORTANCE.value
    self._warned = False
    self._next_player = 0
    # Random numbers drawn ahead, next one last; `_ahead` is the counters behind them.
    self._numbers: list[float] = []
    self._ahead = counters.copy()

  def run(self, batch: Batch) -> None:
    """Does the iterations of a batch.

    Raises:
      GameTooLargeError: there are more than `max_infosets` infosets, or histories are too long for Python's stack.
      InconsistentInfosetError: two states of an infoset have different legal actions.
      InvalidPayoffError: see `ReturnsCheck`.
    """
    num_players = self.view.num_players
    for iteration, weight in enumerate(batch.weights.tolist()):
      # Not 0 where an iteration was interrupted.
      while self._next_player < num_players:
        if self._next_player == 0:
          self._start = self.counters[POSITION]
        elif self._sampler.repeats_draws:
          self.counters[POSITION] = self._start
        self._traverse(self._next_player, weight, batch, iteration)
        self._next_player += 1
      self._next_player = 0
      if self._full:
        average_all(num_players, self.table.num_infosets, weight, self.table.entries)
      self.counters[ITERATIONS] += np.uint64(1)

  def _traverse(self, player: int, weight: float, batch: Batch, iteration: int) -> None:
    """Runs one traversal. If it is interrupted, it leaves infosets not seen before, and baselines, but no regrets."""
    num_players = self.view.num_players
    self._player = player
    self._averaged_player = player if self._sampler.averages_own else (player + 1) % num_players
    self._visited = 0
    self._sequences = list(range(num_players))
    self._averaged: list[int] = []
    self._average_weights: list[float] = []
    self._valued: list[int] = []
    self._estimates: list[float] = []
    if self.counters[POSITION] + np.uint64(len(self._numbers)) != self._ahead[POSITION]:
      self._numbers, self._ahead = [], self.counters.copy()
    try:
      self._value(self.view.new_initial_state(), 1.0, weight)
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
      batch,
      iteration,
      self.table.entries,
    )
    self.counters[POSITION] = self._ahead[POSITION] - np.uint64(len(self._numbers))
    self.counters[VISITED] += np.uint64(self._visited)

  def _value(self, state: Any, weight: float, average_weight: float) -> float:
    """Estimates what the traversal's player gets after a history; uses `state` up. See `mccfr.traversal`."""
    player, importance, sampler = self._player, self._importance, self._sampler
    self._visited += 1
    mover = state.current_player()
    while mover == _CHANCE:
      outcomes = self.view.chance_outcomes(state)
      chances = [probability for _, probability in outcomes]
      if not abs(sum(chances) - 1) < PROBABILITY_TOLERANCE or min(chances) < 0:
        # Says what is wrong with them.
        chance_outcomes(self.view, state)
      action, chance = outcomes[self._pick(chances)]
      if importance:
        average_weight /= chance
      state.apply_action(action)
      self._visited += 1
      mover = state.current_player()
    if mover == _TERMINAL:
      returns = self.view.returns(state)
      self._check(state, returns)
      return float(returns[player])
    if not 0 <= mover < len(self.infostates):
      raise unknown_player(state)

    actions = self.view.legal_actions(state)
    infoset = self._infoset(state, mover, actions)
    entries, count = self.table.entries, len(actions)
    first = entries.first.item(infoset)
    here = slice(first, first + count)
    strategy = entries.strategy[here].tolist()
    own, averaged = mover == player, mover == self._averaged_player
    if averaged and not self._full:
      self._averaged.append(infoset)
      self._average_weights.append(average_weight)
    rule = sampler.own if own else sampler.others
    parent = self._sequences[mover]
    if rule == Rule.BY_STRATEGY and not own and not sampler.baseline_rate:
      # The value of what is drawn is the estimate.
      action = self._pick(strategy)
      if importance and not averaged:
        average_weight /= strategy[action]
      self._sequences[mover] = first + action
      state.apply_action(actions[action])
      value = self._value(state, weight, average_weight)
      self._sequences[mover] = parent
      return value

    explored = [1.0] * count
    values = entries.baseline[player, here].tolist() if sampler.baseline_rate else [0.0] * count
    candidates: Iterable[int] = range(count)
    each = rule == Rule.EVERY_ACTION or explore(
      rule, sampler, strategy, entries.cumulative[here], 0, count, explored
    )
    if not each:
      candidates = (self._pick(explored),)
    for action in candidates:
      chance = explored[action]
      if each and not self._happens(chance):
        continue
      weight_below = weight / chance if own else weight * (strategy[action] / chance)
      average_weight_below = average_weight
      if averaged:
        average_weight_below *= strategy[action] / chance
      elif own or importance:
        average_weight_below /= chance
      if each and action + 1 < count:
        below = state.child(actions[action])
      else:
        state.apply_action(actions[action])
        below = state
      self._sequences[mover] = first + action
      value = self._value(below, weight_below, average_weight_below)
      if rule == Rule.EVERY_ACTION:
        values[action] = value
      else:
        values[action] += (value - values[action]) / chance
      if sampler.baseline_rate:
        baseline = self.table.entries.baseline
        change = sampler.baseline_rate * (value - baseline[player, first + action])
        baseline[player, first + action] += change
    self._sequences[mover] = parent
    value = 0.0
    for played, action_value in zip(strategy, values, strict=True):
      value += played * action_value
    if own:
      self._valued.append(infoset)
      self._estimates += [weight * (action_value - value) for action_value in values]
    return value

  def actions_of(self, player: int, infostate: str) -> tuple[list[int], Int64s]:
    """Returns an infoset's legal actions, and the entry of the table that each has."""
    infoset = self.infostates[player][infostate]
    actions = list(self.actions[infoset])
    return actions, self.table.entries.first.item(infoset) + np.arange(len(actions))

  def _infoset(self, state: Any, player: int, legal: list[int]) -> int:
    """Returns the number of the infoset of a state, and adds it to the table if it is new."""
    infostate = self.view.infostate(state)
    infoset = self.infostates[player].get(infostate)
    parent = self._sequences[player]
    if infoset is None:
      return self._new_infoset(state, infostate, legal, parent)
    if self.actions[infoset] != legal:
      raise errors.InconsistentInfosetError(
        f"States of player {player}'s infostate {infostate!r} have different legal actions: "
        f"{self.actions[infoset]}, and {legal} after the history [{state.history_str()}]."
      )
    if self.table.entries.parent.item(infoset) != parent and not self._warned:
      self._warned = True
      warnings.warn(
        f"Player {player}'s infostate {infostate!r} can be reached by different sequences of that "
        "player's own actions: the game has imperfect recall, and nothing guarantees that the "
        "average policy converges.",
        ImperfectRecallWarning,
        stacklevel=2,
      )
    return infoset

  def _new_infoset(self, state: Any, infostate: str, legal: list[int], parent: int) -> int:
    table, player = self.table, state.current_player()
    if tuple(legal) not in self._known_actions:
      check_actions(self.view, state, legal)
    if table.num_infosets >= self._max_infosets:
      raise errors.GameTooLargeError(
        f"The samples have met more than max_infosets={self._max_infosets:,} infosets, which take "
        f"{table.num_bytes / 2**20:z,.0f} MiB besides their names. Raise max_infosets if there is "
        "the memory."
      )
    infoset = table.add(len(legal), parent)
    self.infostates[player][infostate] = infoset
    self.actions.append(self._known_actions.setdefault(tuple(legal), legal))
    if self._full:
      # What it would have added to its average had it been known from the start.
      first, cumulative = table.entries.first.item(infoset), table.entries.cumulative
      cumulative[first : first + len(legal)] = cumulative[parent] / len(legal)
    return infoset

  def _pick(self, probabilities: Sequence[float]) -> int:
    return pick(probabilities, 0, len(probabilities), self._uniform())

  def _happens(self, probability: float) -> bool:
    """Draws whether something happens; no random number is used for what is certain."""
    return probability >= 1.0 or self._uniform() < probability

  def _uniform(self) -> float:
    if not self._numbers:
      numbers = np.empty(_NUMBERS_AT_A_TIME)
      fill_uniform(self._ahead, numbers)
      self._numbers = numbers[::-1].tolist()
    return self._numbers.pop()
