"""Policies that ask networks, for games in which nobody can list the infosets."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from open_spiel.python import policy as open_spiel_policy

from spiel_cfr._numba.arrays import Bools, Float64s, Int64s
from spiel_cfr.deep_cfr.exact_memory import softmax
from spiel_cfr.deep_cfr.features import Encoder, Float32s
from spiel_cfr.deep_cfr.lockstep import padded
from spiel_cfr.deep_cfr.network import Approximator, Array
from spiel_cfr.deep_cfr.past_policies import Past
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.policies import open_spiel

# (outputs, mask, iterations) -> probabilities; what many networks say of rows, (networks, many, rows, actions).
Play = Callable[[Float64s, Bools, Int64s], Float64s]
# How many answers are remembered: asking networks takes a millisecond.
_MOST_KNOWN = 1 << 16


class _AskingPolicy(open_spiel_policy.Policy):  # type: ignore[misc]
  """A policy of a game's view, whose features an encoder makes."""

  def __init__(self, view: GameView, encoder: Encoder) -> None:
    super().__init__(view.open_spiel_game(), list(range(view.num_players)))
    self._view, self._encoder = view, encoder
    self._num_actions = int(view.game.num_distinct_actions())

  def _asked(self, state: Any, player_id: int | None) -> tuple[int, Any, list[int]]:
    """Returns who moves, the view's own state, and the legal actions.

    Raises:
      PolicyError: no player is to move, or another one is.
    """
    player = open_spiel.player_to_move(state, player_id)
    state = self._view.own_state(state, player)
    return player, state, self._view.legal_actions(state)

  def _seen(self, state: Any, player: int, legal: Sequence[int]) -> tuple[Float32s, Bools]:
    mask = np.zeros(self._num_actions, bool)
    mask[list(legal)] = True
    return self._encoder(state, player), mask


class NetworkPolicy(_AskingPolicy):
  """What one network a player says: its softmax."""

  def __init__(
    self, view: GameView, encoder: Encoder, network: Approximator, parameters: Sequence[Array]
  ) -> None:
    """Keeps its arguments; `parameters` has those of each player's network."""
    super().__init__(view, encoder)
    self._network, self._parameters = network, list(parameters)

  def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
    """Returns action -> probability.

    Raises:
      PolicyError: no player is to move, or another one is.
    """
    player, state, legal = self._asked(state, player_id)
    features, mask = self._seen(state, player, legal)
    logits = self._network.outputs(self._parameters[player], features[None], self._num_actions)
    chances = softmax(logits, mask[None])[0]
    return {action: float(chances[action]) for action in legal}


class AveragePolicy(_AskingPolicy):
  """The exact average of the strategies of many networks, weighted by own reach, at any state.

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
    past: Sequence[Past],
    play: Play,
  ) -> None:
    """Notes what it is made of.

    Args:
      view: the game.
      encoder: what networks see.
      network: of what kind they are.
      past: each player's.
      play: turns what they say into strategies.
    """
    super().__init__(view, encoder)
    self._network, self._play = network, play
    self._weights = [own.weights for own in past]
    self._iterations = [own.iterations[:, None, None] for own in past]
    self._scales = [own.scales for own in past]
    # Numbers of networks first, and as many iterations as a power of two.
    self._parameters = [
      [padded(stack, 8) for stack in np.moveaxis(own.parameters, 1, 0)] for own in past
    ]
    self._known: dict[tuple[int, str], dict[int, float]] = {}

  def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
    """Returns action -> probability.

    Raises:
      PolicyError: no player is to move, or another one is.
    """
    player, state, legal = self._asked(state, player_id)
    name = player, self._view.infostate(state)
    if name not in self._known:
      if len(self._known) >= _MOST_KNOWN:
        self._known.clear()
      self._known[name] = self._average(state, player, legal)
    return dict(self._known[name])

  def _average(self, state: Any, player: int, legal: Sequence[int]) -> dict[int, float]:
    weights = self._weights[player]
    uniform = dict.fromkeys(legal, 1.0 / len(legal))
    if len(legal) == 1 or not weights.sum() > 0:
      return uniform
    seen, actions = [], []
    above = self._view.new_initial_state()
    for action in state.history():
      if above.current_player() == player:
        seen.append(self._seen(above, player, self._view.legal_actions(above)))
        actions.append(action)
      above.apply_action(action)
    seen.append(self._seen(state, player, legal))
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

  def _strategies(self, player: int, features: Float32s, mask: Bools) -> Float64s:
    """Returns what each of the player's networks plays, shape (many, rows, actions)."""
    many, rows = len(self._weights[player]), padded(features, 8)
    outputs = []
    for number, stack in enumerate(self._parameters[player]):
      found = self._network.outputs_of_all(stack, rows, self._num_actions)
      scales = self._scales[player][:, number, None, None]
      outputs.append(scales * found[:many, : len(features)])
    return self._play(np.array(outputs), mask, self._iterations[player])
