"""Networks that learn leaf values from solved public states.

The inputs are both ranges and features of the public state. By default, the features are the means of both players'
information state tensors over the histories of the public state. The outputs are the expected payoffs of private
states: counterfactual values divided by counterfactual reach probabilities. The outputs are shifted so that the two
players' payoffs sum to 0 (DeepStack, Moravčík et al. 2017).
"""

import math
import weakref
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.deep_cfr.network import MLP, Approximator, Array, Rows, Training
from spiel_cfr.games.openspiel.infoset_features import information_state_tensor
from spiel_cfr.search.trees.search_tree import PublicState, SearchTree

# A function of a public state that returns an array of numbers, of one size at all public states.
PublicFeatures: TypeAlias = Callable[[PublicState], npt.ArrayLike]

# The part of the examples that measures the error of the network and is not used for training.
_MEASURED = 0.1
_LEARNING_RATE, _BATCH_SIZE = 1e-3, 256


class Examples(NamedTuple):
  """Solved public states, as training data.

  Attributes:
    public_states: list of `PublicState`. The public state of each example.
    ranges: float64 (examples, 2, private states). Both players' ranges, 0 beyond the last private state.
    values: float64 (examples, 2, private states). The counterfactual values of the private states.
  """

  public_states: Sequence[PublicState]
  ranges: Float64s
  values: Float64s


class _EncodedStates(NamedTuple):
  """Public states as arrays that do not depend on ranges.

  Attributes:
    features: float32 (public states, features). The features of the public states.
    chances: float64 (public states, width, width). Chance's probability of each pair of private states.
  """

  features: Array
  chances: Float64s

  def reach(self, ranges: Float64s) -> Float64s:
    """Returns the probability that chance and the other player lead to each private state.

    Args:
      ranges: float64 (public states, 2, width). Both players' ranges.

    Returns:
      float64 (public states, 2, width).
    """
    first = np.einsum("nij,nj->ni", self.chances, ranges[:, 1])
    second = np.einsum("nij,ni->nj", self.chances, ranges[:, 0])
    return np.stack([first, second], axis=1)


def _mean_tensors(state: PublicState) -> Array:
  """Returns the means of both players' information state tensors over the histories of a public state.

  Raises:
    UnsupportedGameError: the game has no information state tensors.
  """
  histories = list(state.states())
  game = histories[0].get_game()
  if not game.get_type().provides_information_state_tensor:
    raise errors.UnsupportedGameError(
      f"{game} has no information state tensors, from which networks learn values: give learn_values features of your "
      "own."
    )
  means = [
    np.mean([information_state_tensor(history, player) for history in histories], axis=0)
    for player in (0, 1)
  ]
  return np.concatenate(means)


class _PublicStateEncoder:
  """Conversion of public states to arrays; each public state is converted once.

  Attributes:
    width: int. The largest number of private states of a player.
    features: `PublicFeatures`. The features of a public state.
  """

  def __init__(self, width: int, features: PublicFeatures) -> None:
    self.width, self.features = width, features
    # The number of features; None before the first public state.
    self._num_features: int | None = None
    self._converted = weakref.WeakKeyDictionary[SearchTree, dict[int, tuple[Array, Float64s]]]()
    self._latest: tuple[Sequence[PublicState], _EncodedStates] | None = None

  def __call__(self, states: Sequence[PublicState]) -> _EncodedStates:
    """Returns the arrays of public states.

    Raises:
      ArgumentError: a public state has more private states than any example, or wrong features.
      UnsupportedGameError: see `_mean_tensors`.
    """
    # A lookahead passes the same tuple in each iteration.
    if self._latest is None or self._latest[0] is not states or not isinstance(states, tuple):
      converted = [
        self._converted.setdefault(state.tree, {}).get(state.index) or self._convert(state)
        for state in states
      ]
      features, chances = zip(*converted, strict=True)
      self._latest = states, _EncodedStates(np.array(features), np.array(chances))
    return self._latest[1]

  def _convert(self, state: PublicState) -> tuple[Array, Float64s]:
    first, second, chance = state.tree.pairs(state.index)
    most = 1 + int(max(first.max(), second.max()))
    if most > self.width:
      raise errors.ArgumentError(
        f"{state!r} has {most} private states, and no example had more than {self.width}: give learn_values examples "
        "of this game."
      )
    chances = np.zeros((self.width, self.width))
    np.add.at(chances, (first, second), chance)
    result = self._features_of(state), chances
    self._converted[state.tree][state.index] = result
    return result

  def _features_of(self, state: PublicState) -> Array:
    """Returns the features of a public state; raises ArgumentError if they are not finite, or too many or too few."""
    given = self.features(state)
    try:
      result = np.asarray(given, np.float32).ravel()
      is_right = np.isfinite(result).all() and len(result) == (self._num_features or len(result))
    except (TypeError, ValueError):
      is_right = False
    if not is_right:
      raise errors.ArgumentError(
        "features must return finite numbers, equally many at each public state, not "
        f"{arguments.shortened(given)} at {state!r}."
      )
    self._num_features = len(result)
    return result

  def __reduce__(self) -> tuple[type["_PublicStateEncoder"], tuple[int, PublicFeatures]]:
    """Leaves the converted public states out of pickles and copies."""
    return _PublicStateEncoder, (self.width, self.features)


