"""Base class of all solvers: iteration, policies, evaluation, copies and checkpoints."""

import abc
import os
import re
import weakref
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Self

import numpy as np
import pyspiel

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, require
from spiel_cfr._util import arguments
from spiel_cfr._util.time_slices import Slices
from spiel_cfr.cfr import solver_files
from spiel_cfr.cfr.off_path import Unreached, completed
from spiel_cfr.cfr.recipes import Recipe, description, recipe_of, register
from spiel_cfr.cfr.snapshot import Snapshot, owner_of, snapshots
from spiel_cfr.cfr.solver_state import as_dict, assign, check_fits
from spiel_cfr.cfr.turns import Turns, in_turn, inherit_turns
from spiel_cfr.evaluation import evaluate
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.policies import forms, open_spiel
from spiel_cfr.policies.tabular_policy import CompiledTabularPolicy, LivePolicy

# Beyond it, floating-point numbers do not distinguish iterations.
MOST_ITERATIONS = 1 << 53
_STATE = "state"
# The attributes that belong to a run and not to the configuration.
_OF_RUN = ("_runtime", "_policies", "_loads", "_turns", "_slices")


class Solver(abc.ABC):
  """Base class of all solvers: a configuration that never changes, and one state.

  Constructors take the configuration and call `reset`, which makes `_runtime`: the state, and the objects that work on
  it. Threads may share a solver, see `turns`.

  Attributes:
    compiled_game: the game as arrays.
    iteration: the number of iterations done.
    recipe: the constructor or function that made the solver, and its arguments.
  """

  compiled_game: CompiledGame
  iteration: int
  recipe: Recipe
  _runtime: Any
  # The number of times that a state was loaded; the current policy checks whether it has changed.
  _loads = 0
  _turns: Turns
  _slices: Slices

  def __init_subclass__(cls, **arguments: Any) -> None:
    super().__init_subclass__(**arguments)
    register(cls.__name__, cls)
    inherit_turns(cls)

  def __new__(cls, *arguments: Any, **named: Any) -> Self:
    """Makes the attributes that copies need too, and records the recipe."""
    solver = super().__new__(cls)
    solver._turns, solver._slices = Turns(), Slices()
    solver.recipe = recipe_of(cls, arguments, named)
    return solver

  @property
  def game(self) -> pyspiel.Game:
    """The OpenSpiel game; in turn-based form if the original has simultaneous moves."""
    return self.compiled_game.game

  @property
  @abc.abstractmethod
  def state(self) -> Any:
    """Everything that iterations change, see `solver_state`. Call `refresh` after writing to it."""

  def gathered_state(self) -> Any:
    """Returns the state, after collecting the parts of it that other processes have."""
    return self.state

  @in_turn
  @abc.abstractmethod
  def reset(self) -> None:
    """Goes back to before the first iteration. Locked infosets stay locked."""

  @in_turn
  def refresh(self) -> None:
    """Brings everything else up to date after a change of the state."""
    self._loads += 1

  @in_turn
  @abc.abstractmethod
  def _advance(self, count: int) -> None:
    """Runs some iterations, which take about a tenth of a second, or a single one."""

  @in_turn
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

  @in_turn  # noqa: B027
  def prepare(self) -> None:
    """Compiles kernels or takes them from disk, so that the first iteration takes no longer than others."""

  def trace_columns(self) -> dict[str, float]:
    """Returns numbers by name that the trace of a run adds to those of all solvers; see `Row`."""
    return {}

  @in_turn
  @abc.abstractmethod
  def current_probabilities(self) -> Float64s:
    """Returns a copy of the current policy in behavioral form, shape (sequences,)."""

  @in_turn
  @abc.abstractmethod
  def average_probabilities(self) -> Float64s:
    """Returns the average policy in behavioral form, shape (sequences,); uniform at infosets never reached."""

  def probabilities_in(self, game: CompiledGame) -> Float64s | None:
    """Returns the average policy as `open_spiel.HasArray` describes; None for another game."""
    is_same = open_spiel.is_same_game(game, self.compiled_game)
    return self.average_probabilities() if is_same else None

  @in_turn
  def current_sequence_form(self) -> Float64s:
    """Returns the current policy in sequence form, shape (sequences,)."""
    return forms.sequence_form(self.compiled_game, self.current_probabilities())

  @in_turn
  def average_sequence_form(self) -> Float64s:
    """Returns the average policy in sequence form, shape (sequences,), of float32 if the game is."""
    return forms.sequence_form(self.compiled_game, self.average_probabilities())

  @in_turn
  def current_policy(self) -> Any:
    """Returns the current policy, which need not converge, as OpenSpiel's Python class.

    As in OpenSpiel, every call returns the same object, which changes with the solver. `copy.copy` makes a constant
    copy.
    """
    return self._hand_out("current", self.current_probabilities, self._version)

  @in_turn
  def average_policy(self, unreached: Unreached = "uniform") -> Any:
    """Returns the average policy, which in two-player zero-sum games converges to a Nash equilibrium.

    The result is of OpenSpiel's Python class. As there, every call returns the same object, and only this call brings
    it up to date. `copy.copy` makes a constant copy.

    Args:
      unreached: the policy at infosets that their owner never reaches: "uniform", as in OpenSpiel, or a
        "best_response", see `off_path.completed`. The latter makes a new object.

    Raises:
      ArgumentError: `unreached` is neither of the two.
    """
    if isinstance(unreached, str) and unreached == "uniform":
      return self._hand_out("average", self.average_probabilities)
    probabilities = completed(self.compiled_game, self.average_sequence_form(), unreached)
    return CompiledTabularPolicy(self.compiled_game, probabilities)

  def _hand_out(
    self,
    name: str,
    probabilities: Callable[[], Float64s],
    version: Callable[[], Hashable] | None = None,
  ) -> CompiledTabularPolicy:
    """Returns the policy of that name, up to date: the object that the caller still holds, or a new one."""
    policies = self.__dict__.setdefault("_policies", weakref.WeakValueDictionary())
    policy: CompiledTabularPolicy | None = policies.get(name)
    if policy is None:
      source = LivePolicy(probabilities, version)
      policy = policies[name] = CompiledTabularPolicy(self.compiled_game, source)
    else:
      policy.refresh()
    return policy

  def _version(self) -> Hashable:
    """Returns a value that changes whenever the policies may have changed."""
    return int(self.iteration), self._loads

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

  @in_turn
  def infostates(self) -> list[list[str]]:
    """Returns the information state strings of each player, in the order of OpenSpiel's policies."""
    return [list(infostates) for infostates in self.compiled_game.infostates]

  @in_turn
  def cumulative_regrets(self) -> Float64s | None:
    """Returns R(I, a), see `Snapshot`, for every entry of `CompiledGame.actions`, all players end to end.

    None where the solver keeps no regrets, as first-order methods and networks do.
    """
    return None

  @in_turn
  def snapshot(self, infostate: str, player: int | None = None) -> Snapshot:
    """Returns the cumulative regrets, the current and the average strategy, and the reach of an infoset.

    Args:
      infostate: the information state string.
      player: the owner; needed only if several players have an infoset of this name.

    Raises:
      ArgumentError: there is no such infoset, or the solver has not met it yet, or several players have one.
    """
    return self._look_at([(owner_of(self.infostates(), infostate, player), infostate)])[0]

  @in_turn
  def snapshots(self, pattern: str | re.Pattern[str] = "") -> list[Snapshot]:
    """Returns the snapshots of all infosets whose names match a regular expression, player by player.

    Raises:
      ArgumentError: `pattern` is no regular expression.
    """
    search = arguments.pattern(pattern, "pattern").search
    named = enumerate(self.infostates())
    return self._look_at(
      [(player, name) for player, names in named for name in names if search(name)]
    )

  def _look_at(self, infosets: Iterable[tuple[int, str]]) -> list[Snapshot]:
    """Returns snapshots of infosets, given the player and infostate of each."""
    return snapshots(
      self.compiled_game,
      infosets,
      self.current_probabilities(),
      self.average_probabilities(),
      self.cumulative_regrets(),
      iteration=int(self.iteration),
      nodes_touched=self.nodes_touched,
    )

  @in_turn
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

  @in_turn
  def lock(self, policy: open_spiel.AnyPolicy, infostates: Iterable[str] | None = None) -> None:
    """Keeps a part of the policy fixed (node locking).

    The average tends to an equilibrium of the game in which the strategies of these infosets are given. NashConv still
    counts what the owner could gain by changing locked strategies. Predictions ignore locks; the guarantees hold for
    any prediction, so they are unaffected.

    Args:
      policy: the policy to lock: anything that `policies.from_policy` reads, or a mapping from infostates.
      infostates: the infosets to lock; by default, those of the mapping.

    Raises:
      LockError: the solver is no full-width solver, iterations have been done, infosets of the game are shared, or
        opponents are best responses.
      PolicyError: an infostate is unknown, or has no distribution.
    """
    raise errors.LockError(
      f"{self!r} can't lock a policy. Use a full-width solver, such as CFRPlusSolver."
    )

  def __repr__(self) -> str:
    return f"<{self.recipe.name} of {self.compiled_game}, iteration {int(self.iteration):,}>"

  @in_turn
  def __copy__(self) -> Self:
    # The copy has its own state, and shares the configuration.
    result = type(self).__new__(type(self))
    result.__setstate__(self.__getstate__())
    return result

  def __deepcopy__(self, memo: Any) -> Self:
    return self.__copy__()

  def configuration(self) -> dict[str, Any]:
    """Returns the attributes that never change."""
    return {name: value for name, value in self.__dict__.items() if name not in _OF_RUN}

  @in_turn
  def __getstate__(self) -> dict[str, Any]:
    return self.configuration() | {_STATE: self.state_dict()}

  def __setstate__(self, attributes: dict[str, Any]) -> None:
    configuration = dict(attributes)
    state = configuration.pop(_STATE)
    self.__dict__.update(configuration)
    self.reset()
    assign(self.gathered_state(), state)
    self.refresh()

  @in_turn
  def state_dict(self) -> dict[str, Any]:
    """Returns a copy of the state, by name."""
    return as_dict(self.gathered_state())

  @in_turn
  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Takes over the `state_dict` of a solver with the same recipe.

    Raises:
      CheckpointMismatchError: the state is of another solver, or of none. This solver stays as it was.
    """
    arguments.of_type(state, "state", Mapping)
    check_fits(self.gathered_state(), state, self.recipe.name)
    try:
      self._check_state(state)
    except ValueError as error:
      raise errors.CheckpointMismatchError(
        f"That is no state of {self.recipe.name}: {error}."
      ) from None
    assign(self.gathered_state(), state)
    self.refresh()

  def _check_state(self, state: Mapping[str, Any]) -> None:
    """Raises ValueError for values of the right names, types and shapes that no iterations lead to."""
    for name, value in state.items():
      if isinstance(value, float | np.ndarray):
        require(not np.isnan(value).any(), f"{name} has no NaN")

  def description(self) -> dict[str, Any]:
    """Returns the recipe as JSON; raises ArgumentError if an argument can't be written as JSON."""
    return description(self.recipe)

  def game_identity(self) -> dict[str, str | None]:
    """Returns the string and the digest that identify the game in a checkpoint; no digest for a game not compiled."""
    return {"game": self.compiled_game.game_string, "game_sha256": self.compiled_game.digest}

  @in_turn
  def save(self, path: str | os.PathLike[str]) -> None:
    """Writes a checkpoint. A solver that is restored from it continues bit for bit as if it had never stopped.

    If the process dies, the file is complete or absent. The same solver in the same state makes the same bytes.

    Raises:
      ArgumentError: an argument of the constructor can't be written as JSON.
      OSError: the file can't be written.
    """
    solver_files.save(self, path)

  @in_turn
  def restore(self, path: str | os.PathLike[str]) -> None:
    """Takes over the state in a checkpoint of a solver with the same recipe and game.

    Raises the errors of `solver_files.read_state`; this solver then stays as it was.
    """
    self.load_state_dict(solver_files.read_state(self, path))

  @staticmethod
  def load(path: str | os.PathLike[str], game: AnyGame) -> "Solver":
    """Returns the solver of a checkpoint, of whatever class. Import classes of your own first.

    Raises the errors of `solver_files.read_state`, and those of `compile_game` for `game`.
    """
    solver: Solver = solver_files.load(path, game)
    return solver
