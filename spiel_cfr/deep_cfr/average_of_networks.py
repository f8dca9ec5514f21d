"""Average policy of Deep CFR on states: the exact average of the strategies of all iterations' networks."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from open_spiel.python import policy as open_spiel_policy

from spiel_cfr._numba.arrays import Bools, Float64s, Int64s
from spiel_cfr.deep_cfr.features import Encoder
from spiel_cfr.deep_cfr.lockstep import padded
from spiel_cfr.deep_cfr.network import Approximator, Array
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.infoset_features import Float32s
from spiel_cfr.policies.tabular_policy import player_to_move

# Regret matching, a function (outputs, mask, iterations) -> strategies. The outputs have the shape (networks,
# iterations, rows, actions), the strategies (iterations, rows, actions).
Play = Callable[[Float64s, Bools, Int64s], Float64s]
# The most infosets whose strategies are cached; evaluating the networks at one takes a millisecond.
_MOST_CACHED = 1 << 16


class AveragePolicy(open_spiel_policy.Policy):  # type: ignore[misc]
  """Average of the strategies of several iterations' networks, weighted by the player's reach.

  At an infoset I of player i, with sigma_k the strategy of iteration k and w_k the weight of the iteration,

      average(a | I) = sum_k w_k pi_k(I) sigma_k(a | I) / sum_k w_k pi_k(I),

  where pi_k(I) is the product of the probabilities sigma_k of player i's actions on the way to I (Steinberger 2019,
  "Single Deep Counterfactual Regret Minimization"). If all pi_k(I) are 0, the average is uniform. The average of a
  single iteration is its strategy.
  """

  def __init__(
    self,
    view: GameView,
    encoder: Encoder,
    network: Approximator,
    parameters: Array,
    scales: Float64s,
    weights: Float64s,
    iterations: Int64s,
    play: Play,
  ) -> None:
    """Makes the policy.

    Args:
      view: the game.
      encoder: the features of states.
      network: the approximator of all networks.
      parameters: shape (iterations, players, networks, parameters). The parameters of all networks.
      scales: shape (iterations, players, networks). The factors on the networks' outputs.
      weights: shape (iterations,). The averaging weights of the iterations.
      iterations: shape (iterations,). The numbers of the iterations.
      play: regret matching on the scaled outputs.
    """
    super().__init__(view.open_spiel_game(), list(range(view.num_players)))
    self._view, self._encoder, self._network, self._play = view, encoder, network, play
    self._num_actions = int(view.game.num_distinct_actions())
    self._weights, self._iterations = weights, iterations[:, None, None]
    self._scales = scales.copy()
    # For each player and network, the parameters in all iterations, padded to a power of two of iterations.
    self._parameters = [
      [padded(stack, 8) for stack in np.moveaxis(player_parameters, 1, 0)]
      for player_parameters in np.moveaxis(parameters, 1, 0)
    ]
    self._cached: dict[tuple[int, str], dict[int, float]] = {}

  def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
    """Returns action -> probability; raises PolicyError if `player_id` is not to move."""
    player = player_to_move(state, player_id)
    state = self._view.own_state(state, player)
    infoset = player, self._view.infostate(state)
    if infoset not in self._cached:
      if len(self._cached) >= _MOST_CACHED:
        self._cached.clear()
      self._cached[infoset] = self._average(state, player, self._view.legal_actions(state))
    return dict(self._cached[infoset])

  def _average(self, state: Any, player: int, legal: Sequence[int]) -> dict[int, float]:
    """Returns action -> probability at a state."""
    weights = self._weights
    uniform = dict.fromkeys(legal, 1.0 / len(legal))
    if len(legal) == 1 or not weights.sum() > 0:
      return uniform
    features, mask, actions = self._decisions(state, player)
    strategies = self._strategies(player, features, mask)
    if len(weights) == 1:
      return {action: float(strategies[0, -1, action]) for action in legal}
    reach = weights * np.prod(strategies[:, np.arange(len(actions)), actions], axis=1)
    total = reach.sum()
    if not total > 0:
      return uniform
    average = reach @ strategies[:, -1] / total
    return {action: float(average[action]) for action in legal}

  def _decisions(self, state: Any, player: int) -> tuple[Float32s, Bools, list[int]]:
    """Returns the player's decisions from the start of the game to a state, and the actions taken at all but the last.

    Returns:
      features: float32 (decisions, features).
      mask: bool (decisions, actions). True for legal actions.
      actions: the action at each decision before the state.
    """
    inputs, actions = [], []
    ancestor = self._view.new_initial_state()
    for action in state.history():
      if ancestor.current_player() == player:
        inputs.append(self._input(ancestor, player))
        actions.append(action)
      ancestor.apply_action(action)
    inputs.append(self._input(state, player))
    features, mask = (np.stack(rows) for rows in zip(*inputs, strict=True))
    return features, mask, actions

  def _input(self, state: Any, player: int) -> tuple[Float32s, Bools]:
    """Returns the features of a state, shape (features,), and the mask of its legal actions, shape (actions,)."""
    mask = np.zeros(self._num_actions, bool)
    mask[self._view.legal_actions(state)] = True
    return self._encoder(state, player), mask

  def _strategies(self, player: int, features: Float32s, mask: Bools) -> Float64s:
    """Returns the player's strategy after each iteration, shape (iterations, rows, actions)."""
    num_iterations, padded_features = len(self._weights), padded(features, 8)
    outputs = []
    for number, stack in enumerate(self._parameters[player]):
      unscaled = self._network.outputs_of_all(stack, padded_features, self._num_actions)
      scales = self._scales[:, player, number, None, None]
      outputs.append(scales * unscaled[:num_iterations, : len(features)])
    return self._play(np.array(outputs), mask, self._iterations)
