"""Approximators: functions that learn the advantages of actions from the features of an infoset.

An `Approximator` is fitted to rows of features, targets and weights. `LeastSquares` is fitted exactly. A `Network` is a
pair of functions, `init` and `apply`, and is fitted by Adam with JAX and optax. These packages are the optional extra
`jax`; they are imported when a network is made.
"""

import abc
import dataclasses
import functools
import itertools
import types
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from spiel_cfr import errors
from spiel_cfr._util import arguments
from spiel_cfr.cfr.recipes import described

Array = npt.NDArray[Any]
# The fraction of a fit's steps in which the learning rate grows, and the fraction in which it shrinks.
_GROWING, _SHRINKING = 0.15, 0.5


class Rows(NamedTuple):
  """Training data of an approximator.

  Attributes:
    features: float32 (rows, features). The inputs.
    targets: floats (rows, outputs). The outputs to learn.
    mask: bool (rows, outputs). True for the targets that count, those of legal actions.
    weights: float64 (rows,). The weight of each row, at least 0.
  """

  features: Array
  targets: Array
  mask: Array
  weights: Array


class Training(NamedTuple):
  """Training parameters of a network.

  Attributes:
    steps: int. The number of Adam's steps.
    learning_rate: float. The highest learning rate; see `_rate`.
    batch_size: int. The number of rows in a step, drawn with probabilities proportional to their weights. None takes
      all rows.
    seed: pair of int, of 32 bits. The seed of the draws.
  """

  steps: int
  learning_rate: float
  batch_size: int | None
  seed: tuple[int, int]


@described
class Approximator(abc.ABC):
  """Base class of approximators. Their parameters are one flat array, which solvers store.

  Attributes:
    wants_scaling: bool. True if the approximator learns best with targets of about 1.
  """

  wants_scaling: ClassVar[bool] = True

  @abc.abstractmethod
  def fresh(self, seed: tuple[int, int], num_features: int, num_outputs: int) -> Array:
    """Returns new parameters, a flat array of floats."""

  @abc.abstractmethod
  def fitted(self, parameters: Array, rows: Rows, training: Training) -> Array:
    """Returns parameters with a smaller sum of weight * mask * (output - target)^2 over the rows."""

  @abc.abstractmethod
  def outputs(self, parameters: Array, features: Array, num_outputs: int) -> Array:
    """Returns the outputs, float64 of shape (rows, num_outputs)."""

  def outputs_of_all(self, stack: Array, features: Array, num_outputs: int) -> Array:
    """Returns the outputs of many networks, shape (networks, rows, num_outputs), given the parameters of each."""
    return np.stack([self.outputs(parameters, features, num_outputs) for parameters in stack])


@dataclasses.dataclass(frozen=True)
class LeastSquares(Approximator):
  """Linear function of the features, fitted exactly. With one-hot features it is a table."""

  wants_scaling = False

  def fresh(self, seed: tuple[int, int], num_features: int, num_outputs: int) -> Array:
    return np.zeros(num_features * num_outputs)

  def fitted(self, parameters: Array, rows: Rows, training: Training) -> Array:
    """Returns the least-squares solution nearest to the parameters."""
    result = parameters.reshape(-1, rows.targets.shape[1]).copy()
    columns, num_features = _one_hot_columns(rows.features), len(result)
    if columns is not None:
      # The solution is the weighted mean of the targets of each feature.
      for output in range(result.shape[1]):
        weights = rows.weights * rows.mask[:, output]
        sums = np.bincount(columns, weights * rows.targets[:, output], num_features)
        total = np.bincount(columns, weights, num_features)
        np.divide(sums, total, out=result[:, output], where=total > 0)
      return result.ravel()
    for output in range(result.shape[1]):
      weights = np.sqrt(rows.weights * rows.mask[:, output])
      used = weights > 0
      features = rows.features[used].astype(np.float64)
      residuals = rows.targets[used, output] - features @ result[:, output]
      weighted = weights[used, None] * features
      result[:, output] += np.linalg.lstsq(weighted, weights[used] * residuals)[0]
    return result.ravel()

  def outputs(self, parameters: Array, features: Array, num_outputs: int) -> Array:
    columns, table = _one_hot_columns(features), parameters.reshape(-1, num_outputs)
    result: Array = features.astype(np.float64) @ table if columns is None else table[columns]
    return result


