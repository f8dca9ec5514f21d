"""Dilated distances between strategies in sequence form, and their proximal steps.

A dilated distance adds up local distances at the infosets of a player. Let x and z be strategies in sequence form. Let
b_I > 0 be the weight of infoset I, p(I) the sequence that leads to I, and x_I the entries of x at the actions of I:

    d(x)    = sum over I of  b_I x_p(I) r(x_I / x_p(I))
    D(x, z) = sum over I of  b_I x_p(I) r_D(x_I / x_p(I), z_I / z_p(I))

For the entropy, r is the negative entropy plus log n, and r_D is the Kullback-Leibler divergence. For the Euclidean
distance, r is half the squared distance from the uniform strategy, and r_D half the squared distance from z (Hoda,
Gilpin, Peña and Sandholm 2010). So d(x) is D(x, z) from the strategy z that is uniform at every infoset.

A proximal step with gradient g and scale mu is

    argmax over x of  <g, x> - mu D(x, z)

It is one backward pass (`prox_entropy`, `prox_euclidean`). At an infoset, the pass maximizes a local problem in which
r_D has the factor mu b_I, and adds the maximum to the value of the sequence p(I).

Weights are computed from the leaves up. C(I, a) is the set of the next infosets after action a at I:

    kroer2017     b_I = 2 + 2 max over a of the sum of b over C(I, a)
    farina2021    b_I = 1 +   max over a of the sum of b over C(I, a)
    one           b_I = 1

"kroer2017" is from Kroer, Waugh, Kilinc-Karzan and Sandholm (2017): d is 1-strongly convex in the Euclidean norm for
both r. "farina2021" is from Farina, Kroer and Sandholm (2021): d is 1-strongly convex for the entropy.
docs/theory/first_order.md has the proofs. "one" works in practice, without a proof.

The diameter O is the largest d(x) of any strategy. Pure strategies maximize d, so O is the sum of O_I over the infosets
after the empty sequence:

    O_I = b_I L + max over a of the sum of O over C(I, a),   L = log n (entropy), or (1 - 1/n) / 2 (Euclidean)
"""

from collections.abc import Iterable
from typing import Literal, NamedTuple, get_args

import numpy as np

from spiel_cfr._numba.arrays import Float64s, aligned_zeros
from spiel_cfr._numba.simd import LANES, full, load, store, where_greater
from spiel_cfr._numba.steps import StepKernel
from spiel_cfr._util import arguments
from spiel_cfr.first_order.player_trees import player_trees
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.sequence_form.blocks import Block, block_kernel, sequence, vector_starts
from spiel_cfr.games.sequence_form.treeplex import Treeplex
from spiel_cfr.regret_minimizers.regularizers import (
  Regularizer,
  exponential,
  least_exponent,
  project_shifted,
  regularizer_range,
)

DistanceWeights = Literal["kroer2017", "farina2021", "one"]
# The entry of `Block.parameters`: mu.
_SCALE = 0
# Lines of `Block.action_state`: z, and the result of the step in the form of z.
_CENTER, _RESULT = 0, 1
# Lines of `Block.scratch`: the largest score, and the sum of exponentials.
_TOP, _TOTAL = 0, 1


@block_kernel
def prox_entropy(block: Block) -> None:
  """Strategy proportional to z exp(g / (mu b)). `action_state` has the logarithms of z and of the result.

  Probabilities below e^-100 are played as e^-100, but their logarithms stay exact.
  """
  source, target = block.action_state[_CENTER], block.action_state[_RESULT]
  tops, totals, least = block.scratch[_TOP], block.scratch[_TOTAL], full(least_exponent(block))
  scale = full(block.parameters[_SCALE])
  for i in vector_starts(block):
    share = full(1.0) / (scale * load(block.infoset_state[0], block.infoset + i))
    top, total = full(-np.inf), full(0.0)
    for action in range(block.actions):
      at = sequence(block, action, i)
      score = load(source, at) + load(block.utility, at) * share
      store(target, at, score)
      top = where_greater(score, top, score, top)
    for action in range(block.actions):
      at = sequence(block, action, i)
      score = load(target, at) - top
      weight = exponential(where_greater(score, least, score, least))
      store(block.strategy, at, weight)
      total = total + weight
    store(tops, i, top)
    store(totals, i, total)
    share = full(1.0) / total
    for action in range(block.actions):
      at = sequence(block, action, i)
      store(block.strategy, at, load(block.strategy, at) * share)
  for i in range(block.size):
    tops[i] += np.log(totals[i])
    block.value[i] = block.parameters[_SCALE] * block.infoset_state[0, block.infoset + i] * tops[i]
  for action in range(block.actions):
    row = sequence(block, action, np.uint64(0))
    for i in range(block.size):
      target[row + i] -= tops[i]


