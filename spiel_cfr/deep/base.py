"""What all deep solvers are: samples of fixed strategies, networks fitted to them, and exact averages.

On a compiled game, networks become tables: a network is asked for all infosets at once whenever it has changed, and
the traversals are those of `sampling`, in compiled code.
"""

import abc
import copy
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self, TypedDict

import numpy as np

from spiel_cfr import arguments, errors
from spiel_cfr.compiled.base import CompiledGame
from spiel_cfr.compiling import AnyGame
from spiel_cfr.deep.exact import InfosetTable, matched, softmax
from spiel_cfr.deep.features import Encoder, Features, Float32s
from spiel_cfr.deep.learner import Learner, seed_of
from spiel_cfr.deep.lockstep import LockStep, padded
from spiel_cfr.deep.network import MLP, Approximator, Rows, Training, layer_sizes, libraries
from spiel_cfr.deep.policies import AveragePolicy, Kept, NetworkPolicy
from spiel_cfr.game.view import GameView
from spiel_cfr.kernels.arrays import Bools, Float64s, Int64s, require
from spiel_cfr.policy import CompiledTabularPolicy
from spiel_cfr.sampling.base import DEFAULT_MAX_NODES, SamplingSolver
from spiel_cfr.sampling.draws import ITERATIONS, KEY
from spiel_cfr.sampling.engines.base import Scheme
from spiel_cfr.sampling.engines.compiled import CompiledEngine
from spiel_cfr.sampling.options import EngineName
from spiel_cfr.sampling.rules import AverageType, Rule, Sampler
from spiel_cfr.sampling.updates import average_all
from spiel_cfr.slices import whole_steps
from spiel_cfr.solvers.numbers import exclusive
from spiel_cfr.solvers.off_path import Unreached

SamplerName = Literal["external", "outcome"]
# What a network is for: its place among a player's, and a part of its seed.
ADVANTAGES, INSTANT, POLICY = 0, 1, 9


class Options(TypedDict, total=False):
  """Arguments that all deep solvers take, see `DeepSolver`."""

  sampler: SamplerName
  epsilon: float
  network: Approximator | None
  features: Features
  greedy: bool
  seed: int | np.random.Generator | None
  engine: EngineName | None
  max_nodes: int