def _one_hot_columns(features: Array) -> Array | None:
  """Returns the column of the 1 in each row, shape (rows,), if all rows are one-hot; otherwise None."""
  columns = features.argmax(axis=1)
  ones = features[np.arange(len(columns)), columns]
  is_one_hot = np.count_nonzero(features) == len(columns) and (ones == 1).all()
  return columns if is_one_hot else None


class Network(Approximator):
  """Base class of JAX networks, pairs of functions. To write a network, derive a frozen dataclass from it.

  @dataclasses.dataclass(frozen=True)
  class Linear(Network):
    def init(self, key, num_features, num_outputs):
      return jax.numpy.zeros((num_features, num_outputs))

    def apply(self, parameters, features):
      return features @ parameters
  """

  @abc.abstractmethod
  def init(self, key: Any, num_features: int, num_outputs: int) -> Any:
    """Returns new parameters, a pytree of float32 arrays, given a key of `jax.random`."""

  @abc.abstractmethod
  def apply(self, parameters: Any, features: Any) -> Any:
    """Returns the outputs, shape (rows, outputs), given features of shape (rows, features)."""

  def fresh(self, seed: tuple[int, int], num_features: int, num_outputs: int) -> Array:
    return np.array(compiled(self, num_features, num_outputs).fresh(np.array(seed, np.uint32)))

  def fitted(self, parameters: Array, rows: Rows, training: Training) -> Array:
    """Returns the parameters after the training steps of Adam."""
    functions = compiled(self, rows.features.shape[1], rows.targets.shape[1])
    total = rows.weights.sum()
    if not total > 0:
      return parameters
    steps, rate = training.steps, training.learning_rate
    arrays = rows.features, rows.targets.astype(np.float32), rows.mask.astype(np.float32)
    if training.batch_size is None or training.batch_size >= len(rows.weights):
      weights = (rows.weights / total).astype(np.float32)
      fitted = functions.fit(parameters, *arrays, weights, steps, rate)
    else:
      cumulative = np.cumsum(rows.weights, dtype=np.float64)
      draws = np.random.default_rng(training.seed).random((steps, training.batch_size)) * total
      drawn_rows = np.searchsorted(cumulative, draws, side="right")
      # Rounding can lead beyond the last row with a weight.
      last_row = np.flatnonzero(rows.weights)[-1]
      drawn_rows = np.minimum(drawn_rows, last_row).astype(np.int32)
      fitted = functions.fit_batches(parameters, *arrays, drawn_rows, rate)
    return np.array(fitted)

  def outputs(self, parameters: Array, features: Array, num_outputs: int) -> Array:
    functions = compiled(self, features.shape[1], num_outputs)
    return np.array(functions.outputs(parameters, features), np.float64)

  def outputs_of_all(self, stack: Array, features: Array, num_outputs: int) -> Array:
    functions = compiled(self, features.shape[1], num_outputs)
    return np.array(functions.outputs_of_all(stack, features), np.float64)


@dataclasses.dataclass(frozen=True)
class MLP(Network):
  """Multilayer perceptron with ReLU. The first weights are He's; those of the last layer are 0.

  Attributes:
    layers: tuple of int. The number of units in each hidden layer.
  """

  layers: tuple[int, ...] = (64, 64, 64)

  def __post_init__(self) -> None:
    object.__setattr__(self, "layers", layer_sizes(self.layers, "layers"))

  def init(self, key: Any, num_features: int, num_outputs: int) -> Any:
    """Returns a list of (weights, biases)."""
    jax = libraries().jax
    sizes = [num_features, *self.layers, num_outputs]
    parameters = []
    for layer, (inputs, outputs) in enumerate(itertools.pairwise(sizes)):
      scale = np.sqrt(2.0 / max(inputs, 1)) if layer < len(self.layers) else 0.0
      weights = scale * jax.random.normal(jax.random.fold_in(key, layer), (inputs, outputs))
      parameters.append((weights, jax.numpy.zeros(outputs)))
    return parameters

  def apply(self, parameters: Any, features: Any) -> Any:
    relu = libraries().jax.nn.relu
    # Transposed, because the matrix products of the gradient are then faster on a CPU.
    units = features.T
    for weights, biases in parameters[:-1]:
      units = relu(weights.T @ units + biases[:, None])
    weights, biases = parameters[-1]
    return (weights.T @ units + biases[:, None]).T


