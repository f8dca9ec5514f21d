"""What all Monte Carlo solvers are: a sampler and a way to average, on one of two engines.

Every iteration makes one traversal per player, and players update in turn.
"""

import copy
import functools
from collections.abc import Mapping
from typing import Any, ClassVar, Self, get_args

import numpy as np
import pyspiel
from open_spiel.python import policy as open_spiel_policy

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr._util.time_slices import Slices
from spiel_cfr.cfr.exclusive import exclusive
from spiel_cfr.cfr.iteration_schedule import check_weights
from spiel_cfr.cfr.legacy import LegacySolver
from spiel_cfr.cfr.off_path import Unreached
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.loading import load_game
from spiel_cfr.games.payoffs.utility_bounds import check_payoffs
from spiel_cfr.mccfr.engines.compiled_engine import compile_engine
from spiel_cfr.mccfr.engines.engine import Engine, Scheme
from spiel_cfr.mccfr.engines.state_engine import StateEngine
from spiel_cfr.mccfr.iterations import Iterations
from spiel_cfr.mccfr.options import EngineName
from spiel_cfr.mccfr.random_draws import ITERATIONS, KEY, VISITED, new_counters
from spiel_cfr.mccfr.sampled_policy import SampledPolicy, normalized
from spiel_cfr.mccfr.snapshot import Snapshot
from spiel_cfr.mccfr.updates import Batch
from spiel_cfr.policies import forms, open_spiel
from spiel_cfr.regret_minimizers.regret_matching import RegretMatching
from spiel_cfr.regret_minimizers.regret_minimizer import TIE, RegretMinimizer
from spiel_cfr.regret_minimizers.schedules import Numbers, Power, Schedule, evaluated

DEFAULT_MAX_NODES = 500_000
DEFAULT_MAX_INFOSETS = 2_000_000
# Stands for the logarithm of 0; its exponential is 0.
_LEAST_LOGARITHM = -1000.0


