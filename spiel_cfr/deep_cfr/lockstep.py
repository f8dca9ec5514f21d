"""Sampling of games too large to compile: many traversals of OpenSpiel's states in lock step.

In a step, every traversal goes to its next decision, and the networks are evaluated once for the states of all
traversals. Evaluating hundreds of states takes about as long as evaluating one. The samples are those of
`mccfr.traversal`.
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
from spiel_cfr.games.openspiel import checked_calls
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.infoset_features import Float32s
from spiel_cfr.games.openspiel.state_checks import ReturnsCheck
from spiel_cfr.mccfr.random_draws import VISITED, fill_uniform, pick
from spiel_cfr.mccfr.sampling_rules import Rule, Sampler

# A function (player, features, mask) -> probabilities of actions. Features, mask and result have a row for each state.
Strategies = Callable[[int, Float32s, Bools], Float64s]
# The decision of the updating player that receives a value: its index (-1 for none), and the action with this value.
_Receiver = tuple[int, int]


@dataclasses.dataclass
class SampledMemory:
  """Samples and past networks of a solver on states.

  Attributes:
    advantages: tuple of a `Reservoir` of samples for each player.
    past_parameters: floats (iterations, players, networks, parameters). The networks after each iteration.
    past_scales: float64 (iterations, players, networks). The factors on their outputs.
  """

  advantages: tuple[Reservoir, ...]
  past_parameters: Array = dataclasses.field(metadata=GROWING)
  past_scales: Float64s = dataclasses.field(metadata=GROWING)


class _Traversal(NamedTuple):
  """A traversal that is not over.

  Attributes:
    state: the OpenSpiel state.
    receiver: pair of int. The decision that receives the value of the traversal, and the action there.
  """

  state: Any
  receiver: _Receiver


class _Decision(NamedTuple):
  """A decision of the updating player.

  Attributes:
    receiver: pair of int. The decision that receives the value of this one, and the action there.
    features: float32 (features,). The features of the infoset.
    mask: bool (actions,). True for legal actions.
    strategy: float64 (actions,). The current strategy.
    explored: float64 (actions,). The probability that each action is explored.
    values: float64 (actions,). The estimates v(h, a) of `mccfr.traversal`.
  """

  receiver: _Receiver
  features: Float32s
  mask: Bools
  strategy: Float64s
  explored: Float64s
  values: Float64s


class LockStep:
  """Sampling of a game from OpenSpiel's states, with reservoirs of samples.

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
    """Begins with empty reservoirs of a capacity; raises FeaturesError if features are one-hot."""
    if not encoder.size:
      raise errors.FeaturesError(
        'features="one_hot" needs a compiled game, and this one is sampled by its states: use features="tensor" or a '
        "function."
      )
    self._view, self._encoder, self._sampler = view, encoder, sampler
    self._counters, self._capacity, self._check_returns = counters, capacity, ReturnsCheck(view)
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
    """Runs traversals for a player, and adds their samples to its reservoir. Returns the reservoir's rows.

    Args:
      player: the updating player.
      num_traversals: the number of traversals.
      weight: the weight of each sample.
      forgets: True to clear the reservoir before.
      strategies: the current strategies, which must not change meanwhile.

    Raises:
      InvalidPayoffError: see `ReturnsCheck`.
    """
    reservoir = self.memory.advantages[player]
    if forgets:
      reservoir.clear()
    decisions: list[_Decision] = []
    traversals = [
      _Traversal(self._view.new_initial_state(), (-1, 0)) for _ in range(num_traversals)
    ]
    while traversals:
      traversals = self._pass_decisions(player, strategies, traversals, decisions)
    for decision in reversed(decisions):
      value = float(decision.strategy @ decision.values)
      _hand_value(decisions, decision.receiver, value)
    generator = np.random.default_rng(self._counters.tolist())
    reservoir.add(self._rows(decisions, weight), self._capacity, generator)
    return reservoir.rows()

  def _rows(self, decisions: Sequence[_Decision], weight: float) -> Rows:
    """Returns the advantages at decisions as training data."""
    count, actions = len(decisions), self._num_outputs
    targets = [
      np.where(decision.mask, decision.values - decision.strategy @ decision.values, 0.0)
      for decision in decisions
    ]
    features = np.array([decision.features for decision in decisions], np.float32)
    return Rows(
      features.reshape(count, self._encoder.size),
      np.array(targets, np.float32).reshape(count, actions),
      np.array([decision.mask for decision in decisions], bool).reshape(count, actions),
      np.full(count, weight),
    )

  def _pass_decisions(
    self,
    player: int,
    strategies: Strategies,
    traversals: list[_Traversal],
    decisions: list[_Decision],
  ) -> list[_Traversal]:
    """Takes every traversal past its next decision; returns those that are not over.

    Args:
      player: the updating player, whose decisions are appended to `decisions`.
      strategies: the current strategies.
      traversals: the traversals.
      decisions: the decisions of the updating player so far.
    """
    result: list[_Traversal] = []
    for mover, waiting in enumerate(self._at_decisions(player, traversals, decisions)):
      if not waiting:
        continue
      features = np.stack([self._encoder(traversal.state, mover) for traversal, _ in waiting])
      mask = np.zeros((len(waiting), self._num_outputs), bool)
      for row, (_, legal) in zip(mask, waiting, strict=True):
        row[legal] = True
      probabilities = strategies(mover, features, mask)
      draws = np.empty(len(waiting))
      fill_uniform(self._counters, draws)
      if mover != player:
        for i, (traversal, _) in enumerate(waiting):
          # The value of the sampled action is the estimate, so the decision above receives it.
          self._view.apply(traversal.state, self._pick(probabilities[i], draws[i]))
          result.append(traversal)
        continue
      explored = self._explored(mask, probabilities)
      for i, ((state, receiver), legal) in enumerate(waiting):
        values = np.zeros(self._num_outputs)
        decision = len(decisions)
        decisions.append(
          _Decision(receiver, features[i], mask[i], probabilities[i], explored[i], values)
        )
        explores_all = self._sampler.updating_rule == Rule.EVERY_ACTION
        actions = legal if explores_all else [self._pick(explored[i], draws[i])]
        for action in actions[:-1]:
          result.append(_Traversal(self._view.child(state, action), (decision, action)))
        self._view.apply(state, actions[-1])
        result.append(_Traversal(state, (decision, actions[-1])))
    return result

  def _at_decisions(
    self, player: int, traversals: list[_Traversal], decisions: list[_Decision]
  ) -> list[list[tuple[_Traversal, list[int]]]]:
    """Samples chance up to the next decision of each traversal.

    A traversal that is over hands its value, the return of `player`, to a decision in `decisions`.

    Returns:
      For each player, the traversals at its decisions, and the legal actions there.
    """
    waiting: list[list[tuple[_Traversal, list[int]]]]
    waiting = [[] for _ in range(self._view.num_players)]
    for traversal in traversals:
      state = traversal.state
      mover = self._to_decision(state)
      if mover == checked_calls.TERMINAL:
        returns = self._view.returns(state)
        self._check_returns(state, returns)
        _hand_value(decisions, traversal.receiver, float(returns[player]))
      else:
        waiting[mover].append((traversal, self._view.legal_actions(state)))
    return waiting

  def _pick(self, probabilities: Any, uniform: float) -> int:
    """Returns the action that a uniform random number selects."""
    return pick(probabilities, 0, self._num_outputs, uniform)

  def _explored(self, mask: Bools, strategies: Float64s) -> Float64s:
    """Returns the probabilities with which the updating player's actions are explored, shape (states, actions)."""
    if self._sampler.updating_rule == Rule.EVERY_ACTION:
      return mask.astype(np.float64)
    epsilon, uniform = self._sampler.epsilon, mask / mask.sum(axis=1, keepdims=True)
    result: Float64s = epsilon * uniform + (1.0 - epsilon) * strategies
    return result

  def _to_decision(self, state: Any) -> int:
    """Samples chance until a player is to move or the game is over. Counts the states, and returns the mover."""
    self._counters[VISITED] += np.uint64(1)
    draw = np.empty(1)
    while (mover := self._view.mover(state)) == checked_calls.CHANCE:
      outcomes = self._view.chance_outcomes(state)
      fill_uniform(self._counters, draw)
      probabilities = [probability for _, probability in outcomes]
      outcome = pick(probabilities, 0, len(probabilities), float(draw[0]))
      self._view.apply(state, outcomes[outcome][0])
      self._counters[VISITED] += np.uint64(1)
    return mover


def _hand_value(decisions: list[_Decision], receiver: _Receiver, value: float) -> None:
  """Writes the estimate v(h, a) of the receiver, given the value of the history after action a."""
  decision, action = receiver
  if decision >= 0:
    decisions[decision].values[action] = value / decisions[decision].explored[action]


def padded(rows: Array, fewest: int = 64) -> Array:
  """Returns rows with rows of zeros appended, up to `fewest` times a power of two, so that JAX compiles few shapes."""
  count = fewest
  while count < len(rows):
    count *= 2
  result = np.zeros((count, *rows.shape[1:]), rows.dtype)
  result[: len(rows)] = rows
  return result
