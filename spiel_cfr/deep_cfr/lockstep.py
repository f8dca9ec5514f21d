"""Samples games too large to compile: many traversals go through OpenSpiel's states in lock step.

In every step all traversals together ask the networks once, which answer for hundreds of states about as fast as for
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

# (player, features, mask) -> probabilities of actions; all but the player have a row a state.
Strategies = Callable[[int, Float32s, Bools], Float64s]
# A state, and where its value goes: the place of the decision above, -1 for none, and the action there.
_Waiting = tuple[Any, tuple[int, int]]


@dataclasses.dataclass
class SampledMemory:
  """Samples and past networks of a solver on states.

  Attributes:
    past_parameters: of all players' networks after each iteration, shape (iterations, players, networks, parameters).
    past_scales: what their outputs are multiplied by, shape (iterations, players, networks).
    advantages: a reservoir of samples per player.
  """

  advantages: tuple[Reservoir, ...]
  past_parameters: Array = dataclasses.field(metadata=GROWING)
  past_scales: Float64s = dataclasses.field(metadata=GROWING)


class _Decision(NamedTuple):
  """A decision of the player who learns: the one `above`, see `_Waiting`, what is known of it, and values v(h, a)."""

  above: tuple[int, int]
  features: Float32s
  mask: Bools
  strategy: Float64s
  explored: Float64s
  values: Float64s


class LockStep:
  """Samples a game through OpenSpiel's states, into reservoirs.

  Attributes:
    memory: what is remembered.
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
    """Begins with empty reservoirs of this capacity; raises FeaturesError where features are one-hot."""
    if not encoder.size:
      raise errors.FeaturesError(
        'features="one_hot" number the infosets of a compiled game, and this one is sampled through its states: take '
        '"tensor" or a function.'
      )
    self._view, self._encoder, self._sampler = view, encoder, sampler
    self._counters, self._capacity, self._check = counters, capacity, ReturnsCheck(view)
    self._num_outputs = int(view.game.num_distinct_actions())
    advantages = tuple(
      Reservoir.empty(capacity, encoder.size, self._num_outputs) for _ in range(view.num_players)
    )
    self.memory = SampledMemory(advantages, learner.parameters[None][:0], learner.scales[None][:0])

  def remember(self, learner: Learner) -> None:
    """Keeps the networks of an iteration."""
    memory = self.memory
    memory.past_parameters = np.concatenate([memory.past_parameters, learner.parameters[None]])
    memory.past_scales = np.concatenate([memory.past_scales, learner.scales[None]])

  def sample(
    self, player: int, num_traversals: int, weight: float, forgets: bool, strategies: Strategies
  ) -> Rows:
    """Runs traversals for a player, and adds their samples to its reservoir; returns what that holds.

    If it `forgets`, the reservoir is empty before. `strategies` must stay what they are. For errors see `ReturnsCheck`.
    """
    reservoir = self.memory.advantages[player]
    if forgets:
      reservoir.clear()
    own: list[_Decision] = []
    front: list[_Waiting] = [
      (self._view.new_initial_state(), (-1, 0)) for _ in range(num_traversals)
    ]
    while front:
      front = self._decide(player, strategies, front, own)
    for decision in reversed(own):
      _pass_up(own, decision.above, float(decision.strategy @ decision.values))
    targets = [np.where(each.mask, each.values - each.strategy @ each.values, 0.0) for each in own]
    generator = np.random.default_rng(self._counters.tolist())
    reservoir.add(self._rows(own, targets, weight), self._capacity, generator)
    return reservoir.rows()

  def _rows(self, own: Sequence[_Decision], targets: Sequence[Float64s], weight: float) -> Rows:
    count = len(own)
    return Rows(
      np.array([each.features for each in own], np.float32).reshape(count, self._encoder.size),
      np.array(targets, np.float32).reshape(count, self._num_outputs),
      np.array([each.mask for each in own], bool).reshape(count, self._num_outputs),
      np.full(count, weight),
    )

  def _decide(
    self, player: int, strategies: Strategies, front: list[_Waiting], own: list[_Decision]
  ) -> list[_Waiting]:
    """Takes every traversal past its next decision; returns where they then are."""
    waiting: list[list[tuple[Any, tuple[int, int], list[int]]]]
    waiting = [[] for _ in range(self._view.num_players)]
    for state, above in front:
      mover = self._to_decision(state)
      if mover == answers.TERMINAL:
        returns = self._view.returns(state)
        self._check(state, returns)
        _pass_up(own, above, float(returns[player]))
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
          # The value of what is drawn is the estimate.
          self._view.apply(state, pick(chances[place], 0, self._num_outputs, draws[place]))
          result.append((state, above))
          continue
        here = len(own)
        seen = features[place], mask[place], chances[place], explored[place]
        own.append(_Decision(above, *seen, np.zeros(self._num_outputs)))
        actions = legal
        if self._sampler.own != Rule.EVERY_ACTION:
          actions = [pick(explored[place], 0, self._num_outputs, draws[place])]
        result += [(self._view.child(state, action), (here, action)) for action in actions[:-1]]
        self._view.apply(state, actions[-1])
        result.append((state, (here, actions[-1])))
    return result

  def _explored(self, mask: Bools, chances: Float64s) -> Float64s:
    """Returns the probabilities that actions of the player who learns are explored."""
    if self._sampler.own == Rule.EVERY_ACTION:
      return mask.astype(np.float64)
    epsilon, uniform = self._sampler.epsilon, mask / mask.sum(axis=1, keepdims=True)
    result: Float64s = epsilon * uniform + (1.0 - epsilon) * chances
    return result

  def _to_decision(self, state: Any) -> int:
    """Draws what chance does until a player is to move or the game is over; returns the mover, counts the states."""
    self._counters[VISITED] += np.uint64(1)
    draw = np.empty(1)
    while (mover := self._view.mover(state)) == answers.CHANCE:
      outcomes = self._view.chance_outcomes(state)
      fill_uniform(self._counters, draw)
      chances = [probability for _, probability in outcomes]
      self._view.apply(state, outcomes[pick(chances, 0, len(chances), float(draw[0]))][0])
      self._counters[VISITED] += np.uint64(1)
    return mover


def _pass_up(own: list[_Decision], above: tuple[int, int], value: float) -> None:
  """Enters the value of an explored action at the decision above, as `mccfr.traversal` has it."""
  place, action = above
  if place >= 0:
    own[place].values[action] = value / own[place].explored[action]


def padded(rows: Array, fewest: int = 64) -> Array:
  """Returns rows with zeros added up to a power of two of them, so that few shapes are compiled."""
  count = fewest
  while count < len(rows):
    count *= 2
  result = np.zeros((count, *rows.shape[1:]), rows.dtype)
  result[: len(rows)] = rows
  return result
