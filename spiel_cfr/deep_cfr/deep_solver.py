"""What all deep solvers are: samples of fixed strategies, networks fitted to them, and exact averages.

On a compiled game, networks become tables: a network is asked for all infosets at once whenever it has changed, and
the traversals are those of `sampling`, in compiled code.
"""

import abc
from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s, Int64s, require
from spiel_cfr._util import arguments
from spiel_cfr._util.time_slices import whole_steps
from spiel_cfr.cfr.exclusive import exclusive
from spiel_cfr.cfr.legacy import LegacySolver
from spiel_cfr.cfr.off_path import Unreached
from spiel_cfr.deep_cfr import resuming
from spiel_cfr.deep_cfr.deep_options import Hyperparameters, Learning
from spiel_cfr.deep_cfr.exact_memory import InfosetTable, matched, softmax
from spiel_cfr.deep_cfr.features import Encoder, Float32s
from spiel_cfr.deep_cfr.learner import Learner, seed_of
from spiel_cfr.deep_cfr.lockstep import LockStep, padded
from spiel_cfr.deep_cfr.network import Rows, libraries
from spiel_cfr.deep_cfr.network_policies import AveragePolicy, NetworkPolicy
from spiel_cfr.deep_cfr.past_policies import Past, joined, kept, nothing
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.mccfr.engines.compiled_engine import CompiledEngine
from spiel_cfr.mccfr.engines.engine import Scheme
from spiel_cfr.mccfr.options import EngineName
from spiel_cfr.mccfr.random_draws import ITERATIONS, KEY
from spiel_cfr.mccfr.sampling_rules import AverageType
from spiel_cfr.mccfr.sampling_solver import DEFAULT_MAX_NODES, SamplingSolver
from spiel_cfr.mccfr.updates import average_all
from spiel_cfr.policies import CompiledTabularPolicy, from_policy

