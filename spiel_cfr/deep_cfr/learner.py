"""The networks of all players: their parameters as arrays, fits to samples, and answers."""

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Uint64s
from spiel_cfr.deep_cfr.network import Approximator, Array, Rows, Training
from spiel_cfr.games.openspiel.infoset_features import Float32s
from spiel_cfr.mccfr.random_draws import KEY


class Learner:
  """Some networks a player, all of one kind.

  Attributes:
    parameters: shape (players, networks, parameters).
    scales: what outputs are multiplied by, because networks learn best what is about 1; 0 before the first fit, so that
      a player who knows nothing has no advantages. Shape (players, networks).
    num_outputs: how many actions the game has.
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
    """Makes new networks; the key in `counters` decides about everything random."""
    self.num_outputs = num_outputs
    self._network, self._training, self._counters = network, training, counters
    self._num_features = num_features
    self.scales = np.zeros((num_players, num_networks))
    every = [
      self._fresh(0, player, number)
      for player in range(num_players)
      for number in range(num_networks)
    ]
    self.parameters = np.array(every).reshape(num_players, num_networks, -1)

  def fit(self, player: int, number: int, rows: Rows, iteration: int, anew: bool = False) -> None:
    """Fits a network to rows, from where it is or `anew`; raises NotFiniteError where its parameters are no numbers."""
    start = self._fresh(iteration, player, number) if anew else self.parameters[player, number]
    scale = _scale(rows) if self._network.wants_scaling else 1.0
    training = self._training._replace(seed=self._seed(iteration, player, number))
    fitted = self._network.fitted(start, rows._replace(targets=rows.targets / scale), training)
    if not np.isfinite(fitted).all():
      raise errors.NotFiniteError(
        f"A network's parameters have become NaN or infinite in iteration {iteration:,}: take a smaller learning_rate."
      )
    self.parameters[player, number], self.scales[player, number] = fitted, scale

  def outputs(self, player: int, number: int, features: Float32s) -> Float64s:
    """Returns what a network says, shape (rows, actions)."""
    found = self._network.outputs(self.parameters[player, number], features, self.num_outputs)
    result: Float64s = self.scales[player, number] * found
    return result

  def _fresh(self, iteration: int, player: int, number: int) -> Array:
    seed = self._seed(iteration, player, number)
    return self._network.fresh(seed, self._num_features, self.num_outputs)

  def _seed(self, iteration: int, player: int, number: int) -> tuple[int, int]:
    """Returns the seed of a network and of what its fit draws: two numbers of 32 bits."""
    sequence = np.random.SeedSequence([int(self._counters[KEY]), iteration, player, number])
    high, low = sequence.generate_state(2).tolist()
    return high, low


def _scale(rows: Rows) -> float:
  """Returns the root of the mean square of the targets, 1 where they are all 0."""
  counted = rows.weights[:, None] * rows.mask
  return float(np.sqrt((counted * rows.targets**2).sum() / max(counted.sum(), 1e-300))) or 1.0