@block_kernel
def prox_euclidean(block: Block) -> None:
  """Strategy = projection of z + g / (mu b) on the simplex. `action_state` has the probabilities z and the result."""
  source, target = block.action_state[_CENTER], block.action_state[_RESULT]
  strategy, half = block.strategy, full(0.5)
  for i in vector_starts(block):
    weight = full(block.parameters[_SCALE]) * load(block.infoset_state[0], block.infoset + i)
    share, top, value = full(1.0) / weight, full(-np.inf), full(0.0)
    for action in range(block.actions):
      at = sequence(block, action, i)
      score = load(source, at) + load(block.utility, at) * share
      store(strategy, at, score)
      top = where_greater(score, top, score, top)
    project_shifted(block, i, strategy, top)
    for action in range(block.actions):
      at = sequence(block, action, i)
      probability = load(strategy, at)
      change = probability - load(source, at)
      value = value + probability * load(block.utility, at) - half * weight * change * change
      store(target, at, probability)
    store(block.value, i, value)


_PROX: dict[Regularizer, StepKernel] = {"entropy": prox_entropy, "euclidean": prox_euclidean}


class ProximalPoint(NamedTuple):
  """The result of a proximal step. All numbers of players that took no step are 0.

  Attributes:
    point: float64 (sequences,). The argmax in sequence form.
    center: float64 (sequences,). The argmax in the form that `DilatedDistance.step` takes as z: probabilities of
      actions for the Euclidean distance, their logarithms for the entropy.
    values: float64 (players,). The maximum of each player's problem.
  """

  point: Float64s
  center: Float64s
  values: Float64s


class DilatedDistance:
  """A dilated distance on the strategies of each player of a game.

  Attributes:
    uniform: float64 (sequences,). The uniform strategy in the form of `ProximalPoint.center`.
    weights: float64 (1, infosets plus a vector of padding). b_I of each infoset; 1 in the padding.
    diameters: float64 (players,). The diameter O of each player's strategies.
  """

  def __init__(
    self, game: CompiledGame, regularizer: Regularizer, weights: DistanceWeights
  ) -> None:
    """Makes the distance; the docstring of the module lists the weights.

    Raises:
      ArgumentError: `regularizer` or `weights` is unknown.
    """
    arguments.one_of(regularizer, "regularizer", get_args(Regularizer))
    arguments.one_of(weights, "weights", get_args(DistanceWeights))
    self._prox, self._trees = _PROX[regularizer], player_trees(game)
    is_entropy = regularizer == "entropy"
    self.weights = aligned_zeros(1, game.num_infosets + LANES)
    # Kernels also divide by the padding, which must not be 0.
    self.weights[:] = 1.0
    self.diameters = np.zeros(game.num_players)
    self.uniform = np.zeros(game.end)
    for player, tree in enumerate(game.treeplexes):
      infosets = slice(tree.first_infoset, tree.first_infoset + tree.num_infosets)
      self.weights[0, infosets] = infoset_weights(tree, weights)
      actions = tree.infoset_actions
      ranges = regularizer_range(regularizer, actions)
      self.diameters[player] = backward_sums(tree, self.weights[0, infosets] * ranges, 1.0)[1]
      for sequences, _ in tree.infoset_groups():
        self.uniform[sequences] = -np.log(len(sequences)) if is_entropy else 1 / len(sequences)

  def step(
    self,
    utility: Float64s,
    center: Float64s,
    scales: Float64s | float,
    players: Iterable[int] | None = None,
  ) -> ProximalPoint:
    """Returns a proximal step of players: argmax over x of <utility, x> - scale D(x, center).

    Args:
      utility: shape (sequences,). The gradient g.
      center: shape (sequences,). z in the form of `ProximalPoint.center`.
      scales: mu, a number for all players or an array of shape (players,).
      players: the players that take a step; by default, all.
    """
    scales = np.full(len(self._trees), scales)
    strategy, point = np.zeros((2, len(center)))
    table = np.zeros((2, len(center)))
    table[_CENTER] = center
    values = np.zeros(len(self._trees))
    for player in range(len(self._trees)) if players is None else players:
      parameters = np.array([scales[player]])
      values[player] = self._trees[player].run(
        self._prox, utility, strategy, table, self.weights, parameters, point
      )
    return ProximalPoint(point, table[_RESULT].copy(), values)


def infoset_weights(tree: Treeplex, weights: DistanceWeights) -> Float64s:
  """Returns the weight b_I of each of a player's infosets, shape (the player's infosets,), in layout order."""
  if weights == "one":
    return np.ones(tree.num_infosets)
  factor = {"kroer2017": 2.0, "farina2021": 1.0}[weights]
  return backward_sums(tree, np.full(tree.num_infosets, factor), factor)[0]


def backward_sums(tree: Treeplex, terms: Float64s, factor: float) -> tuple[Float64s, float]:
  """Returns a recursive sum of terms at each infoset, and the sum of these over the infosets after the empty sequence.

  The recursive sum is v_I = terms_I + factor * max over a of the sum of v over C(I, a).

  Args:
    tree: the treeplex of a player.
    terms: shape (the player's infosets,). The term of each infoset.
    factor: the factor on the sums of the infosets below.
  """
  # The sum of v over the infosets after each sequence.
  sums = np.zeros(tree.end - tree.root)
  result = terms.astype(np.float64)
  for sequences, infosets in list(tree.infoset_groups())[::-1]:
    result[infosets] += factor * sums[sequences - tree.root].max(axis=0)
    np.add.at(sums, tree.parent[infosets].astype(np.int64) - tree.root, result[infosets])
  return result, float(sums[0])
