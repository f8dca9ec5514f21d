"""Samples games too large to compile: many traversals go through OpenSpiel's states in lock step.

In every step all traversals together ask the networks once, which answer for hundreds of states about as fast as for
one. The samples are those of `sampling.traversal`.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr.deep.features import Encoder, Float32s
from spiel_cfr.deep.network import Array, Rows
from spiel_cfr.deep.reservoir import Reservoir
from spiel_cfr.game.promises import chance_outcomes, unknown_player, wrong_returns
from spiel_cfr.game.view import GameView
from spiel_cfr.kernels.arrays import Bools, Float64s, Uint64s
from spiel_cfr.sampling.draws import VISITED, fill_uniform, pick
from spiel_cfr.sampling.engines.base import Scheme
from spiel_cfr.sampling.rules import Rule
from spiel_cfr.sampling.table import Table

# (player, features, mask) -> probabilities of actions; all but the player have a row a state.
Strategies = Callable[[int, Float32s, Bools], Float64s]


class _Decision(NamedTuple):
  """A decision of the player who learns, on the path of a traversal.

  Attributes:
    above: the decision before it, -1 for none, and the action there.
    features: of its infoset.
    mask: its legal actions.
    strategy: what is played.
    explored: the probability that an action is explored.
    values: v(h, a), filled in from below.
  """

  above: tuple[int, int]
  features: Float32s
  mask: Bools
  strategy: Float64s
  explored: Float64s
  values: Float64s


class LockStep:
  """Samples a game through OpenSpiel's states, into reservoirs.

  Attributes:
    view: the game.
    encoder: what networks see.
    num_outputs: how many actions the game has.
    advantages: a reservoir per player, of samples.
    strategies: likewise, of strategies where samples have met them.
    table: empty: what there is to know of infosets, networks know.
    infostates: likewise.
  """

  def __init__(
    self, view: GameView, encoder: Encoder, scheme: Scheme, counters: Uint64s, capacity: int
  ) -> None:
    """Begins with empty reservoirs.

    Args:
      view: the game.
      encoder: what networks see.
      scheme: what to sample.
      counters: see `draws.new_counters`; the engine advances them.
      capacity: how many samples a reservoir holds.

    Raises:
      FeaturesError: features are one-hot.
      ArgumentError: there are to be baselines.
    """
    if not encoder.size:
      raise errors.FeaturesError(
        'features="one_hot" number the infosets of a compiled game, and this one is sampled through its states: take '
        '"tensor" or a function.'
      )
    if scheme.baseline_rate:
      raise errors.ArgumentError(
        f"{view.game} is sampled through its states, where there are no baselines: take baseline_rate=0, or "
        'engine="compiled" if it is small enough.'
      )
    self.view = view
    self.encoder = encoder
    self.num_outputs = int(view.game.num_distinct_actions())
    self.table = Table(view.num_players)
    self.infostates: list[dict[str, int]] = [{} for _ in range(view.num_players)]
    self._scheme, self._counters, self._capacity = scheme, counters, capacity
    self.advantages, self.strategies = (
      [Reservoir(capacity, encoder.size, self.num_outputs) for _ in range(view.num_players)]
      for _ in range(2)
    )

  def fresh(self, counters: Uint64s) -> "LockStep":
    """Returns an engine for the same game before its first iteration, which advances these counters."""
    return LockStep(self.view, self.encoder, self._scheme, counters, self._capacity)

  def sample(self, player: int, num_traversals: int, weight: float, strategies: Strategies) -> None:
    """Runs traversals for a player, and adds advantages of that player and strategies of the next to reservoirs.

    Args:
      player: who learns.
      num_traversals: how many.
      weight: what each sample weighs.
      strategies: what is played; it must stay.

    Raises:
      InvalidPayoffError: a terminal state returns NaN or an infinity.
    """
    averaged = (player + 1) % self.view.num_players
    decisions: list[_Decision] = []
    met: list[tuple[Float32s, Bools, Float64s]] = []
    front = [(self.view.new_initial_state(), (-1, 0)) for _ in range(num_traversals)]
    while front:
      front = self._decide(player, averaged, strategies, front, decisions, met)
    advantages = []
    for decision in reversed(decisions):
      value = float(decision.strategy @ decision.values)
      advantages.append(np.where(decision.mask, decision.values - value, 0.0))
      _pass_up(decisions, decision.above, value)
    advantages.reverse()
    generator = np.random.default_rng(self._counters.tolist())
    seen = [(each.features, each.mask) for each in decisions]
    self.advantages[player].add(self._rows(seen, advantages, weight), generator)
    seen, chances = [each[:2] for each in met], [each[2] for each in met]
    self.strategies[averaged].add(self._rows(seen, chances, weight), generator)

  def _rows(
    self, seen: Sequence[tuple[Float32s, Bools]], targets: Sequence[Float64s], weight: float
  ) -> Rows:
    count = len(seen)
    return Rows(
      np.array([features for features, _ in seen], np.float32).reshape(count, self.encoder.size),
      np.array(targets, np.float32).reshape(count, self.num_outputs),
      np.array([mask for _, mask in seen], bool).reshape(count, self.num_outputs),
      np.full(count, weight),
    )

  def _decide(
    self,
    player: int,
    averaged: int,
    strategies: Strategies,
    front: list[tuple[Any, tuple[int, int]]],
    decisions: list[_Decision],
    met: list[tuple[Float32s, Bools, Float64s]],
  ) -> list[tuple[Any, tuple[int, int]]]:
    """Takes every traversal past its next decision; returns where they then are."""
    waiting: list[list[tuple[Any, tuple[int, int], list[int]]]]
    waiting = [[] for _ in range(self.view.num_players)]
    for state, above in front:
      self._to_decision(state)
      if state.is_terminal():
        _pass_up(decisions, above, self._payoff(state, player))
      else:
        mover = state.current_player()
        if not 0 <= mover < self.view.num_players:
          raise unknown_player(state)
        waiting[mover].append((state, above, self.view.legal_actions(state)))
    result: list[tuple[Any, tuple[int, int]]] = []
    for mover, group in enumerate(waiting):
      if not group:
        continue
      features = np.stack([self.encoder(state, mover) for state, _, _ in group])
      mask = np.zeros((len(group), self.num_outputs), bool)
      for row, (_, _, legal) in zip(mask, group, strict=True):
        row[legal] = True
      chances = strategies(mover, features, mask)
      draws = np.empty(len(group))
      fill_uniform(self._counters, draws)
      for place, (state, above, legal) in enumerate(group):
        strategy = chances[place]
        if mover == averaged:
          met.append((features[place], mask[place], strategy))
        if mover != player:
          state.apply_action(pick(strategy, 0, len(strategy), draws[place]))
          result.append((state, above))
          continue
        explored = mask[place].astype(np.float64)
        explores_all = self._scheme.sampler.own is Rule.EVERY_ACTION
        if not explores_all:
          epsilon = self._scheme.sampler.parameters[0]
          explored = explored * (epsilon / len(legal)) + (1.0 - epsilon) * strategy
        here = len(decisions)
        decisions.append(
          _Decision(
            above, features[place], mask[place], strategy, explored, np.zeros(self.num_outputs)
          )
        )
        if explores_all:
          for action in legal[:-1]:
            result.append((state.child(action), (here, action)))
          action = legal[-1]
        else:
          action = pick(explored, 0, len(explored), draws[place])
        state.apply_action(action)
        result.append((state, (here, action)))
    return result

  def _to_decision(self, state: Any) -> None:
    """Draws what chance does until a player is to move or the game is over; counts the states."""
    self._counters[VISITED] += np.uint64(1)
    draw = np.empty(1)
    while state.is_chance_node():
      outcomes = chance_outcomes(self.view, state)
      fill_uniform(self._counters, draw)
      chances = [probability for _, probability in outcomes]
      state.apply_action(outcomes[pick(chances, 0, len(chances), float(draw[0]))][0])
      self._counters[VISITED] += np.uint64(1)

  def _payoff(self, state: Any, player: int) -> float:
    returns = state.returns()
    if len(returns) != self.view.num_players:
      raise wrong_returns(state, returns, self.view.num_players)
    if not np.isfinite(returns[player]):
      raise errors.InvalidPayoffError(
        f"Player {player} gets {returns[player]} after the history [{state.history_str()}]; it must be a finite number."
      )
    return float(returns[player])


def _pass_up(decisions: list[_Decision], above: tuple[int, int], value: float) -> None:
  """Enters the value of an explored action at the decision above."""
  place, action = above
  if place >= 0:
    decisions[place].values[action] = value / decisions[place].explored[action]


def padded(rows: Array, fewest: int = 64) -> Array:
  """Returns rows with zeros added up to a power of two of them, so that few shapes are compiled."""
  count = fewest
  while count < len(rows):
    count *= 2
  result = np.zeros((count, *rows.shape[1:]), rows.dtype)
  result[: len(rows)] = rows
  return result
