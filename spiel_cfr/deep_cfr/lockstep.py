"""Samples games too large to compile: many traversals go through OpenSpiel's states in lock step.

In every step all traversals together ask the networks once, which answer for hundreds of states about as fast as for
one. The samples are those of `mccfr.traversal`.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s, Uint64s
from spiel_cfr.deep_cfr.features import Encoder, Float32s
from spiel_cfr.deep_cfr.network import Array, Rows
from spiel_cfr.deep_cfr.reservoir import Reservoir
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.state_checks import chance_outcomes, unknown_player, wrong_returns
from spiel_cfr.mccfr.engines.engine import Scheme
from spiel_cfr.mccfr.infoset_table import Table
from spiel_cfr.mccfr.random_draws import VISITED, fill_uniform, pick
from spiel_cfr.mccfr.sampling_rules import Rule

# (player, features, mask) -> probabilities of actions; all but the player have a row a state.
Strategies = Callable[[int, Float32s, Bools], Float64s]
# features -> what each action is expected to bring the player who learns.
Baselines = Callable[[Float32s], Float64s]


class _Met(NamedTuple):
  """A strategy that a traversal has met.

  Attributes:
    features: of the infoset.
    mask: its legal actions.
    strategy: what is played.
  """

  features: Float32s
  mask: Bools
  strategy: Float64s


class _Decision(NamedTuple):
  """A decision on the path of a traversal; of other players only where there are baselines.

  Attributes:
    above: the decision before it, -1 for none, and the action there.
    is_own: whether it is one of the player who learns.
    features: of its infoset.
    mask: its legal actions.
    strategy: what is played.
    explored: the probability that an action is explored.
    baseline: what each action is expected to bring the player who learns; 0 without baselines.
    values: v(h, a): the baseline, corrected from below where the action is explored.
  """

  above: tuple[int, int]
  is_own: bool
  features: Float32s
  mask: Bools
  strategy: Float64s
  explored: Float64s
  baseline: Float64s
  values: Float64s


class LockStep:
  """Samples a game through OpenSpiel's states, into reservoirs.

  Attributes:
    view: the game.
    encoder: what networks see.
    num_outputs: how many actions the game has.
    advantages: a reservoir per player, of samples.
    strategies: likewise, of strategies where samples have met them.
    baselines: likewise, of what baselines should have been in the iteration; empty if there are none.
    reservoirs: all of these, by names.
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
    """
    if not encoder.size:
      raise errors.FeaturesError(
        'features="one_hot" number the infosets of a compiled game, and this one is sampled through its states: take '
        '"tensor" or a function.'
      )
    self.view = view
    self.encoder = encoder
    self.num_outputs = int(view.game.num_distinct_actions())
    self.table = Table(view.num_players)
    self.infostates: list[dict[str, int]] = [{} for _ in range(view.num_players)]
    self._scheme, self._counters, self._capacity = scheme, counters, capacity
    kinds = ["advantages", "strategies", "baselines"][: 3 if scheme.baseline_rate else 2]
    by_kind = {
      kind: [Reservoir(capacity, encoder.size, self.num_outputs) for _ in range(view.num_players)]
      for kind in kinds
    }
    self.advantages, self.strategies = by_kind["advantages"], by_kind["strategies"]
    self.baselines = by_kind.get("baselines", [])
    self.reservoirs = {
      f"{kind}.{player}": reservoir
      for kind, each in by_kind.items()
      for player, reservoir in enumerate(each)
    }

  def fresh(self, counters: Uint64s) -> "LockStep":
    """Returns an engine for the same game before its first iteration, which advances these counters."""
    return LockStep(self.view, self.encoder, self._scheme, counters, self._capacity)

  def sample(
    self,
    player: int,
    num_traversals: int,
    weight: float,
    strategies: Strategies,
    baselines: Baselines | None = None,
  ) -> None:
    """Runs traversals for a player, and adds advantages of that player and strategies of the next to reservoirs.

    Args:
      player: who learns.
      num_traversals: how many.
      weight: what each sample weighs.
      strategies: what is played; it must stay.
      baselines: what this player expects; needed where the scheme has baselines.

    Raises:
      InvalidPayoffError: a terminal state returns NaN or an infinity.
    """
    averaged = (player + 1) % self.view.num_players
    decisions: list[_Decision] = []
    met: list[_Met] = []
    front = [(self.view.new_initial_state(), (-1, 0)) for _ in range(num_traversals)]
    while front:
      front = self._decide(player, averaged, strategies, baselines, front, decisions, met)
    for decision in reversed(decisions):
      _pass_up(decisions, decision.above, float(decision.strategy @ decision.values))
    generator = np.random.default_rng(self._counters.tolist())
    own = [each for each in decisions if each.is_own]
    advantages = [
      np.where(each.mask, each.values - each.strategy @ each.values, 0.0) for each in own
    ]
    self.advantages[player].add(self._rows(own, advantages, weight), generator)
    chances = [each.strategy for each in met]
    self.strategies[averaged].add(self._rows(met, chances, weight), generator)
    if self.baselines:
      rate, memory = self._scheme.baseline_rate, self.baselines[player]
      moved = [
        each.baseline + rate * each.explored * (each.values - each.baseline) for each in decisions
      ]
      memory.clear()
      memory.add(self._rows(decisions, moved, 1.0), generator)

  def _rows(
    self, seen: Sequence[_Met | _Decision], targets: Sequence[Float64s], weight: float
  ) -> Rows:
    count = len(seen)
    return Rows(
      np.array([each.features for each in seen], np.float32).reshape(count, self.encoder.size),
      np.array(targets, np.float32).reshape(count, self.num_outputs),
      np.array([each.mask for each in seen], bool).reshape(count, self.num_outputs),
      np.full(count, weight),
    )

  def _decide(
    self,
    player: int,
    averaged: int,
    strategies: Strategies,
    baselines: Baselines | None,
    front: list[tuple[Any, tuple[int, int]]],
    decisions: list[_Decision],
    met: list[_Met],
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
      explored, explores_all = self._explored(mover == player, mask, chances)
      baseline = np.where(mask, baselines(features), 0.0) if baselines else np.zeros(mask.shape)
      draws = np.empty(len(group))
      fill_uniform(self._counters, draws)
      for place, (state, above, legal) in enumerate(group):
        seen = features[place], mask[place], chances[place]
        if mover == averaged:
          met.append(_Met(*seen))
        if mover == player or baselines:
          here, expected = len(decisions), baseline[place]
          decisions.append(
            _Decision(above, mover == player, *seen, explored[place], expected, expected.copy())
          )
        else:
          # The value of what is drawn is the estimate.
          here = -1
        if explores_all:
          for action in legal[:-1]:
            result.append((state.child(action), (here, action)))
          action = legal[-1]
        else:
          action = pick(explored[place], 0, self.num_outputs, draws[place])
        state.apply_action(action)
        result.append((state, above if here < 0 else (here, action)))
    return result

  def _explored(self, is_own: bool, mask: Bools, chances: Float64s) -> tuple[Float64s, bool]:
    """Returns the probabilities that actions are explored, and whether all are."""
    if not is_own:
      return chances, False
    if self._scheme.sampler.own is Rule.EVERY_ACTION:
      return mask.astype(np.float64), True
    epsilon = self._scheme.sampler.parameters[0]
    uniform = mask / mask.sum(axis=1, keepdims=True)
    return epsilon * uniform + (1.0 - epsilon) * chances, False

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
  """Enters the value of an explored action at the decision above, as `mccfr.traversal` has it."""
  place, action = above
  if place >= 0:
    decision = decisions[place]
    missing = value - decision.baseline[action]
    decision.values[action] = decision.baseline[action] + missing / decision.explored[action]


def padded(rows: Array, fewest: int = 64) -> Array:
  """Returns rows with zeros added up to a power of two of them, so that few shapes are compiled."""
  count = fewest
  while count < len(rows):
    count *= 2
  result = np.zeros((count, *rows.shape[1:]), rows.dtype)
  result[: len(rows)] = rows
  return result
