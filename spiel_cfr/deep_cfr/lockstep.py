"""Sampling of games too large to compile: many traversals go through OpenSpiel's states in lock step.

A step evaluates the networks once for the states of all traversals, because hundreds of states take about as long as
one. The samples are those of `mccfr.traversal`.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s, Uint64s
from spiel_cfr.cfr.solver_state import GROWING
from spiel_cfr.deep_cfr.features import Encoder
from spiel_cfr.deep_cfr.learner import Learner
from spiel_cfr.deep_cfr.network import Array, Rows
from spiel_cfr.deep_cfr.reservoir import Reservoir
from spiel_cfr.games.openspiel import answers
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.infoset_features import Float32s
from spiel_cfr.games.openspiel.state_checks import ReturnsCheck
from spiel_cfr.mccfr.random_draws import VISITED, fill_uniform, pick
from spiel_cfr.mccfr.sampling_rules import Rule, Sampler

# (player, features, mask) -> probabilities of actions. Features, mask and result have one row a state.
Strategies = Callable[[int, Float32s, Bools], Float64s]
# The state of a traversal, and the receiver of its value: the index of the decision above (-1 for none) and its action.
_Waiting = tuple[Any, tuple[int, int]]


@dataclasses.dataclass
class SampledMemory:
  """Samples and past networks of a solver on states.

  Attributes:
    advantages: one `Reservoir` of samples a player.
    past_parameters: floats (iterations, players, networks, parameters). The networks after each iteration.
    past_scales: float64 (iterations, players, networks). The factors on their outputs.
  """

  advantages: tuple[Reservoir, ...]
  past_parameters: Array = dataclasses.field(metadata=GROWING)
  past_scales: Float64s = dataclasses.field(metadata=GROWING)


class _Decision(NamedTuple):
  """A decision of the updating player.

  Attributes:
    above: the index of the decision above (-1 for none), and the action there.
    features: float32 (features,). The features of the infoset.
    mask: bool (actions,). True for legal actions.
    strategy: float64 (actions,). The current strategy.
    explored: float64 (actions,). The probability that an action is explored.
    values: float64 (actions,). The estimates v(h, a).
  """

  above: tuple[int, int]
  features: Float32s
  mask: Bools
  strategy: Float64s
  explored: Float64s
  values: Float64s


class LockStep:
  """Samples of a game from OpenSpiel's states, in reservoirs.

  Attributes:
    memory: `SampledMemory`. The samples, and the networks of past iterations.
  """

  def __init__(
    self,
    view: GameView,
    encoder: Encoder,
    sampler: Sampler,
    counters: Uint64s,
    capacity: int,
    learner: Learner,
  ) -> None:
    """Begins with empty reservoirs of this capacity; raises FeaturesError if features are one-hot."""
    if not encoder.size:
      raise errors.FeaturesError(
        'features="one_hot" needs a compiled game, and this one is sampled by its states: use features="tensor" or a '
        "function."
      )
    self._view, self._encoder, self._sampler = view, encoder, sampler
    self._counters, self._capacity, self._check = counters, capacity, ReturnsCheck(view)
    self._num_outputs = int(view.game.num_distinct_actions())
    advantages = tuple(
      Reservoir.empty(capacity, encoder.size, self._num_outputs) for _ in range(view.num_players)
    )
    self.memory = SampledMemory(advantages, learner.parameters[None][:0], learner.scales[None][:0])

  def remember(self, learner: Learner) -> None:
    """Stores the networks of an iteration."""
    memory = self.memory
    memory.past_parameters = np.concatenate([memory.past_parameters, learner.parameters[None]])
    memory.past_scales = np.concatenate([memory.past_scales, learner.scales[None]])

  def sample(
    self, player: int, num_traversals: int, weight: float, forgets: bool, strategies: Strategies
  ) -> Rows:
    """Runs traversals for a player, and adds their samples to its reservoir; returns the reservoir's rows.

    If `forgets`, the reservoir is cleared first. `strategies` must not change meanwhile. For errors see `ReturnsCheck`.
    """
    reservoir = self.memory.advantages[player]
    if forgets:
      reservoir.clear()
    decisions: list[_Decision] = []
    traversals: list[_Waiting] = [
      (self._view.new_initial_state(), (-1, 0)) for _ in range(num_traversals)
    ]
    while traversals:
      traversals = self._pass_decisions(player, strategies, traversals, decisions)
    for decision in reversed(decisions):
      value = float(decision.strategy @ decision.values)
      _pass_up(decisions, decision.above, value)
    generator = np.random.default_rng(self._counters.tolist())
    reservoir.add(self._rows(decisions, weight), self._capacity, generator)
    return reservoir.rows()

  def _rows(self, decisions: Sequence[_Decision], weight: float) -> Rows:
    """Returns the advantages at decisions as training data."""
    count, actions = len(decisions), self._num_outputs
    targets = [
      np.where(each.mask, each.values - each.strategy @ each.values, 0.0) for each in decisions
    ]
    features = np.array([each.features for each in decisions], np.float32)
    return Rows(
      features.reshape(count, self._encoder.size),
      np.array(targets, np.float32).reshape(count, actions),
      np.array([each.mask for each in decisions], bool).reshape(count, actions),
      np.full(count, weight),
    )

  def _pass_decisions(
    self,
    player: int,
    strategies: Strategies,
    traversals: list[_Waiting],
    decisions: list[_Decision],
  ) -> list[_Waiting]:
    """Takes every traversal past its next decision. Adds the player's to `decisions`; returns unfinished traversals."""
    waiting: list[list[tuple[Any, tuple[int, int], list[int]]]]
    waiting = [[] for _ in range(self._view.num_players)]
    for state, above in traversals:
      mover = self._to_decision(state)
      if mover == answers.TERMINAL:
        returns = self._view.returns(state)
        self._check(state, returns)
        _pass_up(decisions, above, float(returns[player]))
      else:
        waiting[mover].append((state, above, self._view.legal_actions(state)))
    result: list[_Waiting] = []
    for mover, group in enumerate(waiting):
      if not group:
        continue
      features = np.stack([self._encoder(state, mover) for state, _, _ in group])
      mask = np.zeros((len(group), self._num_outputs), bool)
      for row, (_, _, legal) in zip(mask, group, strict=True):
        row[legal] = True
      chances = strategies(mover, features, mask)
      explored = self._explored(mask, chances)
      draws = np.empty(len(group))
      fill_uniform(self._counters, draws)
      for place, (state, above, legal) in enumerate(group):
        if mover != player:
          # The value of the sampled action is the estimate.
          self._view.apply(state, pick(chances[place], 0, self._num_outputs, draws[place]))
          result.append((state, above))
          continue
        decision, actions = len(decisions), legal
        decisions.append(
          _Decision(
            above,
            features[place],
            mask[place],
            chances[place],
            explored[place],
            values=np.zeros(self._num_outputs),
          )
        )
        if self._sampler.updating_rule != Rule.EVERY_ACTION:
          actions = [pick(explored[place], 0, self._num_outputs, draws[place])]
        result += [(self._view.child(state, action), (decision, action)) for action in actions[:-1]]
        self._view.apply(state, actions[-1])
        result.append((state, (decision, actions[-1])))
    return result

  def _explored(self, mask: Bools, chances: Float64s) -> Float64s:
    """Returns the probabilities with which the updating player's actions are explored, shape (states, actions)."""
    if self._sampler.updating_rule == Rule.EVERY_ACTION:
      return mask.astype(np.float64)
    epsilon, uniform = self._sampler.epsilon, mask / mask.sum(axis=1, keepdims=True)
    result: Float64s = epsilon * uniform + (1.0 - epsilon) * chances
    return result

  def _to_decision(self, state: Any) -> int:
    """Samples chance until a player is to move or the game is over; returns the mover, counts the states."""
    self._counters[VISITED] += np.uint64(1)
    draw = np.empty(1)
    while (mover := self._view.mover(state)) == answers.CHANCE:
      outcomes = self._view.chance_outcomes(state)
      fill_uniform(self._counters, draw)
      chances = [probability for _, probability in outcomes]
      self._view.apply(state, outcomes[pick(chances, 0, len(chances), float(draw[0]))][0])
      self._counters[VISITED] += np.uint64(1)
    return mover


def _pass_up(decisions: list[_Decision], above: tuple[int, int], value: float) -> None:
  """Writes the estimate v(h, a) of `mccfr.traversal` at the decision above, if there is one."""
  place, action = above
  if place >= 0:
    decisions[place].values[action] = value / decisions[place].explored[action]


def padded(rows: Array, fewest: int = 64) -> Array:
  """Returns rows with zeros appended up to `fewest` times a power of two, so that JAX compiles few shapes."""
  count = fewest
  while count < len(rows):
    count *= 2
  result = np.zeros((count, *rows.shape[1:]), rows.dtype)
  result[: len(rows)] = rows
  return result