class DeepSolver(SamplingSolver):
  """A Monte Carlo solver whose advantages are learned by networks.

  An iteration is, for each player in turn, `num_traversals` traversals under strategies that stay, and a fit of that
  player's networks to what they have estimated.
  """

  state_names = (
    *SamplingSolver.state_names,
    "_sums",
    "_visits",
    "_strategy_sums",
    "_parameters",
    "_scales",
  )
  # How many networks a player has.
  _networks = 1

  def __init__(
    self,
    game: AnyGame,
    policy_network_layers: Sequence[int],
    advantage_network_layers: Sequence[int],
    num_traversals: int,
    learning_rate: float,
    batch_size_advantage: int | None,
    batch_size_strategy: int | None,
    memory_capacity: int,
    policy_network_train_steps: int,
    advantage_network_train_steps: int,
    average_power: float,
    baseline_rate: float,
    *,
    sampler: SamplerName = "external",
    epsilon: float = 0.6,
    network: Approximator | None = None,
    features: Features = "tensor",
    greedy: bool = True,
    seed: int | np.random.Generator | None = None,
    engine: EngineName | None = None,
    max_nodes: int = DEFAULT_MAX_NODES,
  ) -> None:
    """Makes the solver; what has a default here is what all deep solvers take.

    Args:
      game: a game, its string, or a compiled game.
      policy_network_layers: how many units each hidden layer of the network has that is distilled from the average.
      advantage_network_layers: likewise, of the networks that learn advantages.
      num_traversals: how many an iteration makes for each player.
      learning_rate: of Adam.
      batch_size_advantage: how many samples are drawn for a step; None takes all.
      batch_size_strategy: likewise, for the policy network.
      memory_capacity: how many samples a reservoir holds; on compiled games memory is exact, and needs none.
      policy_network_train_steps: how many steps are made to distil the average.
      advantage_network_train_steps: how many are made for each fit.
      average_power: the power of t that iteration t weighs in the average.
      baseline_rate: how far baselines move to each new value; 0 for none.
      sampler: "external" explores all actions of the player who learns, "outcome" one, which takes far fewer nodes a
        traversal where games are large.
      epsilon: with "outcome", the probability that the player who learns plays uniformly.
      network: what learns advantages; an `MLP` of `advantage_network_layers` if None.
      features: what it sees of an infoset: OpenSpiel's information state tensor, "one_hot", or what a function of a
        state and the player to move returns.
      greedy: what is played where no advantage is positive: the action of the largest, as in the paper, or all alike.
      seed: of all random numbers, or a generator to draw one from; without one, it is drawn from NumPy's global state.
      engine: "compiled" or "states", see `SamplingSolver`.
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
    arguments.one_of(sampler, "sampler", ("external", "outcome"))
    if network is None:
      network = MLP(layer_sizes(advantage_network_layers, "advantage_network_layers"))
    if not isinstance(network, Approximator):
      raise errors.ArgumentError(
        f"network must be derived from spiel_cfr.deep.network.Approximator, not {network!r}."
      )
    self._network = network
    self._policy_network = MLP(layer_sizes(policy_network_layers, "policy_network_layers"))
    libraries()
    self._num_traversals = arguments.positive_integer(num_traversals, "num_traversals")
    rate = arguments.positive_number(learning_rate, "learning_rate")
    sizes = {
      "batch_size_advantage": batch_size_advantage,
      "batch_size_strategy": batch_size_strategy,
    }
    batches = [
      None if size is None else arguments.positive_integer(size, name)
      for name, size in sizes.items()
    ]
    steps = [
      arguments.integer(count, name, 1, (1 << 31) - 1)
      for name, count in (
        ("advantage_network_train_steps", advantage_network_train_steps),
        ("policy_network_train_steps", policy_network_train_steps),
      )
    ]
    self._advantage_training = Training(steps[0], rate, batches[0], (0, 0))
    self._policy_training = Training(steps[1], rate, batches[1], (0, 0), policy=True)
    self._memory_capacity = arguments.positive_integer(memory_capacity, "memory_capacity")
    self._greedy = bool(greedy)
    rate_of_baselines = arguments.real_number(baseline_rate, "baseline_rate", 0.0, 1.0)
    self._learns_baselines = rate_of_baselines > 0.0
    self._features = features
    exploration = arguments.real_number(
      arguments.positive_number(epsilon, "epsilon"), "epsilon", 0.0, 1.0
    )
    chosen = Sampler(Rule.EVERY_ACTION, Rule.BY_STRATEGY)
    if sampler == "outcome":
      chosen = Sampler(Rule.BY_EXPLORING_STRATEGY, Rule.BY_STRATEGY, (exploration,))
    scheme = Scheme(chosen, AverageType.FULL, baseline_rate=rate_of_baselines)
    super().__init__(
      game,
      scheme,
      seed=seed,
      average_weights=average_power,
      engine=engine,
      max_nodes=max_nodes,
    )

  def _state_engine(self, view: GameView, scheme: Scheme, max_infosets: int) -> Any:
    return LockStep(
      view, Encoder(view, self._features), scheme, self._first_counters, self._memory_capacity
    )

  def _start(self) -> None:
    super()._start()
    if self.engine == "compiled":
      assert isinstance(self._engine, CompiledEngine)
      if not hasattr(self, "_table"):
        self._table = InfosetTable(self._engine, Encoder(self._engine.view, self._features))
      count = len(self._engine.table.entries.regret)
      # What samples add up to, and what they weigh; the same of strategies.
      self._sums, self._visits, self._strategy_sums = (np.zeros(count) for _ in range(3))
      num_players, num_outputs = len(self._table.players), self._table.num_outputs
      self._num_features = self._table.features.shape[1]
    else:
      engine: Any = self._engine
      num_players, num_outputs = engine.view.num_players, engine.num_outputs
      self._num_features = engine.encoder.size
      # The networks of all iterations, a list per player.
      self._past: list[list[Kept]] = [[] for _ in range(num_players)]
    self._learner = Learner(
      self._network,
      self._advantage_training,
      int(self._counters[KEY]),
      num_players,
      self._networks + self._learns_baselines,
      self._num_features,
      num_outputs,
    )
    self._parameters, self._scales = self._learner.parameters, self._learner.scales

  def __copy__(self) -> Self:
    """Returns a solver that goes on by itself from where this one is."""
    if self.engine == "compiled":
      return super().__copy__()
    result = self.restarted()
    # Together, because the engine counts in the solver's counters.
    names = ("_counters", "_logarithms", "_engine", "_past", "_learner", "_parameters", "_scales")
    values = copy.deepcopy([getattr(self, name) for name in names])
    result.__dict__.update(zip(names, values, strict=True))
    return result

  def _check_state(self, state: Mapping[str, Any]) -> None:
    super()._check_state(state)
    for name in ("_sums", "_visits", "_strategy_sums", "_parameters", "_scales"):
      require(np.isfinite(state[name]), f"{name} is finite")
    for name in ("_visits", "_strategy_sums", "_scales"):
      require(state[name] >= 0, f"{name} is not negative")

  # What networks say.

  def _chances(self, player: int, features: Float32s, mask: Bools, iteration: int) -> Float64s:
    """Returns what a player plays after so many iterations, shape (rows, actions)."""
    outputs = [self._learner.outputs(player, number, features) for number in range(self._networks)]
    return self._play(np.array(outputs), mask, iteration)

  def _play(self, outputs: Float64s, mask: Bools, iteration: int | Int64s) -> Float64s:
    """Returns what is played where networks say this, see `_scores`."""
    return matched(self._scores(outputs, iteration), mask, self._tie, self._greedy)

  @abc.abstractmethod
  def _learn(self, player: int, rows: Rows, iteration: int) -> None:
    """Fits a player's networks to samples: mean advantages at infosets, and what these weigh."""

  def _scores(self, outputs: Float64s, iteration: int | Int64s) -> Float64s:
    """Returns what regret matching is applied to after an iteration.

    Args:
      outputs: what the player's networks say, shape (networks, ..., actions).
      iteration: how many iterations have been done; an array if that differs.
    """
    advantages: Float64s = outputs[ADVANTAGES]
    return advantages

  # Iterations.

  @exclusive
  def _advance(self, count: int) -> None:
    whole_steps(lambda number, last: self._iterate(), count)

  def _iterate(self) -> None:
    # Checks the weight of the average, and brings sums of logarithms up to date.
    weight = float(self._next_batch(1).weights[0])
    iteration = int(self._counters[ITERATIONS]) + 1
    for player in range(len(self._parameters)):
      if self.engine == "compiled":
        self._iterate_compiled(player, iteration)
      else:
        self._iterate_on_states(player, iteration, weight)
    if self.engine == "compiled":
      table = self._engine.table
      average_all(len(self._parameters), table.num_infosets, weight, table.entries)
    self._counters[ITERATIONS] += np.uint64(1)

  def _iterate_compiled(self, player: int, iteration: int) -> None:
    """Samples, fits, and writes what the networks then say into the table."""
    assert isinstance(self._engine, CompiledEngine)
    table, entries = self._table, self._engine.table.entries
    own, here = table.players[player], table.entries_of(player)
    if self._forgets:
      self._sums[here] = self._visits[here] = 0.0
    if self._learns_baselines:
      self._set_baselines(player)
    summed = entries._replace(regret=self._sums, cumulative=self._strategy_sums)
    weight = self._sample_weight(iteration)
    self._engine.sample_advantages(player, self._num_traversals, weight, summed, self._visits)
    if self._learns_baselines:
      self._learn_baselines(player, iteration)
    self._learn(player, table.samples(self._sums, self._visits, entries, player), iteration)
    features, mask = table.features[own], table.mask[own]
    advantages = self._learner.outputs(player, ADVANTAGES, features)
    entries.regret[here] = table.as_entries(advantages, own)
    entries.strategy[here] = table.as_entries(self._chances(player, features, mask, iteration), own)

  def _set_baselines(self, player: int) -> None:
    """Writes what a network expects of every action, whoever takes it, into the player's baselines."""
    table = self._table
    values = self._learner.outputs(player, self._networks, table.features)
    everybody = slice(0, len(values))
    self._baseline[player, len(table.players) :] = table.as_entries(values, everybody)

  def _learn_baselines(self, player: int, iteration: int) -> None:
    """Fits that network to where the traversals have moved the baselines."""
    table = self._table
    values = table.as_rows(self._baseline[player], slice(0, len(table.features)))
    rows = Rows(table.features, values, table.mask, np.ones(len(values)))
    self._learner.fit(player, self._networks, rows, iteration)

  def _iterate_on_states(self, player: int, iteration: int, weight: float) -> None:
    """Samples, fits, and keeps the networks for the average."""
    engine: Any = self._engine

    def strategies(mover: int, features: Float32s, mask: Bools) -> Float64s:
      done = iteration if mover < player else iteration - 1
      rows, count = padded(features), len(features)
      legal = np.zeros((len(rows), self._learner.num_outputs), bool)
      legal[:count], legal[count:, 0] = mask, True
      return self._chances(mover, rows, legal, done)[:count]

    if self._forgets:
      engine.advantages[player].clear()
    engine.sample(player, self._num_traversals, self._sample_weight(iteration), strategies)
    self._learn(player, engine.advantages[player].rows(), iteration)
    parameters, scales = self._parameters[player].copy(), self._scales[player].copy()
    self._past[player].append(Kept(parameters, scales, weight, iteration))

  # Samples of this iteration only are fitted.
  _forgets = False

  def _sample_weight(self, iteration: int) -> float:
    """Returns what samples of an iteration weigh."""
    return 1.0

  # Policies.

  def average_policy(self, unreached: Unreached = "uniform") -> Any:
    """Returns the average policy of all iterations: exactly, on states too, where all networks are asked.

    On states, it stays as it is when the solver moves on.
    """
    if self.engine == "compiled" or unreached != "uniform":
      return super().average_policy(unreached)
    return self._policy_of(self._past)

  def current_policy(self) -> Any:
    """Returns the current policy; on states, it stays as it is when the solver moves on."""
    if self.engine == "compiled":
      return super().current_policy()
    return self._policy_of([own[-1:] for own in self._past])

  def _policy_of(self, past: list[list[Kept]]) -> AveragePolicy:
    """Returns the average policy of some networks a player."""
    engine: Any = self._engine
    return AveragePolicy(engine.view, engine.encoder, self._network, past, self._play)

  def network_policy(self) -> Any:
    """Returns the average policy as one network a player has learned it, from the strategies that samples met.

    That is Deep CFR's own result. `average_policy` is the exact average instead, which is better and slower to ask.
    """
    parameters = []
    for player in range(len(self._parameters)):
      seed = seed_of(int(self._counters[KEY]), int(self.iteration), player, POLICY)
      training = self._policy_training._replace(seed=seed)
      first = self._policy_network.fresh(seed, self._num_features, self._learner.num_outputs)
      parameters.append(self._policy_network.fitted(first, self._strategy_rows(player), training))
    if self.engine == "states":
      engine: Any = self._engine
      return NetworkPolicy(engine.view, engine.encoder, self._policy_network, parameters)
    compiled, table = self.compiled_game, self._table
    entries = np.zeros(len(compiled.all_action_sequences))
    for player, own in enumerate(table.players):
      logits = self._policy_network.outputs(
        parameters[player], table.features[own], self._learner.num_outputs
      )
      here = table.entries_of(player)
      place = slice(here.start - len(table.players), here.stop - len(table.players))
      entries[place] = table.as_entries(softmax(logits, table.mask[own]), own)
    probabilities = np.zeros(compiled.end)
    probabilities[compiled.all_action_sequences] = entries
    return CompiledTabularPolicy(compiled, probabilities)

  def _strategy_rows(self, player: int) -> Rows:
    if self.engine == "compiled":
      return self._table.strategies(self._strategy_sums, player)
    rows: Rows = self._engine.strategies[player].rows()  # type: ignore[attr-defined]
    return rows
