"""The exact average of many networks' strategies, for games with too many infosets to list."""

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

# (outputs, mask, iterations) -> probabilities; what many networks say of rows, (networks, many, rows, actions).
Play = Callable[[Float64s, Bools, Int64s], Float64s]
# How many answers are remembered: asking networks takes a millisecond.
_MOST_KNOWN = 1 << 16


class AveragePolicy(open_spiel_policy.Policy):  # type: ignore[misc]
  """The average of the strategies of networks after some iterations, weighted by own reach, at any state.

  At an infoset I of player i, with sigma_k the strategy that network k plays and w_k its weight,

      average(a | I) = sum_k w_k pi_k(I) sigma_k(a | I) / sum_k w_k pi_k(I),

  where pi_k(I) is the product of sigma_k over i's own actions on the way to I (Steinberger 2019, "Single Deep
  Counterfactual Regret Minimization"). Where no network plays to, it is uniform; of one network
  alone, it is what that plays.
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
    """Takes networks of one kind after some iterations, by their numbers, and what each of these weighs.

    `parameters` is of shape (iterations, players, networks, parameters), `scales`, by which outputs are multiplied, of
    shape (iterations, players, networks), `weights` and `iterations` of shape (iterations,).
    """
    super().__init__(view.open_spiel_game(), list(range(view.num_players)))
    self._view, self._encoder, self._network, self._play = view, encoder, network, play
    self._num_actions = int(view.game.num_distinct_actions())
    self._weights, self._iterations = weights, iterations[:, None, None]
    self._scales = scales.copy()
    # Players and networks first, and as many iterations as a power of two.
    self._parameters = [
      [padded(stack, 8) for stack in np.moveaxis(own, 1, 0)]
      for own in np.moveaxis(parameters, 1, 0)
    ]
    self._known: dict[tuple[int, str], dict[int, float]] = {}

  def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
    """Returns action -> probability; raises PolicyError where no player is to move, or another one is."""
    player = player_to_move(state, player_id)
    state = self._view.own_state(state, player)
    name = player, self._view.infostate(state)
    if name not in self._known:
      if len(self._known) >= _MOST_KNOWN:
        self._known.clear()
      self._known[name] = self._average(state, player, self._view.legal_actions(state))
    return dict(self._known[name])

  def _average(self, state: Any, player: int, legal: Sequence[int]) -> dict[int, float]:
    weights = self._weights
    uniform = dict.fromkeys(legal, 1.0 / len(legal))
    if len(legal) == 1 or not weights.sum() > 0:
      return uniform
    seen, actions = [], []
    above = self._view.new_initial_state()
    for action in state.history():
      if above.current_player() == player:
        seen.append(self._seen(above, player))
        actions.append(action)
      above.apply_action(action)
    seen.append(self._seen(state, player))
    features, mask = (np.stack(parts) for parts in zip(*seen, strict=True))
    chances = self._strategies(player, features, mask)
    if len(weights) == 1:
      return {action: float(chances[0, -1, action]) for action in legal}
    reach = weights * np.prod(chances[:, np.arange(len(actions)), actions], axis=1)
    total = reach.sum()
    if not total > 0:
      return uniform
    average = reach @ chances[:, -1] / total
    return {action: float(average[action]) for action in legal}

  def _seen(self, state: Any, player: int) -> tuple[Float32s, Bools]:
    mask = np.zeros(self._num_actions, bool)
    mask[self._view.legal_actions(state)] = True
    return self._encoder(state, player), mask

  def _strategies(self, player: int, features: Float32s, mask: Bools) -> Float64s:
    """Returns what the player's networks play after each iteration, shape (iterations, rows, actions)."""
    many, rows = len(self._weights), padded(features, 8)
    outputs = []
    for number, stack in enumerate(self._parameters[player]):
      found = self._network.outputs_of_all(stack, rows, self._num_actions)
      scales = self._scales[:, player, number, None, None]
      outputs.append(scales * found[:many, : len(features)])
    return self._play(np.array(outputs), mask, self._iterations)