class ValueNetwork:
  """Leaf values by a network, as a function of public states and ranges; `learn_values` makes one.

  Attributes:
    error: float. The root mean square error of the expected payoffs of private states, in the game's units, on examples
      that were not used for training.
  """

  @typed
  def __init__(
    self,
    encoder: _PublicStateEncoder,
    network: Approximator,
    parameters: Array,
    scale: float,
    error: float,
  ) -> None:
    self.error = arguments.real_number(error, "error", 0.0, math.inf)
    self._scale = arguments.real_number(scale, "scale", 0.0, math.inf)
    self._encoder, self._network, self._parameters = encoder, network, parameters

  def __call__(self, public_states: Sequence[PublicState], ranges: Float64s) -> Float64s:
    """Returns counterfactual values of private states, see `LeafValues`."""
    width = self._encoder.width
    encoded = self._encoder(public_states)
    resized = _resized(ranges, width)
    reach = encoded.reach(resized)
    outputs = self._network.outputs(self._parameters, _inputs(encoded, resized), 2 * width)
    values = reach * self._scale * outputs.reshape(resized.shape)
    # Shift the values so that the players' payoffs sum to 0.
    total = (resized[:, 0] * reach[:, 0]).sum(axis=1)
    surplus = (resized * values).sum(axis=(1, 2)) / np.where(total > 0, 2 * total, 1.0)
    return _resized(values - surplus[:, None, None] * reach, ranges.shape[2])


@typed
def learn_values(
  examples: Sequence[Examples],
  *,
  network: Approximator | ValueNetwork | None = None,
  features: PublicFeatures | None = None,
  steps: int = 10_000,
  seed: int = 0,
) -> ValueNetwork:
  """Trains a network on values of public states.

  Args:
    examples: results of `self_play`.
    network: an approximator, `deep_cfr.MLP((128, 128))` by default; or a `ValueNetwork`, whose training continues,
      with its features.
    features: a function of a `PublicState` that returns an array, by which the network tells public states apart. By
      default, the means of the information state tensors. These tell all earlier moves, but only those matter that
      change the rest of the game: fewer features make faster learning.
    steps: the number of training steps.
    seed: the seed of the first parameters, of the training, and of the choice of examples that measure the error.

  Raises:
    MissingPackageError: JAX and optax are not installed.
    UnsupportedGameError: the game has no information state tensors, and there are no other features.
    ArgumentError: a number is not a positive integer, or there are no examples.
  """
  arguments.positive_integer(steps, "steps")
  seed = arguments.integer(seed, "seed", 0, 0xFFFF_FFFF)
  for each in examples:
    arguments.of_type(each, "examples[...]", Examples)
  states = [state for each in examples for state in each.public_states]
  if not states:
    raise errors.ArgumentError("examples must contain at least one public state.")
  width = max(each.ranges.shape[2] for each in examples)
  learned = network if isinstance(network, ValueNetwork) else None
  encoder = learned._encoder if learned else _PublicStateEncoder(width, features or _mean_tensors)
  ranges, values = (
    np.concatenate([_resized(array, encoder.width) for array in arrays])
    for arrays in zip(*((each.ranges, each.values) for each in examples), strict=True)
  )
  encoded = encoder(states)
  inputs, reach = _inputs(encoded, ranges), encoded.reach(ranges)
  targets = np.divide(values, reach, out=np.zeros_like(values), where=reach > 0)
  targets, counts = targets.reshape(len(targets), -1), (reach > 0).reshape(len(targets), -1)
  if learned is None:
    approximator = network if isinstance(network, Approximator) else MLP((128, 128))
    parameters = approximator.fresh((seed, 0), inputs.shape[1], targets.shape[1])
    scale = float(np.sqrt((targets[counts] ** 2).mean())) if counts.any() else 1.0
  else:
    approximator, parameters, scale = learned._network, learned._parameters, learned._scale
  scale = scale or 1.0
  order = np.random.default_rng(seed).permutation(len(states))
  measured, rest = np.split(order, [max(1, int(_MEASURED * len(order)))])
  rows = Rows(inputs[rest], targets[rest] / scale, counts[rest], np.ones(len(rest)))
  fit = Training(steps, _LEARNING_RATE, min(_BATCH_SIZE, len(rest)), (seed, 1))
  fitted = approximator.fitted(parameters, rows, fit)
  result = ValueNetwork(encoder, approximator, fitted, scale, 0.0)
  predicted = result([states[index] for index in measured], ranges[measured])
  result.error = _payoff_error(predicted - values[measured], reach[measured])
  return result


def _payoff_error(value_errors: Float64s, reach: Float64s) -> float:
  """Returns the root mean square error of expected payoffs, given those of counterfactual values; 0 without any."""
  is_reached = reach > 0
  payoff_errors = value_errors[is_reached] / reach[is_reached]
  return float(np.sqrt((payoff_errors**2).mean())) if len(payoff_errors) else 0.0


def _inputs(encoded: _EncodedStates, ranges: Float64s) -> Array:
  """Returns the inputs of a network: features, and each player's range, normalized to sum 1."""
  totals = ranges.sum(axis=2, keepdims=True)
  likely = ranges / np.where(totals > 0, totals, 1.0)
  return np.concatenate(
    [encoded.features, likely.reshape(len(likely), -1).astype(np.float32)], axis=1
  )


def _resized(numbers: Float64s, width: int) -> Float64s:
  """Returns an array over public states, players and private states with `width` columns of private states."""
  result = np.zeros((*numbers.shape[:2], width))
  common = min(width, numbers.shape[2])
  result[:, :, :common] = numbers[:, :, :common]
  return result
