"""Networks of all players: their parameters in one array, their fits to samples, and their outputs."""

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Uint64s
from spiel_cfr.deep_cfr.network import Approximator, Array, Rows, Training
from spiel_cfr.games.openspiel.infoset_features import Float32s
from spiel_cfr.mccfr.random_draws import KEY


class Learner:
  """The networks of all players: one or two for each player, all with the same architecture (`Approximator`).

  Attributes:
    parameters: floats (players, networks, parameters). The parameters of each network.
    scales: float64 (players, networks). The factor by which each network's outputs are multiplied. Targets are
      divided by it, because networks learn best if targets are about 1. Before the first fit it is 0, so all outputs
      are 0.
    num_outputs: int. The number of actions of the game.
  """

  def __init__(
    self,
    network: Approximator,
    training: Training,
    counters: Uint64s,
    num_players: int,
    num_networks: int,
    num_features: int,
    num_outputs: int,
  ) -> None:
    """Makes new networks. The key in `counters` determines all random numbers."""
    self.num_outputs = num_outputs
    self._network, self._training, self._counters = network, training, counters
    self._num_features = num_features
    self.scales = np.zeros((num_players, num_networks))
    parameters = [
      self._fresh(0, player, number)
      for player in range(num_players)
      for number in range(num_networks)
    ]
    self.parameters = np.array(parameters).reshape(num_players, num_networks, -1)

  def fit(self, player: int, number: int, rows: Rows, iteration: int, anew: bool = False) -> None:
    """Fits a network to training data.

    Args:
      player: the player.
      number: the network's number among the player's networks.
      rows: the training data.
      iteration: the iteration, which determines the random numbers of the fit.
      anew: True to start from new random parameters, False to continue from the network's current parameters.

    Raises:
      NotFiniteError: a parameter becomes NaN or infinite.
    """
    start = self._fresh(iteration, player, number) if anew else self.parameters[player, number]
    scale = _scale(rows) if self._network.wants_scaling else 1.0
    training = self._training._replace(seed=self._seed(iteration, player, number))
    fitted = self._network.fitted(start, rows._replace(targets=rows.targets / scale), training)
    if not np.isfinite(fitted).all():
      raise errors.NotFiniteError(
        f"A network's parameters have become NaN or infinite in iteration {iteration:,}: use a smaller learning_rate."
      )
    self.parameters[player, number], self.scales[player, number] = fitted, scale

  def outputs(self, player: int, number: int, features: Float32s) -> Float64s:
    """Returns the outputs of a player's network, times its scale; shape (rows, actions)."""
    outputs = self._network.outputs(self.parameters[player, number], features, self.num_outputs)
    result: Float64s = self.scales[player, number] * outputs
    return result

  def _fresh(self, iteration: int, player: int, number: int) -> Array:
    """Returns new parameters of a network."""
    seed = self._seed(iteration, player, number)
    return self._network.fresh(seed, self._num_features, self.num_outputs)

  def _seed(self, iteration: int, player: int, number: int) -> tuple[int, int]:
    """Returns the seed of a network's new parameters and of its fit: two numbers of 32 bits."""
    sequence = np.random.SeedSequence([int(self._counters[KEY]), iteration, player, number])
    high, low = sequence.generate_state(2).tolist()
    return high, low


def _scale(rows: Rows) -> float:
  """Returns the root of the weighted mean of the squared targets; 1 if all targets are 0."""
  weights = rows.weights[:, None] * rows.mask
  return float(np.sqrt((weights * rows.targets**2).sum() / max(weights.sum(), 1e-300))) or 1.0
