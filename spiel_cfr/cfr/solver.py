"""Base class of all solvers: iteration, policies, evaluation, copies and checkpoints."""

import abc
import os
import re
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Self, get_args

import numpy as np
import pyspiel

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, require
from spiel_cfr._util import arguments
from spiel_cfr._util.time_slices import Slices
from spiel_cfr.cfr import solver_files
from spiel_cfr.cfr.off_path import Unreached, with_best_responses
from spiel_cfr.cfr.policy_objects import PolicyObjects
from spiel_cfr.cfr.recipes import Recipe, description, recipe_of, register
from spiel_cfr.cfr.snapshot import Snapshot, owner_of, snapshots
from spiel_cfr.cfr.solver_state import as_dict, assign, check_fits
from spiel_cfr.cfr.synchronization import FairMutex, synchronize_overrides, synchronized
from spiel_cfr.evaluation import evaluate
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.policies import forms, open_spiel
from spiel_cfr.policies.tabular_policy import CompiledTabularPolicy, LivePolicy

# The name of the state among the attributes of a pickled solver.
_STATE = "state"
# The attributes that are not part of the configuration; a copy makes its own.
_NOT_CONFIGURATION = ("_runtime", "_policies", "_num_loads", "_mutex", "_slices")


class Solver(abc.ABC):
  """Base class of all solvers: a configuration that never changes, and one state that iterations change.

  A subclass implements the abstract methods. Its constructor stores the configuration and calls `reset`, which makes
  `_runtime`: the state, and the objects that work on it. Threads may share a solver, see `synchronization`.

  Methods come in four groups: iterations, policies, inspection and evaluation, copies and checkpoints.

  Attributes:
    compiled_game: the game as arrays.
    iteration: the number of iterations done.
    recipe: the constructor or function that made the solver, and its arguments.
  """

  compiled_game: CompiledGame
  iteration: int
  recipe: Recipe
  # The state, and the objects that work on it; None until the constructor calls `reset`.
  _runtime: Any = None
  # The number of times that the state was replaced. Policy objects compare it to see whether they are out of date.
  _num_loads = 0
  _policies: PolicyObjects
  _mutex: FairMutex
  _slices: Slices

  def __init_subclass__(cls, **arguments: Any) -> None:
    super().__init_subclass__(**arguments)
    register(cls.__name__, cls)
    synchronize_overrides(cls)

  def __new__(cls, *arguments: Any, **named: Any) -> Self:
    """Makes the attributes that every copy has for itself, and records the recipe."""
    solver = super().__new__(cls)
    solver._policies, solver._mutex, solver._slices = PolicyObjects(), FairMutex(), Slices()
    solver.recipe = recipe_of(cls, arguments, named)
    return solver

  @property
  def game(self) -> pyspiel.Game:
    """The OpenSpiel game; in turn-based form if the original has simultaneous moves."""
    return self.compiled_game.game

  # Iterations.

  @property
  @abc.abstractmethod
  def state(self) -> Any:
    """Everything that iterations change, see `solver_state`. Some arrays may be out of date, see `complete_state`.

    Call `refresh` after writing to it.
    """

  def complete_state(self) -> Any:
    """Returns the state with all arrays up to date.

    Between iterations, a full-width solver leaves out the numbers of forced moves, and those that other processes hold.
    """
    return self.state

  @synchronized
  @abc.abstractmethod
  def reset(self) -> None:
    """Returns the solver to its state before the first iteration. Locked infosets stay locked."""

  @synchronized
  def refresh(self) -> None:
    """Brings arrays and objects that depend on the state up to date, after the caller has written to the state."""
    self._num_loads += 1

  @synchronized
  @abc.abstractmethod
  def _advance(self, count: int) -> None:
    """Runs `count` iterations: in `run`, as many as take about a tenth of a second, and at least one."""

  @synchronized
  def evaluate_and_update_policy(self) -> None:
    """Runs one iteration."""
    self._advance(1)

  def run(self, iterations: int) -> None:
    """Runs this many more iterations; `spiel_cfr.run` counts from the solver's first iteration instead.

    Ctrl-C raises KeyboardInterrupt after a whole iteration.

    Args:
      iterations: the number of iterations to add to those done.

    Raises:
      ArgumentError: `iterations` is not a positive integer.
      NotFiniteError: a number became NaN or infinite. If this is detected before an update, the solver is unchanged.
    """
    for count in self._slices(arguments.positive_integer(iterations, "iterations")):
      self._advance(count)

  @property
  @abc.abstractmethod
  def nodes_touched(self) -> int:
    """The number of states that a recursive implementation would have visited so far."""

  @synchronized  # noqa: B027
  def prepare(self) -> None:
    """Compiles the kernels of an iteration, or loads them from disk, so that no later iteration waits for that."""

  def trace_columns(self) -> dict[str, float]:
    """Returns the solver's additional columns in the trace of a run, by name; see `Row`."""
    return {}

  # Policies.

  @synchronized
  @abc.abstractmethod
  def current_probabilities(self) -> Float64s:
    """Returns a copy of the current policy in behavioral form, shape (sequences,)."""

  @synchronized
  @abc.abstractmethod
  def average_probabilities(self) -> Float64s:
    """Returns the average policy in behavioral form, shape (sequences,); uniform at infosets never reached."""

  def probabilities_in(self, game: CompiledGame) -> Float64s | None:
    """Returns the average policy in behavioral form; None if `game` is another game. See `open_spiel.HasArray`."""
    is_same = open_spiel.is_same_game(game, self.compiled_game)
    return self.average_probabilities() if is_same else None

  @synchronized
  def current_sequence_form(self) -> Float64s:
    """Returns the current policy in sequence form, shape (sequences,)."""
    return forms.sequence_form(self.compiled_game, self.current_probabilities())

  @synchronized
  def average_sequence_form(self) -> Float64s:
    """Returns the average policy in sequence form, shape (sequences,), in the precision of the game."""
    return forms.sequence_form(self.compiled_game, self.average_probabilities())

  @synchronized
  def current_policy(self) -> Any:
    """Returns the current policy, which need not converge, as OpenSpiel's Python class.

    As in OpenSpiel, every call returns the same object, which changes with the solver. `copy.copy` makes a constant
    copy.
    """
    source = LivePolicy(self.current_probabilities, self._version)
    return self._policies.up_to_date("current", self.compiled_game, source)

  @synchronized
  def average_policy(self, unreached: Unreached = "uniform") -> Any:
    """Returns the average policy, which in two-player zero-sum games converges to a Nash equilibrium.

    The policy is an object of OpenSpiel's Python class. As in OpenSpiel, every call returns the same object, and only
    this call updates it. `copy.copy` makes a constant copy.

    Args:
      unreached: the policy at infosets that their owner never reaches: "uniform", as in OpenSpiel, or a
        "best_response", see `off_path.with_best_responses`. "best_response" makes a new object.

    Raises:
      ArgumentError: `unreached` is neither of the two.
    """
    arguments.one_of(unreached, "unreached", get_args(Unreached))
    if unreached == "uniform":
      source = LivePolicy(self.average_probabilities, None)
      return self._policies.up_to_date("average", self.compiled_game, source)
    probabilities = with_best_responses(self.compiled_game, self.average_sequence_form())
    return CompiledTabularPolicy(self.compiled_game, probabilities)

  def _version(self) -> Hashable:
    """Returns a value that changes whenever the policies may have changed."""
    return int(self.iteration), self._num_loads

  def tabular_average_policy(self) -> pyspiel.TabularPolicy:
    """Returns a copy of the average policy as OpenSpiel's C++ class. OpenSpiel has the same name."""
    return open_spiel.to_pyspiel(self.compiled_game, self.average_probabilities())

  def tabular_current_policy(self) -> pyspiel.TabularPolicy:
    """Returns a copy of the current policy as OpenSpiel's C++ class."""
    return open_spiel.to_pyspiel(self.compiled_game, self.current_probabilities())

  def average_policy_dict(self) -> open_spiel.PolicyDict:
    """Returns a copy of the average policy as infostate -> action -> probability."""
    return open_spiel.to_dict(self.compiled_game, self.average_probabilities())

  def current_policy_dict(self) -> open_spiel.PolicyDict:
    """Returns a copy of the current policy as infostate -> action -> probability."""
    return open_spiel.to_dict(self.compiled_game, self.current_probabilities())

  # Inspection and evaluation.

  @synchronized
  def infostates(self) -> list[list[str]]:
    """Returns the information state strings of each player, in the order of OpenSpiel's policies."""
    return [list(infostates) for infostates in self.compiled_game.infostates]

  @synchronized
  def cumulative_regrets(self) -> Float64s | None:
    """Returns R(I, a), the cumulative regret of each action, in the order of `CompiledGame.actions`; see `Snapshot`.

    The players' regrets are concatenated. The result is None if the solver keeps no regrets, as first-order methods.
    """
    return None

  @synchronized
  def snapshot(self, infostate: str, player: int | None = None) -> Snapshot:
    """Returns the cumulative regrets, the current and the average strategy, and the reach of an infoset.

    Args:
      infostate: the information state string.
      player: the owner; needed only if several players have an infoset of this name.

    Raises:
      ArgumentError: there is no such infoset, or the solver has not met it yet, or several players have one.
    """
    owner = owner_of(self.infostates(), infostate, player)
    return snapshots(self, [(owner, infostate)])[0]

  @synchronized
  def snapshots(self, pattern: str | re.Pattern[str] = "") -> list[Snapshot]:
    """Returns the snapshots of all infosets whose names match a regular expression, player by player.

    Raises:
      ArgumentError: `pattern` is not a regular expression.
    """
    matches = arguments.pattern(pattern, "pattern").search
    infosets = [
      (player, infostate)
      for player, infostates in enumerate(self.infostates())
      for infostate in infostates
      if matches(infostate)
    ]
    return snapshots(self, infosets)

  @synchronized
  def nash_conv(self) -> float:
    """Returns the NashConv of the average policy; for an abstraction, in the full game."""
    return evaluate.original_nash_conv(self.compiled_game, self.average_sequence_form())

  def exploitability(self) -> float:
    """Returns the exploitability of the average policy: NashConv / 2.

    Raises:
      UnsupportedGameError: the game is not a constant-sum game of two players.
    """
    evaluate.check_two_player_constant_sum(self.compiled_game)
    return self.nash_conv() / 2

  @synchronized
  def lock(self, policy: open_spiel.AnyPolicy, infostates: Iterable[Any] | None = None) -> None:
    """Keeps the strategies of some infosets fixed in all iterations (node locking).

    The average tends to an equilibrium of the game in which the strategies of these infosets are given. NashConv still
    counts what the owner could gain by changing locked strategies. Predictive minimizers predict as if nothing were
    locked; their guarantees hold for any prediction.

    Args:
      policy: the policy to lock: anything that `policies.from_policy` reads, or a mapping from infostates. With an
        array of sequences, also an array such as `average_probabilities()`.
      infostates: infostates, or an integer array of sequences, of the infosets to lock; by default, the mapping's.

    Raises:
      LockError: the solver is not a full-width solver, iterations have been done, infosets of the game are shared, or
        opponents are best responses.
      PolicyError: an infostate is unknown, or has no distribution.
    """
    raise errors.LockError(
      f"{self!r} can't lock a policy. Use a full-width solver, such as CFRPlusSolver."
    )

  # Copies and checkpoints.

  def __repr__(self) -> str:
    return f"<{self.recipe.name} of {self.compiled_game}, iteration {int(self.iteration):,}>"

  @synchronized
  def __copy__(self) -> Self:
    # The copy has its own state, and shares the configuration.
    result = type(self).__new__(type(self))
    result.__setstate__(self.__getstate__())
    return result

  def __deepcopy__(self, memo: Any) -> Self:
    return self.__copy__()

  def configuration(self) -> dict[str, Any]:
    """Returns the attributes that never change, by name."""
    return {name: value for name, value in self.__dict__.items() if name not in _NOT_CONFIGURATION}

  @synchronized
  def __getstate__(self) -> dict[str, Any]:
    return self.configuration() | {_STATE: self.state_dict()}

  def __setstate__(self, attributes: dict[str, Any]) -> None:
    configuration = dict(attributes)
    state = configuration.pop(_STATE)
    self.__dict__.update(configuration)
    self.reset()
    assign(self.complete_state(), state)
    self.refresh()

  @synchronized
  def state_dict(self) -> dict[str, Any]:
    """Returns a copy of the state, as numbers and arrays by name."""
    return as_dict(self.complete_state())

  @synchronized
  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Replaces the state by the `state_dict` of a solver with the same recipe and game.

    Raises:
      CheckpointMismatchError: `state` is not a state of such a solver. This solver is then unchanged.
    """
    arguments.of_type(state, "state", Mapping)
    check_fits(self.complete_state(), state, self.recipe.name)
    try:
      self._check_state(state)
    except ValueError as error:
      raise errors.CheckpointMismatchError(
        f"That is not a state of {self.recipe.name}: {error}."
      ) from None
    assign(self.complete_state(), state)
    self.refresh()

  def _check_state(self, state: Mapping[str, Any]) -> None:
    """Raises ValueError if no iterations lead to these values; their names, types and shapes are right."""
    for name, value in state.items():
      if isinstance(value, float | np.ndarray):
        require(not np.isnan(value).any(), f"{name} has no NaN")

  def description(self) -> dict[str, Any]:
    """Returns the recipe as JSON; raises ArgumentError if an argument can't be written as JSON."""
    return description(self.recipe)

  def game_identity(self) -> dict[str, str | None]:
    """Returns the string and the digest that identify the game in a checkpoint; no digest before compilation."""
    return {"game": self.compiled_game.game_string, "game_sha256": self.compiled_game.digest}

  @synchronized
  def save(self, path: str | os.PathLike[str]) -> None:
    """Writes a checkpoint. A solver that is restored from it continues bit for bit as if it had never stopped.

    If the process dies, the file is complete or absent. The same solver in the same state writes the same bytes.

    Raises:
      ArgumentError: an argument of the constructor can't be written as JSON.
      OSError: the file can't be written.
    """
    solver_files.save(self, path)

  @synchronized
  def restore(self, path: str | os.PathLike[str]) -> None:
    """Replaces the state by that of a checkpoint of a solver with the same recipe and game.

    It raises the errors of `solver_files.read_state`; this solver is then unchanged.
    """
    self.load_state_dict(solver_files.read_state(self, path))

  @staticmethod
  def load(path: str | os.PathLike[str], game: AnyGame) -> "Solver":
    """Makes the solver of a checkpoint, of any class. Import modules with classes of your own first.

    It raises the errors of `solver_files.read_state`, and those of `compile_game` for `game`.
    """
    solver: Solver = solver_files.load(path, game)
    return solver
