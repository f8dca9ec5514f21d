"""A network that has learned values of public states from public states that were solved with random ranges."""

from collections.abc import Sequence

import numpy as np

from spiel_cfr._numba.arrays import Bools, Float64s
from spiel_cfr._util import arguments
from spiel_cfr.deep_cfr.network import MLP, Approximator, Array, Rows, Training
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.search.cut_outs import Pair
from spiel_cfr.search.public_state_values import PublicStateValues, SolvedValues, cut_reach
from spiel_cfr.search.public_states import check_cut, list_histories
from spiel_cfr.search.search_tree import PublicState

# The least that a drawn range has beside its most: what a player hardly ever has is still worth something.
_RAREST = 1e-3


class ValueNetwork(PublicStateValues):
  """Values of public states by a network. Make one with `learn_values`.

  Attributes:
    error: the root of the mean square error of private states' expectations, at public states that the network has not
      learned from, in the game's units.
  """

  def __init__(
    self,
    solved: SolvedValues,
    network: Approximator,
    parameters: Array,
    scale: float,
    error: float,
  ) -> None:
    super().__init__(solved.states)
    self._network, self._parameters, self._scale = network, parameters, scale
    self.error = error

  def values(self, ranges: Sequence[Pair]) -> list[Pair]:
    used, seen = _is_output(self), _features(self, ranges)
    found = self._scale * self._network.outputs(self._parameters, seen, used.shape[1])
    pairs = zip(cut_reach(self, ranges, 0), cut_reach(self, ranges, 1), strict=True)
    result = []
    for own, row, (first, second) in zip(used, found, pairs, strict=True):
      expectations = row[own]
      result.append((first * expectations[: len(first)], second * expectations[len(first) :]))
    return result


def learn_values(
  game: AnyGame,
  *,
  cut: Sequence[PublicState] | None = None,
  rounds: int = 400,
  network: Approximator | None = None,
  steps: int = 20_000,
  seed: int = 0,
) -> ValueNetwork:
  """Solves the public states of a cut with random ranges, and fits a network to what they are worth.

  Args:
    game: a compiled game, or what `compile_game` takes.
    cut: public states, none below another; by default `natural_cut()` of listed histories.
    rounds: how many times each public state is solved; a tenth as often again to measure `ValueNetwork.error`.
    network: `deep_cfr.MLP((128, 128))` by default.
    steps: of its fit.
    seed: of ranges, network and fit.

  Raises:
    MissingPackageError: JAX and optax are not installed.
    UnsupportedGameError: see `public_states`.
    ArgumentError: a number is not a positive integer, or the cut is none of this game.
    GameError: see `compile_game`.
  """
  arguments.positive_integer(rounds, "rounds")
  arguments.positive_integer(steps, "steps")
  seed = arguments.integer(seed, "seed", 0, 0xFFFF_FFFF)
  network = network or MLP((128, 128))
  states = list_histories(game).natural_cut() if cut is None else check_cut(game, cut)
  solved = SolvedValues(states)
  used = _is_output(solved)
  num_outputs = used.shape[1]
  fresh = network.fresh((seed, 0), len(solved.states) + num_outputs, num_outputs)
  rng = np.random.default_rng(seed)
  seen, targets = [], []
  for _ in range(rounds + max(1, rounds // 10)):
    drawn = [_drawn_ranges(own, rng) for own in np.split(used, 2, axis=1)]
    ranges = list(zip(*drawn, strict=True))
    seen.append(_features(solved, ranges))
    targets.append(_expectations(solved, ranges))
  learned = rounds * len(solved.states)
  rows, wanted = np.concatenate(seen), np.concatenate(targets)
  # Public states have different numbers of private states: the rest of a row is padding.
  every = np.tile(used, (len(wanted) // len(used), 1))
  scale = float(np.sqrt((wanted[:learned][every[:learned]] ** 2).mean())) or 1.0
  fitted = network.fitted(
    fresh,
    Rows(rows[:learned], wanted[:learned] / scale, every[:learned], np.ones(learned)),
    Training(steps, 1e-3, min(256, learned), (seed, 1)),
  )
  missed = scale * network.outputs(fitted, rows[learned:], num_outputs) - wanted[learned:]
  error = float(np.sqrt((missed[every[learned:]] ** 2).mean()))
  return ValueNetwork(solved, network, fitted, scale, error)


def _is_output(values: PublicStateValues) -> Bools:
  """Returns which outputs are of private states, shape (public states, 2 width): player 0's, then player 1's."""
  counts = [values.tree.num_private_states(state.number) for state in values.states]
  width = np.arange(max(max(own) for own in counts))
  return np.array([np.append(width < first, width < second) for first, second in counts])


def _table(values: PublicStateValues, pairs: Sequence[Pair]) -> Float64s:
  """Returns numbers of private states as rows of `_is_output`, 0 elsewhere."""
  used = _is_output(values)
  result = np.zeros(used.shape)
  result[used] = np.concatenate([np.concatenate(own) for own in pairs])
  return result


def _features(values: PublicStateValues, ranges: Sequence[Pair]) -> Array:
  """Returns the inputs of a network: one-hot public states, and each player's range, which sums to 1."""
  parts = [np.eye(len(values.states))]
  for own in np.split(_table(values, ranges), 2, axis=1):
    totals = own.sum(axis=1, keepdims=True)
    parts.append(own / np.where(totals > 0, totals, 1.0))
  return np.concatenate(parts, axis=1).astype(np.float32)


def _expectations(values: PublicStateValues, ranges: Sequence[Pair]) -> Float64s:
  """Returns values per unit of chance's and the other player's probability, as rows of `_is_output`."""
  result = _table(values, values.values(ranges))
  pairs = zip(cut_reach(values, ranges, 0), cut_reach(values, ranges, 1), strict=True)
  reach = _table(values, list(pairs))
  return np.divide(result, reach, out=result, where=reach > 0)


def _drawn_ranges(used: Bools, rng: np.random.Generator) -> list[Float64s]:
  """Returns a random range of one player at each public state, of its `used` private states: even, or nearly pure."""
  drawn = rng.random(used.shape) ** np.exp(rng.uniform(-2.0, 2.0, (len(used), 1)))
  drawn = np.maximum(drawn * (rng.random(used.shape) < 0.85), _RAREST)
  return [row[own] for row, own in zip(drawn, used, strict=True)]
