"""What every solver is: it iterates, hands out policies, and can be measured, copied, kept in a file and resumed."""

import abc
import copy
import inspect
import os
import weakref
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
import pyspiel

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, require
from spiel_cfr._util import files
from spiel_cfr._util.environment import versions
from spiel_cfr.cfr.descriptions import CLASS, from_json, newest_class, signature, to_json
from spiel_cfr.cfr.numbers import RUNNING
from spiel_cfr.cfr.off_path import Unreached, completed
from spiel_cfr.cfr.state_kinds import check_kind
from spiel_cfr.evaluation import evaluate
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.policies import forms, open_spiel
from spiel_cfr.policies.live_policy import LivePolicy

_KIND = "checkpoint of spiel_cfr"
_FORMAT = 2
# Further on, floating-point numbers do not tell iterations apart.
MOST_ITERATIONS = 1 << 53
_STATE = "state"


class Solver(abc.ABC):
  """Base class of all solvers.

  A subclass says in `state_names` which of its attributes change from one iteration to the next, and makes them anew in
  `_start`. Together with the game and the arguments of its constructor, which are noted here, they are all that it is.

  Attributes:
    compiled_game: the game as arrays.
    iteration: how many iterations have been done.
    state_names: the attributes that change: arrays that keep their shape, numbers, and NumPy random generators.
  """

  compiled_game: CompiledGame
  iteration: int
  state_names: ClassVar[tuple[str, ...]] = ("iteration",)
  # Attributes that `_start` makes and that hold nothing which is not in those of `state_names` too.
  _workspaces: ClassVar[tuple[str, ...]] = ()
  _arguments: dict[str, Any]
  # How often a state has been loaded: policies that move with the solver look at it.
  _loads = 0
  # Those of them that somebody still holds.
  _policies: "weakref.WeakValueDictionary[str, Any]"

  def __new__(cls, *arguments: Any, **named_arguments: Any) -> Self:
    """Notes the constructor's arguments, all but the first, which is the game."""
    self = super().__new__(cls)
    self._policies = weakref.WeakValueDictionary()
    try:
      bound = inspect.signature(cls.__init__).bind(self, *arguments, **named_arguments)
    except TypeError:
      return self  # The constructor itself will say what is wrong; copying a solver calls none.
    bound.apply_defaults()
    self._arguments = dict(list(bound.arguments.items())[2:])
    return self

  def _start(self) -> None:  # noqa: B027
    """Sets everything that iterations change to what it is before the first."""

  @abc.abstractmethod
  def run(self, iterations: int) -> None:
    """Does many iterations; Ctrl-C raises KeyboardInterrupt after a whole number of them.

    Raises:
      ArgumentError: `iterations` is not a positive integer.
    """

  @property
  @abc.abstractmethod
  def nodes_touched(self) -> int:
    """How many states a recursive implementation would have visited so far."""

  def prepare(self) -> None:  # noqa: B027
    """Compiles kernels or takes them from disk, so that the first iteration is not slower than others."""

  @abc.abstractmethod
  def current_probabilities(self) -> Float64s:
    """Returns a copy of the current policy in behavioural form, shape (sequences,)."""

  @abc.abstractmethod
  def average_probabilities(self) -> Float64s:
    """Returns the average policy in behavioural form, shape (sequences,); uniform where never played to."""

  def current_sequence_form(self) -> Float64s:
    """Returns a copy of the current policy in sequence form, shape (sequences,)."""
    return forms.sequence_form(self.compiled_game, self.current_probabilities())

  def average_sequence_form(self) -> Float64s:
    """Returns the average policy in sequence form, shape (sequences,)."""
    return forms.sequence_form(self.compiled_game, self.average_probabilities())

  def current_policy(self) -> Any:
    """Returns the current policy, which need not converge, as OpenSpiel's Python class.

    As in OpenSpiel it is the same object every time, and it moves with the solver; `copy.copy` keeps it as it is.
    """
    return self._hand_out("current", self.current_probabilities, self._version)

  def average_policy(self, unreached: Unreached = "uniform") -> Any:
    """Returns the average policy, which in two-player zero-sum games converges to a Nash equilibrium.

    It is OpenSpiel's Python class, and as there the same object every time, brought up to date by this call only.
    `copy.copy` keeps it as it is.

    Args:
      unreached: what it is where its owner has never played to: "uniform", as in OpenSpiel; or, and then it is an
        object of its own, a "best_response", or the equilibrium of a "subgame"; see `off_path.completed`.

    Raises:
      ArgumentError: there is no such choice.
    """
    if unreached == "uniform":
      return self._hand_out("average", self.average_probabilities)
    probabilities = completed(self.compiled_game, self.average_sequence_form(), unreached)
    return open_spiel.CompiledTabularPolicy(self.compiled_game, probabilities)

  def hold(self, policy: open_spiel.AnyPolicy, infostates: Iterable[str] | None = None) -> None:
    """Keeps a part of the policy fixed, see `FullWidthSolver.hold`; only full-width solvers can.

    Raises:
      LockError: always, for other solvers.
    """
    raise errors.LockError(f"{self!r} can't hold a policy. Take a FullWidthSolver, such as CFRPlusSolver.")

  def _hand_out(
    self,
    name: str,
    probabilities: Callable[[], Float64s],
    version: Callable[[], Hashable] | None = None,
  ) -> LivePolicy:
    """Returns the policy of that name, up to date: the one that somebody still holds, or a new one."""
    policy: LivePolicy | None = self._policies.get(name)
    if policy is None:
      policy = self._policies[name] = LivePolicy(self.compiled_game, probabilities, version)
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

  def __repr__(self) -> str:
    """Returns one line: class, game, iterations done."""
    return f"<{type(self).__name__} of {self.compiled_game}, iteration {int(self.iteration):,}>"

  def restarted(self) -> Self:
    """Returns the same solver before its first iteration; this one is left alone."""
    result = type(self).__new__(type(self))
    result.__dict__.update(self.__dict__)
    result.__dict__.pop(RUNNING, None)
    result._policies = weakref.WeakValueDictionary()
    result._start()
    return result

  def __copy__(self) -> Self:
    """Returns a solver that goes on by itself from where this one is; they share the compiled game."""
    result = self.restarted()
    result.load_state_dict(self.state_dict())
    return result

  def __deepcopy__(self, memo: Any) -> Self:
    """Returns the same as `copy.copy`: what two solvers share never changes."""
    return self.__copy__()

  def __getstate__(self) -> dict[str, Any]:
    """Returns what is pickled: the attributes that never change, and a copy of the others."""
    left_out = {*self._state_names(), *self._workspaces, "_policies", "_loads", RUNNING}
    constants = {name: value for name, value in self.__dict__.items() if name not in left_out}
    return constants | {_STATE: self.state_dict()}

  def __setstate__(self, attributes: dict[str, Any]) -> None:
    """Takes over what `__getstate__` has returned."""
    state = attributes.pop(_STATE, None)
    self.__dict__.update(attributes)
    if state is None:
      return
    self._start()
    self.load_state_dict(state)

  def description(self) -> dict[str, Any]:
    """Returns the name of the class and the arguments of its constructor, as JSON has them.

    Raises:
      ArgumentError: an argument can't be written as JSON.
    """
    return {CLASS: type(self).__name__, "arguments": to_json(self._arguments)}

  def _state_names(self) -> tuple[str, ...]:
    """Returns `state_names`, and those that only solvers with some arguments have."""
    return self.state_names

  def state_dict(self) -> dict[str, Any]:
    """Returns a copy of all that changes from one iteration to the next, by name."""
    return {
      name: value.bit_generator.state
      if isinstance(value := getattr(self, name), np.random.Generator)
      else copy.copy(value)
      for name in self._state_names()
    }

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Takes over what `state_dict` of a solver made with the same arguments has returned.

    Raises:
      CheckpointMismatchError: it is of another solver, or of none. This one is then as it was.
    """
    self._check_fits(state)
    self._take_over(state)

  def _take_over(self, state: Mapping[str, Any]) -> None:
    """Does what `load_state_dict` does with a state that needs no checks."""
    for name in self._state_names():
      value = getattr(self, name)
      if isinstance(value, np.ndarray):
        # In place, because the array is aligned.
        np.copyto(value, state[name])
      elif isinstance(value, np.random.Generator):
        value.bit_generator.state = state[name]
      else:
        setattr(self, name, state[name])
    self._loads += 1
    self._loaded()

  def _check_fits(self, state: Mapping[str, Any]) -> None:
    """Raises CheckpointMismatchError unless `load_state_dict` can take it over."""
    if set(state) != set(self._state_names()):
      raise errors.CheckpointMismatchError(
        f"{type(self).__name__} consists of {sorted(self._state_names())}, not of {sorted(state)}."
      )
    for name in self._state_names():
      check_kind(f"{name} of {type(self).__name__}", getattr(self, name), state[name])
    try:
      self._check_state(state)
    except ValueError as error:
      raise errors.CheckpointMismatchError(
        f"That is no state of {type(self).__name__}: {error}."
      ) from None

  def _check_state(self, state: Mapping[str, Any]) -> None:
    """Raises ValueError where values of the right names, types and shapes are none that iterations lead to."""
    for name, value in state.items():
      is_number = isinstance(value, float | np.ndarray)
      require(not is_number or not np.isnan(value).any(), f"{name} has no NaN")
    require(0 <= state.get("iteration", 0) <= MOST_ITERATIONS, "the iteration is possible")

  def _loaded(self) -> None:  # noqa: B027
    """Brings everything else up to date after the attributes of `state_names` have been written to."""

  def _game_identity(self) -> dict[str, str | None]:
    """Returns how a checkpoint names the game; None for the digest of one that was not compiled."""
    return {"game": self.compiled_game.game_string, "game_sha256": self.compiled_game.digest}

  def save(self, path: str | os.PathLike[str]) -> None:
    """Writes a checkpoint, from which this solver can go on as if it had never stopped, bit for bit.

    The file is whole or not there, whenever the process dies. The same solver in the same state makes the same bytes.

    Raises:
      ArgumentError: an argument of the constructor can't be written as JSON.
      OSError: the file can't be written.
    """
    state = self.state_dict()
    arrays = {name: value for name, value in state.items() if isinstance(value, np.ndarray)}
    others = {name: value for name, value in state.items() if name not in arrays}
    header = {"solver": self.description(), **self._game_identity(), "versions": versions()}
    header["state"] = to_json(others)
    files.write(path, _KIND, _FORMAT, header, arrays)

  def check_origin(self, path: str | os.PathLike[str]) -> None:
    """Makes sure that a checkpoint is of a solver that was made for the same game with the same arguments.

    Raises:
      CheckpointMismatchError: it is not.
      FileFormatError: the file is no checkpoint, is damaged or has a newer format.
      OSError: the file can't be read.
    """
    self._state_in(path, *files.read(path, _KIND, _FORMAT))

  def restore(self, path: str | os.PathLike[str]) -> None:
    """Takes over the state in a checkpoint of a solver that was made for the same game with the same arguments.

    Raises:
      CheckpointMismatchError: it was another game, another solver or other arguments. This solver is then as it was.
      FileFormatError: the file is no checkpoint, is damaged or has a newer format.
      OSError: the file can't be read.
    """
    self._restore(path, *files.read(path, _KIND, _FORMAT))

  def _restore(
    self, path: str | os.PathLike[str], header: dict[str, Any], arrays: files.Arrays
  ) -> None:
    self.load_state_dict(self._state_in(path, header, arrays))

  def _state_in(
    self, path: str | os.PathLike[str], header: dict[str, Any], arrays: files.Arrays
  ) -> dict[str, Any]:
    """Returns the state in a checkpoint of this solver."""
    try:
      game, solver = {name: header[name] for name in self._game_identity()}, header["solver"]
      state: dict[str, Any] = header["state"] | arrays
    except (KeyError, TypeError) as error:
      raise errors.FileFormatError(f"{path} is not a {_KIND}: its header lacks {error}.") from error
    own = self._game_identity()
    # Names of the same game may differ.
    if game["game_sha256"] != own["game_sha256"] or (own["game_sha256"] is None and game != own):
      raise errors.CheckpointMismatchError(
        f"{path} is of the game {game['game']}, not of {own['game']}; or of that game in another form "
        "(listed, in vector form, in parts, in float32), with another filter, or as it was before it changed. Compile "
        "the game as it was compiled then."
      )
    if solver != self.description():
      raise errors.CheckpointMismatchError(
        f"{path} is of {signature(solver)}, not of {signature(self.description())}."
      )
    return state

  @classmethod
  def load(cls, path: str | os.PathLike[str], game: AnyGame) -> Self:
    """Makes the solver of a checkpoint anew.

    Only solvers of this class and its subclasses are made; `Solver.load` makes any. Classes of your own must
    have been imported.

    Args:
      path: what `save` has written.
      game: a compiled game, or what `compile_game` takes.

    Raises:
      CheckpointMismatchError: the checkpoint is of another game or of a solver of another class.
      FileFormatError: the file is no checkpoint, is damaged or has a newer format.
      GameError: see `compile_game`.
      OSError: the file can't be read.
    """
    header, arrays = files.read(path, _KIND, _FORMAT)
    first = compile_game(game) if header.get("game_sha256") else game
    try:
      solver = cls._described(first, header["solver"])
    # Nobody knows what constructors do with arguments that were never theirs.
    except Exception as error:
      raise errors.CheckpointMismatchError(
        f"{path} is of {signature(header.get('solver'))}, which is not a {cls.__name__} that is known "
        f"here: {error}. Import its class first if it is your own."
      ) from error
    solver._restore(path, header, arrays)
    return solver

  @classmethod
  def _described(cls, game: AnyGame, description: Mapping[str, Any]) -> Self:
    """Makes the solver, of this class or a subclass, of which `description()` is this."""
    solver: Self = newest_class([cls], description[CLASS])._made(game, description)
    return solver

  @classmethod
  def _made(cls, first: Any, description: Mapping[str, Any]) -> Self:
    """Calls the constructor with a first argument and those that are described."""
    bound = inspect.signature(cls.__init__).bind_partial(None, first)
    bound.arguments.update(from_json(description["arguments"]))
    return cls(*bound.args[1:], **bound.kwargs)