def layer_sizes(layers: Any, name: str) -> tuple[int, ...]:
  """Returns the numbers of units as a tuple; raises ArgumentError unless they are positive integers."""
  if isinstance(layers, str | bytes) or not hasattr(layers, "__iter__"):
    raise errors.ArgumentError(
      f"{name} must be a list of positive integers, not {arguments.shortened(layers)}."
    )
  return tuple(arguments.positive_integer(units, name) for units in layers)


@functools.cache
def libraries() -> types.SimpleNamespace:
  """Returns `jax` and `optax`; raises MissingPackageError if they are not installed."""
  try:
    import jax
    import jax.flatten_util
    import optax
  except ImportError as error:
    raise errors.MissingPackageError(
      f"Networks need JAX and optax: pip install 'spiel_cfr[jax]', or pip install 'jax[cpu]' optax. ({error})"
    ) from error
  return types.SimpleNamespace(jax=jax, optax=optax)


class _Functions(NamedTuple):
  """JAX functions of a network, for one number of features and one number of outputs; see `compiled`."""

  fresh: Callable[..., Any]
  fit: Callable[..., Any]
  fit_batches: Callable[..., Any]
  outputs: Callable[..., Any]
  outputs_of_all: Callable[..., Any]


def _rate(number: Any, steps: Any, learning_rate: Any) -> Any:
  """Returns the learning rate of a step: it grows linearly to `learning_rate`, stays there, and falls linearly to 0.

  Adam's first steps have the same length in every direction, whatever the gradient. At the full learning rate they
  would undo much of what the network has learned in earlier iterations.
  """
  jnp = libraries().jax.numpy
  growing = (number + 1) / (_GROWING * steps)
  shrinking = (1.0 - number / steps) / _SHRINKING
  return learning_rate * jnp.minimum(jnp.minimum(growing, shrinking), 1.0)


@functools.lru_cache(maxsize=64)
def compiled(network: Network, num_features: int, num_outputs: int) -> _Functions:
  """Returns the functions of a network, which take flat parameters. JAX compiles them at their first call."""
  jax, optax = libraries().jax, libraries().optax
  jnp = jax.numpy

  def init(seed: Any) -> Any:
    return network.init(jax.random.wrap_key_data(seed), num_features, num_outputs)

  shapes = jax.eval_shape(init, np.zeros(2, np.uint32))
  zeros = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)
  _, unravel = jax.flatten_util.ravel_pytree(zeros)

  def fresh(seed: Any) -> Any:
    return jax.flatten_util.ravel_pytree(init(seed))[0]

  def outputs(flat: Any, features: Any) -> Any:
    return network.apply(unravel(flat), features)

  def loss(flat: Any, rows: Any) -> Any:
    features, targets, mask, weights = rows
    return jnp.sum(weights[:, None] * mask * (outputs(flat, features) - targets) ** 2)

  def run_adam(flat: Any, steps: Any, learning_rate: Any, rows_of: Any) -> Any:
    adam = optax.adam(lambda number: _rate(number, steps, learning_rate))

    def step(number: Any, carry: Any) -> Any:
      flat, moments = carry
      gradient = jax.grad(loss)(flat, rows_of(number))
      updates, moments = adam.update(gradient, moments)
      return optax.apply_updates(flat, updates), moments

    fitted, _ = jax.lax.fori_loop(0, steps, step, (flat, adam.init(flat)))
    return fitted

  def fit(flat: Any, *rows_and_rate: Any) -> Any:
    *rows, steps, learning_rate = rows_and_rate
    return run_adam(flat, steps, learning_rate, lambda _: rows)

  def fit_batches(flat: Any, *rows_and_rate: Any) -> Any:
    *rows, drawn_rows, learning_rate = rows_and_rate
    steps, size = drawn_rows.shape
    weights = jnp.full(size, 1.0 / size, jnp.float32)

    def batch(number: Any) -> Any:
      return *(array[drawn_rows[number]] for array in rows), weights

    return run_adam(flat, steps, learning_rate, batch)

  def outputs_of_all(stack: Any, features: Any) -> Any:
    return jax.vmap(lambda flat: outputs(flat, features))(stack)

  return _Functions(
    fresh=jax.jit(fresh),
    fit=jax.jit(fit),
    fit_batches=jax.jit(fit_batches),
    outputs=jax.jit(outputs),
    outputs_of_all=jax.jit(outputs_of_all),
  )
