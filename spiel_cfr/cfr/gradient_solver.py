"""Base class of solvers that compute gradients and take steps in sequence form: first-order methods and EFR.

It is not part of CFR, whose gradients are in `games.payoffs` and whose iterations are in `cfr.loops`.
"""

import abc
import copy
import dataclasses
import functools
from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeVar

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, require
from spiel_cfr._util.interrupt import DeferredInterrupt
from spiel_cfr.cfr.solver import Solver
from spiel_cfr.cfr.solver_state import MOST_ITERATIONS
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.games.payoffs.utility_bounds import check_payoffs
from spiel_cfr.policies import forms


@dataclasses.dataclass(kw_only=True)
class GradientState:
  """Base class of the states of gradient solvers.

  Attributes:
    iteration: the number of iterations done.
    num_gradients: the number of gradients computed, counted for each player.
    point: float64 (sequences,). The last iterate: the strategies in sequence form.
  """

  iteration: int = 0
  num_gradients: int = 0
  point: Float64s

  def sums(self) -> Float64s:
    """Returns a multiple of the average in sequence form, shape (sequences,)."""
    return self.point


@dataclasses.dataclass(kw_only=True)
class AveragedState(GradientState):
  """Base class of the states of methods whose average is not the last iterate.

  Attributes:
    cumulative: float64 (sequences,). The weighted sum of the iterates that are averaged.
  """

  cumulative: Float64s

  def sums(self) -> Float64s:
    # Before any iteration, the first iterate.
    return self.cumulative if self.cumulative[0] else self.point


S = TypeVar("S", bound=GradientState)


class GradientSolver(Solver, Generic[S]):
  """Base class of solvers whose iterations compute players' gradients and take steps on their treeplexes.

  Steps are written in Python with NumPy. The solvers compute in float64. They treat a game in parts as a whole: they
  do not visit part by part. Their average policy is the last iterate, unless the state has an average.

  Attributes:
    coupling: a bound on how fast gradients change. If the sequence form of every other player moves by a Euclidean
      distance of 1, then a player's gradient moves by at most `coupling`. See `Payoff.sensitivity`.
  """

  _runtime: S

  def __init__(self, game: AnyGame) -> None:
    """Stores the game: a compiled game, or an argument of `compile_game`. Subclasses then call `reset`.

    Raises:
      AbstractionError: infosets of the game are shared.
      InvalidPayoffError: the payoffs are too large or too small to compute with.
      GameError: see `compile_game`.
    """
    self.compiled_game = compiled = compile_game(game)
    if compiled.shared_infosets is not None:
      raise errors.AbstractionError(
        f"In {compiled} infosets are shared (imperfect recall), so its strategies are not a convex set, which "
        f"{type(self).__name__} needs for its steps. Use buckets that remember the player's own actions, or CFRSolver."
      )
    check_payoffs(compiled.game_string, compiled.payoff_range)
    self._players = range(compiled.num_players)

  @functools.cached_property
  def coupling(self) -> float:
    """See the class."""
    compiled = self.compiled_game
    bounds = [compiled.payoff.sensitivity(compiled.treeplexes, player) for player in self._players]
    # The bound is 0 if no gradient depends on the others' strategies. Then any positive number is a bound.
    return max(bounds) or 1.0

  @abc.abstractmethod
  def _first_state(self) -> S:
    """Returns the state before the first iteration."""

  @abc.abstractmethod
  def _iterate(self, state: S) -> Float64s:
    """Runs one iteration, and returns the value of each player's empty sequence in its last step, shape (players,)."""

  def _uniform(self) -> Float64s:
    """Returns the uniform strategies in sequence form, shape (sequences,)."""
    return forms.sequence_form(self.compiled_game, forms.uniform(self.compiled_game))

  def _gradients(self, point: Float64s, players: Iterable[int] | None = None) -> Float64s:
    """Returns the gradients of some players, by default of all, at a point; 0 at the other players' sequences."""
    result = np.zeros(self.compiled_game.end)
    payoff = self.compiled_game.every_infoset.payoff
    for player in self._players if players is None else players:
      payoff.gradient_into(player, point, result)
      self.state.num_gradients += 1
    return result

  def reset(self) -> None:
    self._runtime = self._first_state()

  @property
  def state(self) -> S:
    return self._runtime

  def _check_state(self, state: Mapping[str, Any]) -> None:
    super()._check_state(state)
    for name, value in state.items():
      if isinstance(value, np.ndarray):
        require(np.isfinite(value), f"{name} is finite")
    for name in {"point", "cumulative"} & state.keys():
      forms.check_sums(self.compiled_game, state[name])
    require(0 <= state["iteration"] <= MOST_ITERATIONS, "the iteration is possible")
    require(0 <= state["num_gradients"] < 1 << 63, "the number of gradients is possible")
    for treeplex in self.compiled_game.treeplexes:
      require(state["point"][treeplex.root] == 1.0, "a strategy begins with 1")

  def prepare(self) -> None:
    """Compiles the kernels of an iteration, or loads them from disk, by an iteration of a copy."""
    trial = copy.copy(self)
    trial._iterate(trial.state)
    self.nash_conv()

  def _advance(self, count: int) -> None:
    state = self.state
    for _ in range(count):
      with DeferredInterrupt(whole=True):
        root_values = self._iterate(state)
        state.iteration += 1
      # If a value is NaN or infinite, the backward pass carries this up to the root's value.
      if not np.isfinite(root_values).all():
        raise errors.NotFiniteError(
          f"After {self.iteration:,} iterations of {type(self).__name__} the values are {root_values.tolist()}: "
          "steps or payoffs were too large for floating-point numbers. Use smaller steps."
        )

  @property
  def iteration(self) -> int:  # type: ignore[override]
    """The number of iterations so far."""
    return self.state.iteration

  @property
  def num_gradients(self) -> int:
    """The number of gradients of one player computed so far."""
    return self.state.num_gradients

  @property
  def nodes_touched(self) -> int:
    """The number of states that a recursive implementation visits: all, once for each gradient of a player."""
    return self.num_gradients * self.compiled_game.num_states

  def current_probabilities(self) -> Float64s:
    return forms.behavioral_form(self.compiled_game, self.state.point)

  def current_sequence_form(self) -> Float64s:
    return self.state.point.copy()

  def average_probabilities(self) -> Float64s:
    return forms.behavioral_form(self.compiled_game, self.state.sums())

  def average_sequence_form(self) -> Float64s:
    # `Solver` would convert to the behavioral form and back.
    return forms.normalized(self.compiled_game, self.state.sums())