# What a network is for: its place among a player's, and a part of its seed.
ADVANTAGES, INSTANT, POLICY = 0, 1, 9


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
    average_power: float,
    baseline_rate: float = 0.0,
    *,
    seed: int | np.random.Generator | None = None,
    engine: EngineName | None = None,
    max_nodes: int = DEFAULT_MAX_NODES,
    **learning: Unpack[Learning],
  ) -> None:
    """Makes the solver.

    Args:
      game: a game, its string, or a compiled game.
      average_power: the power of t that iteration t weighs in the average.
      baseline_rate: how far baselines move to each new value; 0 for none.
      seed: of all random numbers, or a generator to draw one from; without one, it is drawn from NumPy's global state.
      engine: "compiled" or "states", see `SamplingSolver`.
      max_nodes: how many histories a game may have to be compiled.
      **learning: see `Hyperparameters`.

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
    self._learning = Hyperparameters(**learning)
    libraries()
    rate = arguments.real_number(baseline_rate, "baseline_rate", 0.0, 1.0)
    self._learns_baselines = rate > 0.0
    super().__init__(
      game,
      Scheme(self._learning.sampled, AverageType.FULL, baseline_rate=rate),
      seed=seed,
      average_weights=average_power,
      engine=engine,
      max_nodes=max_nodes,
    )

  def _state_engine(self, view: GameView, scheme: Scheme, max_infosets: int) -> Any:
    return LockStep(
      view, self._encoder(view), scheme, self._first_counters, self._learning.memory_capacity
    )

  def _encoder(self, view: GameView) -> Encoder:
    return Encoder(view, self._learning.features)

  def _start(self) -> None:
    super()._start()
    if self.engine == "compiled":
      assert isinstance(self._engine, CompiledEngine)
      if not hasattr(self, "_table"):
        self._table = InfosetTable(self._engine, self._encoder(self._engine.view))
      count = len(self._engine.table.entries.regret)
      # What samples add up to, and what they weigh; the same of strategies.
      self._sums, self._visits, self._strategy_sums = (np.zeros(count) for _ in range(3))
      num_players, num_outputs = len(self._table.players), self._table.num_outputs
      self._num_features = self._table.features.shape[1]
    else:
      engine = self._lock_step
      num_players, num_outputs = engine.view.num_players, engine.num_outputs
      self._num_features = engine.encoder.size
    self._learner = Learner(
      self._learning.approximator,
      self._learning.training,
      int(self._counters[KEY]),
      num_players,
      self._networks + self._learns_baselines,
      self._num_features,
      num_outputs,
    )
    self._parameters, self._scales = self._learner.parameters, self._learner.scales
    # On states, the networks of all iterations, a list per player that begins with none of them.
    self._past = [
      [nothing(*networks)] for networks in zip(self._parameters, self._scales, strict=True)
    ]

  @property
  def _lock_step(self) -> LockStep:
    assert isinstance(self._engine, LockStep)
    return self._engine

  __copy__ = LegacySolver.__copy__

  def game_identity(self) -> dict[str, str | None]:
    own = {"game": str(self.game), "game_sha256": None}
    return own if self._compiled is None else super().game_identity()

  # On states there are, besides arrays of the networks, memories that grow.
  _fixed = ("_counters", "_logarithms", "_parameters", "_scales")

  def state_dict(self) -> dict[str, Any]:
    """Returns a copy of all that changes from one iteration to the next, by name: on states, all samples too."""
    if self.engine == "compiled":
      return super().state_dict()
    self._next_batch(0)
    state: dict[str, Any] = {name: getattr(self, name).copy() for name in self._fixed}
    return state | resuming.memories(self._past, self._lock_step.reservoirs)

  @property
  def num_bytes(self) -> int:
    """Memory of what is kept of the infosets; on states of samples and networks, which is what a checkpoint takes."""
    if self.engine == "compiled":
      return super().num_bytes
    return sum(array.nbytes for array in self.state_dict().values())

  def _take_over(self, state: Mapping[str, Any]) -> None:
    if self.engine == "compiled":
      super()._take_over(state)
    else:
      for name in self._fixed:
        np.copyto(getattr(self, name), state[name])
      for player in range(len(self._past)):
        self._past[player] = [Past(**resuming.part(state, f"past.{player}"))]
      for place, reservoir in self._lock_step.reservoirs.items():
        reservoir.take_over(resuming.part(state, place))
      self._loads += 1
      self._loaded()

  def _loaded(self) -> None:
    super()._loaded()
    self._learner.key = int(self._counters[KEY])

  def _check_fits(self, state: Mapping[str, Any]) -> None:
    if self.engine == "compiled":
      super()._check_fits(state)
    else:
      name, reservoirs = type(self).__name__, self._lock_step.reservoirs
      resuming.check_kinds(name, self.state_dict(), state, self._fixed)
      try:
        resuming.check_values(state, len(self._past), reservoirs)
      except ValueError as error:
        raise errors.CheckpointMismatchError(f"That is no state of {name}: {error}.") from None

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
    return matched(self._scores(outputs, iteration), mask, self._tie, self._learning.greedy)

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
    self._engine.sample_advantages(
      player, self._learning.num_traversals, weight, summed, self._visits
    )
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
    engine = self._lock_step

    def strategies(mover: int, features: Float32s, mask: Bools) -> Float64s:
      done = iteration if mover < player else iteration - 1
      rows, count = padded(features), len(features)
      legal = np.zeros((len(rows), self._learner.num_outputs), bool)
      legal[:count], legal[count:, 0] = mask, True
      return self._chances(mover, rows, legal, done)[:count]

    def baselines(features: Float32s) -> Float64s:
      return self._learner.outputs(player, self._networks, padded(features))[: len(features)]

    if self._forgets:
      engine.advantages[player].clear()
    expected = baselines if self._learns_baselines else None
    traversals, sampled = self._learning.num_traversals, self._sample_weight(iteration)
    engine.sample(player, traversals, sampled, strategies, expected)
    if self._learns_baselines:
      self._learner.fit(player, self._networks, engine.baselines[player].rows(), iteration)
    self._learn(player, engine.advantages[player].rows(), iteration)
    now = kept(self._parameters[player], self._scales[player], weight, iteration)
    self._past[player].append(now)

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

  def average_probabilities(self) -> Float64s:
    """Returns the average policy of a compiled game in behavioural form, shape (sequences,).

    Raises:
      UnsupportedGameError: the solver works on states, and was not given a compiled game.
    """
    if self.engine == "compiled":
      return super().average_probabilities()
    return from_policy(self.compiled_game, self.average_policy())

  def current_probabilities(self) -> Float64s:
    """Returns the current policy of a compiled game in behavioural form, shape (sequences,).

    Raises:
      UnsupportedGameError: the solver works on states, and was not given a compiled game.
    """
    if self.engine == "compiled":
      return super().current_probabilities()
    return from_policy(self.compiled_game, self.current_policy())

  # The infosets met are not named here: only a compiled game lists them.
  average_policy_dict = LegacySolver.average_policy_dict
  current_policy_dict = LegacySolver.current_policy_dict

  def _policy_of(self, past: list[list[Past]]) -> AveragePolicy:
    """Returns the average policy of some networks a player."""
    engine = self._lock_step
    network = self._learning.approximator
    return AveragePolicy(engine.view, engine.encoder, network, list(map(joined, past)), self._play)

  def network_policy(self) -> Any:
    """Returns the average policy as one network a player has learned it, from the strategies that samples met.

    That is Deep CFR's own result. `average_policy` is the exact average instead, which is better and slower to ask.
    """
    network, parameters = self._learning.policy_network, []
    for player in range(len(self._parameters)):
      seed = seed_of(int(self._counters[KEY]), int(self.iteration), player, POLICY)
      training = self._learning.policy_training._replace(seed=seed)
      first = network.fresh(seed, self._num_features, self._learner.num_outputs)
      parameters.append(network.fitted(first, self._strategy_rows(player), training))
    if self.engine == "states":
      engine = self._lock_step
      return NetworkPolicy(engine.view, engine.encoder, network, parameters)
    compiled, table = self.compiled_game, self._table
    entries = np.zeros(len(compiled.all_action_sequences))
    for player, own in enumerate(table.players):
      logits = network.outputs(parameters[player], table.features[own], self._learner.num_outputs)
      here = table.entries_of(player)
      place = slice(here.start - len(table.players), here.stop - len(table.players))
      entries[place] = table.as_entries(softmax(logits, table.mask[own]), own)
    probabilities = np.zeros(compiled.end)
    probabilities[compiled.all_action_sequences] = entries
    return CompiledTabularPolicy(compiled, probabilities)

  def _strategy_rows(self, player: int) -> Rows:
    if self.engine == "compiled":
      return self._table.strategies(self._strategy_sums, player)
    return self._lock_step.strategies[player].rows()
