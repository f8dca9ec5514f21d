"""Deep CFR and its bootstrapped descendants: samples of fixed strategies, networks fitted to them, exact averages.

- Deep CFR: Brown, Lerer, Gross and Sandholm, "Deep Counterfactual Regret Minimization" (2019).
- Single Deep CFR, whose average is that of all networks: Steinberger, "Single Deep Counterfactual Regret Minimization"
  (2019).
- Bootstrapped: Xu et al., "Deep (Predictive) Discounted Counterfactual Regret Minimization" (2026).

On a compiled game, networks become tables: a network is asked for all infosets at once whenever it has changed, and the
traversals are those of `mccfr`, in compiled code.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s, Int64s, Uint64s, require
from spiel_cfr._util import arguments
from spiel_cfr._util.doors import typed
from spiel_cfr._util.time_slices import whole_steps
from spiel_cfr.cfr.off_path import Unreached
from spiel_cfr.cfr.solver import MOST_ITERATIONS
from spiel_cfr.cfr.solver_state import inside
from spiel_cfr.deep_cfr.average_of_networks import AveragePolicy
from spiel_cfr.deep_cfr.exact_memory import ExactMemory, ExactSamples, InfosetRows, matched
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
from spiel_cfr.mccfr.sampled_policy import sampled_form
from spiel_cfr.mccfr.sampling_rules import AverageType, Rule, Sampler
from spiel_cfr.policies import from_policy

Algorithm = Literal["linear", "dcfr+", "pdcfr+"]
SamplerName = Literal["external", "outcome"]
# A player's networks: cumulative advantages, and those of the next iteration.
_ADVANTAGES, _NEXT = 0, 1
_MOST_STEPS = (1 << 31) - 1
# alpha and c of the discount.
_DISCOUNTS = {"dcfr+": (2.0, 1.5), "pdcfr+": (2.3, 1.0)}
_FULL = AverageType.FULL.value
_SAMPLERS = {
  "external": Sampler(Rule.EVERY_ACTION, Rule.BY_STRATEGY, average_type=_FULL),
  "outcome": Sampler(Rule.BY_EXPLORING_STRATEGY, Rule.BY_STRATEGY, 0.6, average_type=_FULL),
}


@dataclasses.dataclass
class DeepState:
  """All that changes from one iteration to the next.

  Attributes:
    counters: see `random_draws.new_counters`.
    parameters, scales: see `Learner`.
    memory: on compiled games, sums; on states, samples, and the networks of all iterations.
  """

  counters: Uint64s
  parameters: Array
  scales: Float64s
  memory: ExactMemory | SampledMemory


class _Run(NamedTuple):
  state: DeepState
  samples: ExactSamples | LockStep
  learner: Learner


class DeepCFRSolver(MonteCarloSolver):
  """Deep CFR: networks learn advantages from samples.

      solver = DeepCFRSolver("leduc_poker", num_traversals=1500, seed=1)
      solver.run(100)
      solver.average_policy()

  An iteration is, for each player in turn, `num_traversals` traversals under strategies that stay, and a fit of that
  player's networks to what they have estimated; then regret matching. With r the samples, `algorithm` says which:

  - "linear", Deep CFR: the mean of all samples, those of iteration t weighing t, as the average does.
  - "dcfr+", DCFR+ with a network A that learns from itself: r are of this iteration t only, and A is fitted to

        max(A before, 0) (t - 1)^alpha / ((t - 1)^alpha + c) + r,   alpha = 2, c = 1.5.

  - "pdcfr+", PDCFR+: the same with alpha = 2.3 and c = 1; another network P is fitted to r, and regret matching is
    applied to max(A, 0) t^alpha / (t^alpha + c) + P. In both, iteration t weighs t^2 in the average.

  The arguments have OpenSpiel's names; its `num_iterations` and `solve()` are `solver.run(num_iterations)` here.

  Attributes:
    algorithm: what is learned.
    network: what learns it.
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
      algorithm: what is learned.
      advantage_network_layers: how many units each hidden layer has.
      num_traversals: how many an iteration makes for each player.
      learning_rate: of Adam, at its highest.
      batch_size_advantage: how many samples are drawn for a step; None takes all.
      memory_capacity: how many samples a reservoir holds; on compiled games memory is exact, and needs none.
      advantage_network_train_steps: how many are made for each fit.
      reinitialize_advantage_networks: whether every fit of "linear" begins with new networks, as in the paper, which
        takes many more steps; otherwise with those of the iteration before.
      sampler: "external" explores all actions of the player who learns; "outcome" one, drawn uniformly with probability
        0.6, which learns more slowly, but can be afforded where a player has many decisions in a row.
      network: what learns advantages; an `MLP` of `advantage_network_layers` if None.
      features: what it sees of an infoset: OpenSpiel's information state tensor, "one_hot", or what a function of a
        state and the player to move returns.
      greedy: what is played where no advantage is positive: the action of the largest, as in the paper, or all alike.
      seed: see `SamplingSolver`, as the others.
      engine: "compiled" or "states".
      max_nodes: how many histories a game may have to be compiled.

    Raises:
      ArgumentError: an argument makes no sense.
      AbstractionError: the game is an abstraction.
      FeaturesError: two infosets have the same features.
      GameError: the game can't be loaded or sampled.
      MissingPackageError: JAX or optax is not installed.
    """
    if isinstance(game, CompiledGame) and game.original is not game:
      raise errors.AbstractionError(
        "Networks see infosets as OpenSpiel describes them, and several of these are one in an abstraction. Take its "
        "`original`, and put what is alike into `features`."
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
    # Copies need these, and the view stays behind where OpenSpiel can't load the game again.
    self._num_players, self._num_actions = (
      self.view.num_players,
      int(self.game.num_distinct_actions()),
    )
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
      samples = ExactSamples(self._compiled_engine.begun(counters), rows)
    else:
      samples = LockStep(self.view, self._encoder, self._sampler, counters, self._capacity, learner)
    state = DeepState(counters, learner.parameters, learner.scales, samples.memory)
    self._runtime = _Run(state, samples, learner)

  @property
  def num_bytes(self) -> int:
    """Memory of the state, which is what a checkpoint takes."""
    return sum(np.asarray(value).nbytes for value in self.state_dict().values())

  def _check_state(self, state: Mapping[str, Any]) -> None:
    super()._check_state(state)
    done, memory = int(state["counters"][ITERATIONS]), inside(state, "memory")
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
      check_reservoir(inside(memory, f"advantages.{player}"), self._capacity)

  def _advance(self, count: int) -> None:
    whole_steps(lambda number, last: self._iterate(), count)

  def _iterate(self) -> None:
    state, samples, learner = self._runtime
    iteration = int(state.counters[ITERATIONS]) + 1
    for player in range(self._num_players):
      rows = self._sampled(player, iteration)
      self._learn(player, rows, iteration)
      if isinstance(samples, ExactSamples):
        samples.set_strategy(player, self._chances(player, rows.features, rows.mask, iteration))
    if isinstance(samples, ExactSamples):
      samples.average(float(self._average_weights(np.array([iteration]))[0]))
    else:
      samples.remember(learner)
    state.counters[ITERATIONS] += np.uint64(1)

  def _average_weights(self, iterations: Int64s) -> Float64s:
    """Returns what iterations weigh in the average."""
    result: Float64s = np.asarray(iterations, np.float64) ** (
      1.0 if self.algorithm == "linear" else 2.0
    )
    return result

  def _sampled(self, player: int, iteration: int) -> Rows:
    """Samples for a player; returns all that its networks are to be fitted to."""
    samples, forgets = self._runtime.samples, self.algorithm != "linear"
    weight = 1.0 if forgets else float(iteration)
    if isinstance(samples, ExactSamples):
      return samples.sample(player, self._num_traversals, weight, forgets)

    def strategies(mover: int, features: Float32s, mask: Bools) -> Float64s:
      done = iteration if mover < player else iteration - 1
      rows, count = padded(features), len(features)
      legal = np.zeros((len(rows), mask.shape[1]), bool)
      legal[:count], legal[count:, 0] = mask, True
      return self._chances(mover, rows, legal, done)[:count]

    return samples.sample(player, self._num_traversals, weight, forgets, strategies)

  def _learn(self, player: int, rows: Rows, iteration: int) -> None:
    """Fits a player's networks to samples: advantages at infosets, and what these weigh."""
    learner = self._runtime.learner
    if self.algorithm == "linear":
      learner.fit(player, _ADVANTAGES, rows, iteration, self._reinitializes)
      return
    before = np.maximum(learner.outputs(player, _ADVANTAGES, rows.features), 0.0)
    targets = before * self._discount(iteration) + rows.targets
    learner.fit(player, _ADVANTAGES, rows._replace(targets=targets), iteration)
    if self.algorithm == "pdcfr+":
      learner.fit(player, _NEXT, rows, iteration)

  def _discount(self, iteration: int | Int64s) -> Any:
    """Returns what cumulative advantages are multiplied by before those of an iteration are added."""
    alpha, constant = _DISCOUNTS[self.algorithm]
    power = (iteration - 1.0) ** alpha
    return power / (power + constant)

  def _chances(self, player: int, features: Float32s, mask: Bools, iteration: int) -> Float64s:
    """Returns what a player plays after so many iterations, shape (rows, actions)."""
    learner = self._runtime.learner
    networks = range(learner.parameters.shape[1])
    outputs = [learner.outputs(player, number, features) for number in networks]
    return self._play(np.array(outputs), mask, iteration)

  def _play(self, outputs: Float64s, mask: Bools, iteration: int | Int64s) -> Float64s:
    """Returns what is played after an iteration, or several, where networks say this: (networks, ..., actions)."""
    scores = outputs[_ADVANTAGES]
    if self.algorithm == "pdcfr+":
      scores = np.maximum(scores, 0.0) * self._discount(iteration + 1) + outputs[_NEXT]
    return matched(scores, mask, self._tie, self._greedy)

  def average_policy(self, unreached: Unreached = "uniform") -> Any:
    """Returns the average policy of all iterations: exactly, on states too, where all networks are asked.

    On states, it stays as it is when the solver moves on.
    """
    if self.engine == "compiled" or unreached != "uniform":
      return super().average_policy(unreached)
    return self._policy_of(slice(None))

  def current_policy(self) -> Any:
    """Returns the current policy; on states, it stays as it is when the solver moves on."""
    return (
      super().current_policy() if self.engine == "compiled" else self._policy_of(slice(-1, None))
    )

  def _policy_of(self, some: slice) -> AveragePolicy:
    """Returns the average policy of the networks of some iterations."""
    memory: Any = self.state.memory
    iterations = np.arange(1, int(self.iteration) + 1)[some]
    return AveragePolicy(
      self.view,
      self._encoder,
      self.network,
      memory.past_parameters[some],
      memory.past_scales[some],
      self._average_weights(iterations),
      iterations,
      self._play,
    )

  def average_probabilities(self) -> Float64s:
    if isinstance(self._runtime.samples, ExactSamples):
      return sampled_form(self.compiled_game, self._runtime.samples.engine, "cumulative")
    return from_policy(self.compiled_game, self.average_policy())

  def current_probabilities(self) -> Float64s:
    if isinstance(self._runtime.samples, ExactSamples):
      return sampled_form(self.compiled_game, self._runtime.samples.engine, "strategy")
    return from_policy(self.compiled_game, self.current_policy())
