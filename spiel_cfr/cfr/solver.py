"""What every solver is: it iterates, hands out policies, and can be measured, copied, kept in a file and resumed."""

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

# Further on, floating-point numbers do not tell iterations apart.
MOST_ITERATIONS = 1 << 53
_STATE = "state"
# What belongs to a run and not to the configuration.
_OF_RUN = ("_runtime", "_policies", "_loads", "_turns", "_slices")


class Solver(abc.ABC):
  """Base class of all solvers: a configuration that never changes, and one state.

  Constructors take the configuration and call `reset`, which makes `_runtime`: the state, and what works on it.
  Threads may share a solver, see `turns`.

  Attributes:
    compiled_game: the game as arrays.
    iteration: how many iterations have been done.
    recipe: how the solver was made.
  """

  compiled_game: CompiledGame
  iteration: int
  recipe: Recipe
  _runtime: Any
  # How often a state has been loaded: policies that move with the solver look at it.
  _loads = 0
  _turns: Turns
  _slices: Slices

  def __init_subclass__(cls, **arguments: Any) -> None:
    super().__init_subclass__(**arguments)
    register(cls.__name__, cls)
    inherit_turns(cls)

  def __new__(cls, *arguments: Any, **named: Any) -> Self:
    """Makes what solvers have that are copies of others, too; notes how the solver is made."""
    solver = super().__new__(cls)
    solver._turns, solver._slices = Turns(), Slices()
    solver.recipe = recipe_of(cls, arguments, named)
    return solver

  @property
  def game(self) -> pyspiel.Game:
    """The game, sequential, as OpenSpiel has it."""
    return self.compiled_game.game

  @property
  @abc.abstractmethod
  def state(self) -> Any:
    """All that changes from one iteration to the next, see `solver_state`; whoever writes to it calls `refresh`."""

  def gathered_state(self) -> Any:
    """Returns the state, after bringing it up to date where other processes have a part of it."""
    return self.state

  @in_turn
  @abc.abstractmethod
  def reset(self) -> None:
    """Goes back to before the first iteration. What is locked stays locked."""

  @in_turn
  def refresh(self) -> None:
    """Brings everything else up to date after the state has been written to."""
    self._loads += 1

  @in_turn
  @abc.abstractmethod
  def _advance(self, count: int) -> None:
    """Does iterations that take about a tenth of a second, or one."""

  @in_turn
  def evaluate_and_update_policy(self) -> None:
    """Does one iteration."""
    self._advance(1)

  def run(self, iterations: int) -> None:
    """Does many iterations; Ctrl-C raises KeyboardInterrupt after a whole number of them.

    Raises:
      ArgumentError: `iterations` is not a positive integer.
      NotFiniteError: something has become NaN or infinite; or would, and then the solver is as it was.
    """
    for count in self._slices(arguments.positive_integer(iterations, "iterations")):
      self._advance(count)

  @property
  @abc.abstractmethod
  def nodes_touched(self) -> int:
    """How many states a recursive implementation would have visited so far."""

  @in_turn  # noqa: B027
  def prepare(self) -> None:
    """Compiles kernels or takes them from disk, so that the first iteration is not slower than others."""

  def trace_columns(self) -> dict[str, float]:
    """Returns numbers by name that a run is to note at each evaluation beside those of all solvers; see `Row`."""
    return {}

  @in_turn
  @abc.abstractmethod
  def current_probabilities(self) -> Float64s:
    """Returns a copy of the current policy in behavioural form, shape (sequences,)."""

  @in_turn
  @abc.abstractmethod
  def average_probabilities(self) -> Float64s:
    """Returns the average policy in behavioural form, shape (sequences,); uniform where never played to."""

  def probabilities_in(self, game: CompiledGame) -> Float64s | None:
    """See `open_spiel.HasArray`: the average policy."""
    return (
      self.average_probabilities() if open_spiel.is_same_game(game, self.compiled_game) else None
    )

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

    As in OpenSpiel it is the same object every time, and it moves with the solver; `copy.copy` keeps it as it is.
    """
    return self._hand_out("current", self.current_probabilities, self._version)

  @in_turn
  def average_policy(self, unreached: Unreached = "uniform") -> Any:
    """Returns the average policy, which in two-player zero-sum games converges to a Nash equilibrium.

    It is OpenSpiel's Python class, and as there the same object every time, brought up to date by this call only.
    `copy.copy` keeps it as it is.

    Args:
      unreached: what it is where its owner has never played to: "uniform", as in OpenSpiel; or, and then it is an
        object of its own, a "best_response", see `off_path.completed`.

    Raises:
      ArgumentError: there is no such choice.
    """
    if unreached == "uniform":
      return self._hand_out("average", self.average_probabilities)
    probabilities = completed(self.compiled_game, self.average_sequence_form(), unreached)
    return CompiledTabularPolicy(self.compiled_game, probabilities)

  def _hand_out(
    self,
    name: str,
    probabilities: Callable[[], Float64s],
    version: Callable[[], Hashable] | None = None,
  ) -> CompiledTabularPolicy:
    """Returns the policy of that name, up to date: the one that somebody still holds, or a new one."""
    policies = self.__dict__.setdefault("_policies", weakref.WeakValueDictionary())
    policy: CompiledTabularPolicy | None = policies.get(name)
    if policy is None:
      source = LivePolicy(probabilities, version)
      policy = policies[name] = CompiledTabularPolicy(self.compiled_game, source)
    else:
      policy.refresh()
    return policy

  def _version(self) -> Hashable:
    """Returns something else whenever the policies may have changed."""
    return int(self.iteration), self._loads

  def tabular_average_policy(self) -> pyspiel.TabularPolicy:
    """Returns a copy of the average policy as OpenSpiel's C++ class; also the name there."""
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
    return [list(own) for own in self.compiled_game.infostates]

  @in_turn
  def cumulative_regrets(self) -> Float64s | None:
    """Returns R(I, a), see `Snapshot`, for every entry of `CompiledGame.actions`, all players end to end.

    None where the solver keeps no regrets, as first-order methods and networks do.
    """
    return None

  @in_turn
  def snapshot(self, infostate: str, player: int | None = None) -> Snapshot:
    """Returns what an infoset does now: its cumulative regrets, current and average strategy, and reach.

    Args:
      infostate: its information state string.
      player: whose it is; needed only where several players have an infoset of that name.

    Raises:
      ArgumentError: there is no such infoset, or none met yet, or several players have one.
    """
    return self._look_at([(owner_of(self.infostates(), infostate, player), infostate)])[0]

  @in_turn
  def snapshots(self, pattern: str | re.Pattern[str] = "") -> list[Snapshot]:
    """Returns what all infosets do now whose names a regular expression finds, player by player.

    Raises:
      ArgumentError: it is no regular expression.
    """
    search = arguments.pattern(pattern, "pattern").search
    return self._look_at(
      [
        (player, infostate)
        for player, own in enumerate(self.infostates())
        for infostate in own
        if search(infostate)
      ]
    )

  def _look_at(self, infosets: Iterable[tuple[int, str]]) -> list[Snapshot]:
    """Returns what infosets do, each given by its player and infostate."""
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
    """Returns the NashConv of the average policy, without leaving the arrays; of an abstraction, in the full game."""
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
    """Keeps a part of the policy fixed: regret is minimized around it (node locking).

    The average tends to an equilibrium of the game in which these infosets have no choice. NashConv still counts what
    their owner would gain by playing otherwise. Minimizers that predict take locked infosets for free ones when they
    do, which leaves their guarantees as they are: those hold for any prediction.

    Args:
      policy: what is to be played there: anything that `policies.from_policy` reads, or a mapping from these
        infostates.
      infostates: where; by default everywhere in a mapping.

    Raises:
      LockError: the solver is no full-width solver, iterations have been done, infosets of the game are shared, or
        opponents are best responses.
      PolicyError: there is no such infostate, or no distribution there.
    """
    raise errors.LockError(
      f"{self!r} can't lock a policy. Take a full-width solver, such as CFRPlusSolver."
    )

  def __repr__(self) -> str:
    return f"<{self.recipe.name} of {self.compiled_game}, iteration {int(self.iteration):,}>"

  @in_turn
  def __copy__(self) -> Self:
    # It goes on by itself from where this one is, and shares what never changes.
    result = type(self).__new__(type(self))
    result.__setstate__(self.__getstate__())
    return result

  def __deepcopy__(self, memo: Any) -> Self:
    return self.__copy__()

  def configuration(self) -> dict[str, Any]:
    """Returns what never changes, by attribute."""
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
    """Takes over what `state_dict` of a solver made in the same way has returned.

    Raises:
      CheckpointMismatchError: it is of another solver, or of none. This one is then as it was.
    """
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
    """Raises ValueError where values of the right names, types and shapes are none that iterations lead to."""
    for name, value in state.items():
      if isinstance(value, float | np.ndarray):
        require(not np.isnan(value).any(), f"{name} has no NaN")

  def description(self) -> dict[str, Any]:
    """Returns how the solver was made, as JSON has it; ArgumentError where an argument can't be written so."""
    return description(self.recipe)

  def game_identity(self) -> dict[str, str | None]:
    """Returns how a checkpoint names the game; None for the digest of one that was not compiled."""
    return {"game": self.compiled_game.game_string, "game_sha256": self.compiled_game.digest}

  @in_turn
  def save(self, path: str | os.PathLike[str]) -> None:
    """Writes a checkpoint, from which this solver can go on as if it had never stopped, bit for bit.

    The file is whole or not there, whenever the process dies. The same solver in the same state makes the same bytes.

    Raises:
      ArgumentError: an argument of the constructor can't be written as JSON.
      OSError: the file can't be written.
    """
    solver_files.save(self, path)

  @in_turn
  def restore(self, path: str | os.PathLike[str]) -> None:
    """Takes over the state in a checkpoint of a solver that was made in the same way for the same game.

    Raises the errors of `solver_files.read_state`; this solver is then as it was.
    """
    self.load_state_dict(solver_files.read_state(self, path))

  @staticmethod
  def load(path: str | os.PathLike[str], game: AnyGame) -> "Solver":
    """Makes the solver of a checkpoint anew, whatever it is. Classes of your own must have been imported.

    Raises the errors of `solver_files.read_state`, and of `compile_game`, which `game` is given to.
    """
    solver: Solver = solver_files.load(path, game)
    return solver
