"""Solver of Deep CFR and its bootstrapped variants.

An iteration draws samples of advantages under fixed strategies, and then fits networks to them. The average policy is
computed exactly, not learned.

- Deep CFR: Brown, Lerer, Gross and Sandholm, "Deep Counterfactual Regret Minimization" (2019).
- Average of all networks: Steinberger, "Single Deep Counterfactual Regret Minimization" (2019).
- Bootstrapped variants: Xu et al., "Deep (Predictive) Discounted Counterfactual Regret Minimization" (2026).

On a compiled game, strategies are in a table. After every fit, the solver evaluates the network at all infosets at once
and writes the strategies to the table, and the compiled traversals of `mccfr` sample from it.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s, Int64s, Uint64s, require
from spiel_cfr._util import arguments
from spiel_cfr._util.time_slices import whole_steps
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.cfr.off_path import Unreached
from spiel_cfr.cfr.solver_state import MOST_ITERATIONS, inner_values
from spiel_cfr.deep_cfr.average_of_networks import AveragePolicy
from spiel_cfr.deep_cfr.exact_memory import ExactMemory, ExactSamples, InfosetRows, match_advantages
from spiel_cfr.deep_cfr.features import Encoder, Features
from spiel_cfr.deep_cfr.learner import Learner
from spiel_cfr.deep_cfr.lockstep import LockStep, SampledMemory, padded
from spiel_cfr.deep_cfr.network import MLP, Approximator, Array, Rows, Training, layer_sizes
from spiel_cfr.deep_cfr.reservoir import check_reservoir
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.games.openspiel.infoset_features import Float32s
from spiel_cfr.mccfr.monte_carlo_solver import DEFAULT_MAX_NODES, EngineName, MonteCarloSolver
from spiel_cfr.mccfr.random_draws import ITERATIONS, new_counters
from spiel_cfr.mccfr.sampled_policy import sampled_probabilities
from spiel_cfr.mccfr.sampling_rules import AverageType, Rule, Sampler
from spiel_cfr.policies import from_policy

Algorithm = Literal["linear", "dcfr+", "pdcfr+"]
SamplerName = Literal["external", "outcome"]
# A player's networks: of cumulative advantages, and of predicted advantages of the next iteration.
_ADVANTAGES, _NEXT = 0, 1
_MOST_STEPS = (1 << 31) - 1
# The constants alpha and c of the discount.
_DISCOUNTS = {"dcfr+": (2.0, 1.5), "pdcfr+": (2.3, 1.0)}
_FULL = AverageType.FULL.value
_SAMPLERS = {
  "external": Sampler(Rule.EVERY_ACTION, Rule.BY_STRATEGY, average_type=_FULL),
  "outcome": Sampler(Rule.BY_EXPLORING_STRATEGY, Rule.BY_STRATEGY, 0.6, average_type=_FULL),
}


@dataclasses.dataclass
class DeepState:
  """State of a Deep CFR solver.

  Attributes:
    counters: uint64 (4,). See `random_draws.new_counters`.
    parameters: floats (players, networks, parameters). See `Learner`.
    scales: float64 (players, networks). See `Learner`.
    memory: `ExactMemory` of sums on compiled games; `SampledMemory` of samples and past networks on states.
  """

  counters: Uint64s
  parameters: Array
  scales: Float64s
  memory: ExactMemory | SampledMemory


class _Run(NamedTuple):
  """The state of a solver, and the objects that change it."""

  state: DeepState
  samples: ExactSamples | LockStep
  learner: Learner


class DeepCFRSolver(MonteCarloSolver):
  """Deep CFR: networks learn advantages from samples of the game.

      solver = DeepCFRSolver("leduc_poker", num_traversals=1500, seed=1)
      solver.run(100)
      solver.average_policy()

  In iteration t, each player in turn makes `num_traversals` traversals under fixed strategies. The player's networks
  are then fitted to the samples r_t of advantages, and regret matching gives the player's next strategy.

  - "linear", Deep CFR: a network is fitted to all samples so far. Samples and strategies of iteration t have weight t.
  - "dcfr+", DCFR+: in iteration t, the network A_t is fitted to targets from the outputs of A_{t-1} and the samples:

        max(A_{t-1}, 0) (t - 1)^alpha / ((t - 1)^alpha + c) + r_t,   alpha = 2, c = 1.5.

  - "pdcfr+", PDCFR+: A_t is fitted as in DCFR+, with alpha = 2.3 and c = 1. A second network P_t is fitted to r_t.
    Regret matching uses max(A_t, 0) t^alpha / (t^alpha + c) + P_t.

  In DCFR+ and PDCFR+, iteration t has weight t^2 in the average.

  The arguments have OpenSpiel's names. Its `num_iterations` and `solve()` are `solver.run(num_iterations)` here.

  Attributes:
    algorithm: "linear", "dcfr+" or "pdcfr+".
    network: `Approximator`. The approximator of the advantages.
  """

  _runtime: _Run

  @typed
  def __init__(
    self,
    game: AnyGame,
    *,
    algorithm: Algorithm = "linear",
    advantage_network_layers: Sequence[int] = (64, 64, 64),
    num_traversals: int = 1500,
    learning_rate: float = 3e-3,
    batch_size_advantage: int | None = None,
    memory_capacity: int = 1_000_000,
    advantage_network_train_steps: int = 100,
    reinitialize_advantage_networks: bool = False,
    sampler: SamplerName = "external",
    network: Approximator | None = None,
    features: Features = "tensor",
    greedy: bool = True,
    seed: int | np.random.Generator | None = None,
    engine: EngineName | None = None,
    max_nodes: int = DEFAULT_MAX_NODES,
  ) -> None:
    """Makes the solver.

    Args:
      game: a game, its string, or a compiled game.
      algorithm: the targets of the networks: "linear", "dcfr+" or "pdcfr+".
      advantage_network_layers: the number of units in each hidden layer.
      num_traversals: the number of traversals for each player in an iteration.
      learning_rate: the highest learning rate of Adam in a fit.
      batch_size_advantage: the number of samples in a training step; None takes all.
      memory_capacity: the largest number of samples in a reservoir. Compiled games have exact sums and no reservoir.
      advantage_network_train_steps: the number of training steps in a fit.
      reinitialize_advantage_networks: the parameters from which the fits of "linear" start. True starts from new
        parameters, as in the paper, which needs many more steps. False starts from those of the previous iteration.
      sampler: "external" explores all actions of the updating player. "outcome" explores one action, drawn uniformly
        with probability 0.6 and otherwise from the current strategy. It learns more slowly, but is affordable if a
        player has many decisions in a row.
      network: the approximator of advantages; None makes an `MLP` of `advantage_network_layers`.
      features: the input of the network: "tensor" for OpenSpiel's information state tensor, "one_hot", or a function of
        a state and the player to move.
      greedy: the strategy at infosets where no advantage is positive. True plays the action with the largest advantage,
        as in the paper. False plays uniformly.
      seed: see `SamplingSolver`.
      engine: "compiled" or "states"; see `SamplingSolver`.
      max_nodes: the largest number of histories of a game that is compiled.

    Raises:
      ArgumentError: an argument is invalid.
      AbstractionError: the game is an abstraction.
      FeaturesError: two infosets have the same features.
      GameError: the game can't be loaded or sampled.
      MissingPackageError: JAX or optax is not installed.
    """
    if isinstance(game, CompiledGame) and game.original is not game:
      raise errors.AbstractionError(
        "Networks take features of OpenSpiel's infosets, and an abstraction merges several of them. Use its "
        "`original`, and give merged infosets similar `features`."
      )
    arguments.one_of(algorithm, "algorithm", get_args(Algorithm))
    arguments.one_of(sampler, "sampler", get_args(SamplerName))
    if not isinstance(network, Approximator | None):
      raise errors.ArgumentError(
        f"network must be derived from spiel_cfr.deep_cfr.network.Approximator, not {network!r}."
      )
    self.algorithm = algorithm
    layers = layer_sizes(advantage_network_layers, "advantage_network_layers")
    self.network = MLP(layers) if network is None else network
    self._training = Training(
      arguments.integer(
        advantage_network_train_steps, "advantage_network_train_steps", 1, _MOST_STEPS
      ),
      arguments.positive_number(learning_rate, "learning_rate"),
      None
      if batch_size_advantage is None
      else arguments.positive_integer(batch_size_advantage, "batch_size_advantage"),
      (0, 0),
    )
    self._num_traversals = arguments.positive_integer(num_traversals, "num_traversals")
    self._capacity = arguments.positive_integer(memory_capacity, "memory_capacity")
    self._reinitializes = bool(reinitialize_advantage_networks)
    self._greedy = bool(greedy)
    super().__init__(game, _SAMPLERS[sampler], seed, engine, max_nodes)
    # Copies need these numbers, and have no view if OpenSpiel can't load the game again.
    self._num_players = self.view.num_players
    self._num_actions = int(self.game.num_distinct_actions())
    self._encoder = Encoder(self.view, features)
    self._rows = None if self.engine == "states" else InfosetRows(self.compiled_game, self._encoder)
    if self._rows is not None and not len(self._rows.features):
      raise errors.UnsupportedGameError(
        f"In {self.game} no player decides: networks have nothing to learn."
      )
    self.reset()

  def reset(self) -> None:
    counters, rows = new_counters(self._key), self._rows
    learner = Learner(
      self.network,
      self._training,
      counters,
      self._num_players,
      2 if self.algorithm == "pdcfr+" else 1,
      self._encoder.size if rows is None else rows.features.shape[1],
      self._num_actions,
    )
    samples: ExactSamples | LockStep
    if rows is not None and self._compiled_engine is not None:
      samples = ExactSamples(self._compiled_engine.fresh_copy(counters), rows)
    else:
      samples = LockStep(self.view, self._encoder, self._sampler, counters, self._capacity, learner)
    state = DeepState(counters, learner.parameters, learner.scales, samples.memory)
    self._runtime = _Run(state, samples, learner)

  @property
  def num_bytes(self) -> int:
    """The size of the state, and of a checkpoint, in bytes."""
    return sum(np.asarray(value).nbytes for value in self.state_dict().values())

  def _check_state(self, state: Mapping[str, Any]) -> None:
    super()._check_state(state)
    done, memory = int(state["counters"][ITERATIONS]), inner_values(state, "memory")
    require(done <= MOST_ITERATIONS, "the iteration is possible")
    for name, value in state.items():
      if isinstance(value, np.ndarray):
        require(np.isfinite(value), f"{name} is finite")
    require(state["scales"] >= 0, "scales are not negative")
    samples = self._runtime.samples
    if isinstance(samples, ExactSamples):
      require(memory["visits"] >= 0, "weights are not negative")
      samples.engine.table.check_averages(memory["strategy"], memory["cumulative"])
      return
    require(len(memory["past_parameters"]) == done, "every iteration has networks")
    require(len(memory["past_scales"]) == done, "every iteration has networks")
    require(memory["past_scales"] >= 0, "scales are not negative")
    for player in range(self._num_players):
      check_reservoir(inner_values(memory, f"advantages.{player}"), self._capacity)

  def _advance(self, count: int) -> None:
    whole_steps(lambda number, last: self._iterate(), count)

  def _iterate(self) -> None:
    """Runs one iteration: samples, fits and new strategies for each player in turn, then the average."""
    state, samples, learner = self._runtime
    iteration = int(state.counters[ITERATIONS]) + 1
    for player in range(self._num_players):
      rows = self._sample(player, iteration)
      self._learn(player, rows, iteration)
      if isinstance(samples, ExactSamples):
        samples.set_strategy(player, self._strategies(player, rows.features, rows.mask, iteration))
    if isinstance(samples, ExactSamples):
      samples.average(float(self._average_weights(np.array([iteration]))[0]))
    else:
      samples.remember(learner)
    state.counters[ITERATIONS] += np.uint64(1)

  def _average_weights(self, iterations: Int64s) -> Float64s:
    """Returns the averaging weights of iterations, shape (iterations,)."""
    power = 1.0 if self.algorithm == "linear" else 2.0
    result: Float64s = np.asarray(iterations, np.float64) ** power
    return result

  def _sample(self, player: int, iteration: int) -> Rows:
    """Runs the traversals for a player. Returns the training data of its networks."""
    samples, forgets = self._runtime.samples, self.algorithm != "linear"
    weight = 1.0 if forgets else float(iteration)
    if isinstance(samples, ExactSamples):
      return samples.sample(player, self._num_traversals, weight, forgets)

    def strategies(mover: int, features: Float32s, mask: Bools) -> Float64s:
      # Players update in turn, so the players before this one have new strategies.
      last_update = iteration if mover < player else iteration - 1
      padded_features, count = padded(features), len(features)
      padded_mask = np.zeros((len(padded_features), mask.shape[1]), bool)
      padded_mask[:count], padded_mask[count:, 0] = mask, True
      return self._strategies(mover, padded_features, padded_mask, last_update)[:count]

    return samples.sample(player, self._num_traversals, weight, forgets, strategies)

  def _learn(self, player: int, rows: Rows, iteration: int) -> None:
    """Fits a player's networks to the training data of an iteration."""
    learner = self._runtime.learner
    if self.algorithm == "linear":
      learner.fit(player, _ADVANTAGES, rows, iteration, self._reinitializes)
      return
    old_advantages = np.maximum(learner.outputs(player, _ADVANTAGES, rows.features), 0.0)
    targets = old_advantages * self._discount(iteration) + rows.targets
    learner.fit(player, _ADVANTAGES, rows._replace(targets=targets), iteration)
    if self.algorithm == "pdcfr+":
      learner.fit(player, _NEXT, rows, iteration)

  def _discount(self, iteration: int | Int64s) -> Any:
    """Returns the discount on cumulative advantages, which applies before an iteration adds its samples."""
    alpha, constant = _DISCOUNTS[self.algorithm]
    power = (iteration - 1.0) ** alpha
    return power / (power + constant)

  def _strategies(self, player: int, features: Float32s, mask: Bools, iteration: int) -> Float64s:
    """Returns a player's strategy after its update in an iteration, shape (rows, actions)."""
    learner = self._runtime.learner
    networks = range(learner.parameters.shape[1])
    outputs = [learner.outputs(player, number, features) for number in networks]
    return self._play(np.array(outputs), mask, iteration)

  def _play(self, outputs: Float64s, mask: Bools, iteration: int | Int64s) -> Float64s:
    """Returns strategies after one or more iterations, from outputs of shape (networks, ..., actions)."""
    scores = outputs[_ADVANTAGES]
    if self.algorithm == "pdcfr+":
      scores = np.maximum(scores, 0.0) * self._discount(iteration + 1) + outputs[_NEXT]
    return match_advantages(scores, mask, self._tie, self._greedy)

  def average_policy(self, unreached: Unreached = "uniform") -> Any:
    """Returns the exact average policy of all iterations.

    On states, the policy evaluates the networks of all iterations, and does not change as the solver runs.
    """
    if self.engine == "compiled" or unreached != "uniform":
      return super().average_policy(unreached)
    return self._policy_of(slice(None))

  def current_policy(self) -> Any:
    """Returns the current policy; on states, it does not change as the solver runs."""
    if self.engine == "compiled":
      return super().current_policy()
    return self._policy_of(slice(-1, None))

  def _policy_of(self, chosen: slice) -> AveragePolicy:
    """Returns the average policy of a slice of the iterations."""
    memory: Any = self.state.memory
    iterations = np.arange(1, int(self.iteration) + 1)[chosen]
    return AveragePolicy(
      self.view,
      self._encoder,
      self.network,
      memory.past_parameters[chosen],
      memory.past_scales[chosen],
      self._average_weights(iterations),
      iterations,
      self._play,
    )

  def average_probabilities(self) -> Float64s:
    if isinstance(self._runtime.samples, ExactSamples):
      return sampled_probabilities(self.compiled_game, self._runtime.samples.engine, "cumulative")
    return from_policy(self.compiled_game, self.average_policy())

  def current_probabilities(self) -> Float64s:
    if isinstance(self._runtime.samples, ExactSamples):
      return sampled_probabilities(self.compiled_game, self._runtime.samples.engine, "strategy")
    return from_policy(self.compiled_game, self.current_policy())