class SamplingSolver(LegacySolver):
  """A Monte Carlo solver: a sampler, a way to average, a regret minimizer.

  It is used as OpenSpiel's are, with `solver.iteration()` or, faster, `solver.run(1000)`; and as all solvers here are,
  where `solver.iteration` is the number of iterations done. Runs and traces need a compiled game, checkpoints the
  compiled engine.

  Attributes:
    engine: "compiled" or "states".
    minimizer: what every infoset does.
  """

  state_names: ClassVar[tuple[str, ...]] = (
    "_counters",
    "_logarithms",
    "_regret",
    "_strategy",
    "_cumulative",
    "_caught_up",
    "_baseline",
  )

  def __init__(
    self,
    game: AnyGame,
    scheme: Scheme,
    *,
    seed: int | np.random.Generator | None = None,
    minimizer: RegretMinimizer | None = None,
    average_weights: Numbers = 0.0,
    engine: EngineName | None = None,
    max_nodes: int = DEFAULT_MAX_NODES,
    max_infosets: int = DEFAULT_MAX_INFOSETS,
  ) -> None:
    """Makes the solver.

    Args:
      game: a game, its string, or a compiled game of any form, which is sampled as it was compiled.
      scheme: what to sample and how to average.
      seed: of all random numbers, or a generator to draw one from. The same seed gives the same policy on any machine.
        Without one, it is drawn from NumPy's global state, so that `np.random.seed` decides as it does in OpenSpiel.
      minimizer: regret matching if None, or regret matching+ or discounted regret matching.
      average_weights: what iteration t weighs in the average: a schedule, or a power of t. 1 is the same as to multiply
        the average by t / (t + 1) after each iteration.
      engine: "compiled" samples arrays made of the whole game; "states" samples OpenSpiel's states and remembers the
        infosets met. None samples arrays where the game has at most `max_nodes` histories and perfect recall.
      max_nodes: how many histories the arrays may hold. A compiled game that lists its states may have more.
      max_infosets: how many infosets the state engine may remember, at about 0.6 kB each.

    Raises:
      GameError: the game can't be loaded or sampled; see `compile_game`.
      GameTooLargeError: `engine` is "compiled", and there are more than `max_nodes` histories.
      InconsistentInfosetError: a compiled game is not the game that it was made of, as when it had an action filter and
        was read from a file.
      ArgumentError: an argument makes no sense.
    """
    if engine is not None:
      arguments.one_of(engine, "engine", get_args(EngineName), " or None")
    arguments.positive_integer(max_infosets, "max_infosets")
    max_nodes = arguments.positive_integer(max_nodes, "max_nodes")
    self._weights = (
      average_weights if isinstance(average_weights, Schedule) else Power(average_weights)
    )
    chosen = RegretMatching() if minimizer is None else minimizer
    if not isinstance(chosen, RegretMatching) or chosen.discounts(np.arange(1, 2)) is None:
      raise errors.ArgumentError(
        f"{chosen} can't be used with Monte Carlo solvers, which need RegretMatching without "
        "predictions, that keeps negative regrets or forgets them."
      )
    self.minimizer = chosen
    self._first_counters = new_counters(seed)
    self._compiled = game if isinstance(game, CompiledGame) else None
    self._engine: Engine
    compiled_engine, required = None, engine == "compiled"
    if engine != "states":
      compiled_engine = compile_engine(game, scheme, self._first_counters, max_nodes, required)
    if compiled_engine is None:
      self.engine: EngineName = "states"
      view = self._compiled.view if self._compiled else GameView(load_game(game))
      self._engine = self._state_engine(view, scheme, max_infosets)
    else:
      self.engine = "compiled"
      self._compiled, self._engine = compiled_engine.compiled_game, compiled_engine
    bounds = self.game.min_utility(), self.game.max_utility()
    check_payoffs(str(self.game), self._compiled.payoff_range if self._compiled else bounds)
    self._tie = TIE * (bounds[1] - bounds[0])
    self._start()

  def _state_engine(self, view: GameView, scheme: Scheme, max_infosets: int) -> Engine:
    """Returns what samples games that are not compiled."""
    return StateEngine(view, scheme, self._first_counters, max_infosets)

  def _start(self) -> None:
    self._slices = Slices()
    self._counters = self._first_counters.copy()
    # The sums of the logarithms of all discounts, and the iteration up to which they go.
    self._logarithms = np.zeros(3)
    self._engine = self._engine.fresh(self._counters)
    if self.engine == "compiled":
      entries = self._engine.table.entries
      self._regret, self._strategy = entries.regret, entries.strategy
      self._cumulative = entries.cumulative
      self._caught_up, self._baseline = entries.caught_up, entries.baseline

  def _loaded(self) -> None:
    """Makes a solver that is restarted draw what the loaded one has drawn."""
    # A copy, since pickled arrays may be read-only, and copies of a solver have the same ones.
    self._first_counters = self._first_counters.copy()
    self._first_counters[KEY] = self._counters[KEY]

  def __repr__(self) -> str:
    """Returns one line: class, game, engine, iterations done."""
    game = self.game if self._compiled is None else self._compiled
    return (
      f"<{type(self).__name__} of {game}, engine {self.engine}, iteration {int(self.iteration):,}>"
    )

  def __copy__(self) -> Self:
    """Returns a solver that goes on by itself from where this one is."""
    if self.engine == "compiled":
      return super().__copy__()
    result = self.restarted()
    # Together, because the engine counts in the solver's counters.
    parts = copy.deepcopy((self._counters, self._logarithms, self._engine))
    result._counters, result._logarithms, result._engine = parts
    return result

  def __getstate__(self) -> dict[str, Any]:
    """Returns what is pickled."""
    if self.engine == "compiled":
      return super().__getstate__()
    return {name: value for name, value in self.__dict__.items() if name != "_policies"}

  @property
  def compiled_game(self) -> CompiledGame:
    """The game as arrays.

    Raises:
      UnsupportedGameError: the solver works on states, and was not given a compiled game.
    """
    if self._compiled is None:
      raise errors.UnsupportedGameError(
        "The solver works on states, and this needs a compiled game: give it what compile_game "
        "returns, with a large enough max_nodes, if there is the time and the memory."
      )
    return self._compiled

  @compiled_game.setter
  def compiled_game(self, game: CompiledGame) -> None:
    raise AttributeError("A solver keeps its game.")

  @property
  def game(self) -> pyspiel.Game:
    """The game, sequential, without an action filter."""
    return self._engine.view.game

  @property
  def iteration(self) -> Iterations:
    """How many iterations have been done; `iteration()` does one more."""
    done = Iterations(self._counters[ITERATIONS])
    done.one_more = functools.partial(self._advance, 1)
    return done

  @iteration.setter
  def iteration(self, number: int) -> None:
    raise AttributeError("What was sampled depends on all iterations: none can be left out.")

  @property
  def nodes_touched(self) -> int:
    """How many nodes, chance and terminal ones included, the traversals have visited."""
    return int(self._counters[VISITED])

  def prepare(self) -> None:
    """Compiles kernels or takes them from disk, so that the first iteration is not slower than others."""
    self._advance(0)

  def run(self, iterations: int) -> None:
    """Does many iterations: the same numbers as single ones.

    Ctrl-C raises KeyboardInterrupt; the solver can go on from there, on the state engine with baselines that may have
    moved already.

    Raises:
      ArgumentError: `iterations` is not a positive integer.
      GameTooLargeError: the state engine has met more infosets than it may remember.
      ConcurrentUseError: it runs already, in another thread.
      NotFiniteError: the weights of the average would leave the range of floating-point numbers.
    """
    for count in self._slices(arguments.positive_integer(iterations, "iterations")):
      self._advance(count)

  @exclusive
  def _advance(self, count: int) -> None:
    self._engine.run(self._next_batch(count))

  def _next_batch(self, count: int) -> Batch:
    """Returns what the engine has to know of the next iterations."""
    done = int(self._counters[ITERATIONS])
    known = int(self._logarithms[0])
    iterations = np.arange(known + 1, done + count + 1)
    with np.errstate(divide="ignore"):
      logarithms = np.log(self.minimizer.discounts(iterations))  # type: ignore[arg-type]
    logarithms = np.maximum(logarithms, _LEAST_LOGARITHM)
    logarithms = np.cumsum(np.vstack([self._logarithms[1:], logarithms]), axis=0)[done - known :]
    self._logarithms[:] = done, *logarithms[0]
    weights = evaluated(self._weights, iterations[done - known :])
    check_weights(weights, count, float(self._engine.table.entries.cumulative[0]))
    return Batch(
      logarithms=logarithms[1:],
      weights=weights,
      discounting=bool(logarithms.any()),
      forgets_negative=self.minimizer.forgets_negative,
      tie=self._tie,
    )

  @property
  def num_infosets(self) -> int:
    """How many infosets there are, or on the state engine, how many have been met."""
    return self._engine.table.num_infosets

  @property
  def num_bytes(self) -> int:
    """Memory of what is kept of the infosets, their names not counted."""
    return self._engine.table.num_bytes

  def state_dict(self) -> dict[str, Any]:
    """Returns a copy of all that changes from one iteration to the next, by name.

    Raises:
      UnsupportedGameError: the solver works on states.
    """
    if self.engine == "states":
      raise errors.UnsupportedGameError(
        "The solver works on states and adds infosets as it meets them, which checkpoints can't "
        'hold: make it with engine="compiled".'
      )
    # Brings the sums of logarithms up to the iterations done, however those were divided into runs.
    self._next_batch(0)
    return super().state_dict()

  def _check_state(self, state: Mapping[str, Any]) -> None:
    super()._check_state(state)
    self._engine.table.check(state)

  def average_policy(self, unreached: Unreached = "uniform") -> open_spiel_policy.Policy:
    """Returns the average policy, uniform where the samples have never been; as in OpenSpiel, it moves with the solver.

    It can be called on any state where a player is to move; `to_tabular()`, on states, walks the whole game.
    `copy.copy` keeps it as it is.
    """
    if unreached != "uniform":
      return super().average_policy(unreached)
    if self.engine == "states":
      return SampledPolicy(self._engine.view, self._engine, "cumulative")
    return self._hand_out("average", self.average_probabilities, self._version)

  def current_policy(self) -> open_spiel_policy.Policy:
    """Returns the current policy, which need not converge; it moves with the solver, as the average does."""
    if self.engine == "states":
      return SampledPolicy(self._engine.view, self._engine, "strategy")
    return super().current_policy()

  def average_probabilities(self) -> Float64s:
    """Returns the average policy of a compiled game in behavioural form, shape (sequences,).

    Raises:
      UnsupportedGameError: the solver works on states, and was not given a compiled game.
    """
    return self._behavioral_form(self._engine.table.entries.cumulative)

  def current_probabilities(self) -> Float64s:
    """Returns the current policy of a compiled game in behavioural form, shape (sequences,).

    Raises:
      UnsupportedGameError: the solver works on states, and was not given a compiled game.
    """
    return self._behavioral_form(self._engine.table.entries.strategy)

  def _behavioral_form(self, sums: Float64s) -> Float64s:
    compiled = self.compiled_game
    return forms.behavioral_form(compiled, compiled.from_actions(self._in_order(sums)))

  def _in_order(self, sums: Float64s) -> Float64s:
    """Returns the entries of the actions of a compiled game, in order of discovery; 0 where nothing has been met."""
    compiled, first = self.compiled_game, self._engine.table.entries.first
    if self.engine == "compiled":
      return sums[compiled.num_players + compiled.shared_entries]
    result, begin = np.zeros(len(compiled.all_action_sequences)), 0
    for infostates, num_actions, met in zip(
      compiled.infostates, compiled.num_actions, self._engine.infostates, strict=True
    ):
      for infostate, count in zip(infostates, num_actions.tolist(), strict=True):
        infoset = met.get(infostate)
        if infoset is not None:
          result[begin : begin + count] = sums[first[infoset] :][:count]
        begin += count
    return result

  def average_policy_dict(self) -> open_spiel.PolicyDict:
    """Returns the average policy as infostate -> action -> probability, on the state engine where it has been."""
    return self._policy_dict(self._engine.table.entries.cumulative)

  def current_policy_dict(self) -> open_spiel.PolicyDict:
    """Returns the current policy as infostate -> action -> probability, on the state engine where it has been."""
    return self._policy_dict(self._engine.table.entries.strategy)

  def _policy_dict(self, sums: Float64s) -> open_spiel.PolicyDict:
    if self.engine == "compiled":
      return open_spiel.to_dict(self.compiled_game, self._behavioral_form(sums))
    result: open_spiel.PolicyDict = {}
    for player, infostates in enumerate(self._engine.infostates):
      for infostate, infoset in infostates.items():
        actions = self._engine.legal_actions(player, infostate)
        first = self._engine.table.entries.first.item(infoset)
        probabilities = normalized(sums[first : first + len(actions)]).tolist()
        result[infostate] = dict(zip(actions, probabilities, strict=True))
    return result

  def infostates(self) -> list[list[str]]:
    """Returns the information state strings of each player, on the state engine those met."""
    return [list(infostates) for infostates in self._engine.infostates]

  def snapshot(self, player: int, infostate: str) -> Snapshot:
    """Returns what an infoset does now.

    Raises:
      ArgumentError: there is no such infoset, or it has not been met.
    """
    player = arguments.integer(player, "player", 0, self.game.num_players() - 1)
    infoset = self._engine.infostates[player].get(infostate)
    if infoset is None:
      raise errors.ArgumentError(f"Player {player} has no infoset {infostate!r}, or none met yet.")
    entries = self._engine.table.entries
    actions = list(self._engine.legal_actions(player, infostate))
    first = entries.first.item(infoset)
    here = slice(first, first + len(actions))
    self._next_batch(0)
    idle = np.exp(self._logarithms[1:] - entries.caught_up[:, first])
    regret = entries.regret[here]
    return Snapshot(
      int(self.iteration),
      self.nodes_touched,
      player,
      infostate,
      actions,
      entries.strategy[here].tolist(),
      normalized(entries.cumulative[here]).tolist(),
      (regret * np.where(regret > 0, *idle)).tolist(),
    )
