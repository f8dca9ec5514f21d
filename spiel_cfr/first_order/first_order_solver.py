"""What first-order methods share: a game, points in sequence form, gradients, and iterations in Python over these."""

import abc
import copy
import math
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
import pyspiel

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, require
from spiel_cfr._util.interrupt import DeferredInterrupt
from spiel_cfr._util.time_slices import Slices
from spiel_cfr.cfr.exclusive import exclusive
from spiel_cfr.cfr.stepping import Stepping
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.games.payoffs.utility_bounds import check_payoffs
from spiel_cfr.policies import forms

# Of sums of values, as a fraction of the range of payoffs.
_ROUNDING = 1e-13


class FirstOrderSolver(Stepping):
  """Base class of solvers whose iterations are made of gradients of players and steps over their treeplexes.

  Each takes a game as a whole, also one that CFR goes through in parts, and computes in float64. The policy that it
  hands out as its average is its last iterate, unless a subclass has an average. A subclass makes all that an iteration
  changes in `_start`, and changes it at the end of `_iterate`.

  Attributes:
    compiled_game: the game as arrays.
    coupling: a bound on the spectral norm of the payoffs, as `Payoff.sensitivity` has it: by how much the Euclidean
      norm of any player's gradient changes when each other's sequence form moves by 1.
    num_gradients: how many gradients of one player have been computed.
  """

  num_gradients: int
  state_names: ClassVar[tuple[str, ...]] = ("iteration", "num_gradients", "_point")
  _workspaces: ClassVar[tuple[str, ...]] = ("_slices", "_values")
  # Whether the method is one for saddle points only.
  _two_players: ClassVar[bool] = False

  def __init__(self, game: AnyGame) -> None:
    """Makes the solver for a compiled game or what `compile_game` takes.

    Raises:
      UnsupportedGameError: the method is for constant-sum games of two players, and the game is none.
      AbstractionError: infosets of the game are shared.
      InvalidPayoffError: the payoffs are too large or too small to compute with.
      GameError: see `compile_game`.
    """
    self.compiled_game = compiled = compile_game(game)
    if compiled.shared_infosets is not None:
      raise errors.AbstractionError(
        f"In {compiled} infosets are shared (imperfect recall), so that its strategies are no convex set, over which "
        f"{type(self).__name__} could take steps. Take buckets that remember the player's own actions, or CFRSolver."
      )
    if self._two_players and not compiled.is_two_player_constant_sum:
      raise errors.UnsupportedGameError(
        f"{type(self).__name__} finds saddle points, which only constant-sum games of two players have; "
        f"{compiled.game_string} is not one. Take a solver that minimizes regret, such as CFRPlusSolver or "
        "OptimisticMirrorDescentSolver."
      )
    check_payoffs(compiled.game_string, compiled.payoff_range)
    self._players = range(compiled.num_players)
    bounds = [compiled.payoff.sensitivity(compiled.treeplexes, player) for player in self._players]
    # Where nobody's strategy matters to anybody, any number will do.
    self.coupling = max(*bounds) or 1.0
    # What the players' returns sum to, and how far sums of values may be from that by rounding.
    self._total = compiled.constant_sum or 0.0
    self._rounding = _ROUNDING * (compiled.payoff_range[1] - compiled.payoff_range[0])

  def _start(self) -> None:
    game = self.compiled_game
    self._slices = Slices(game.end)
    self.iteration = self.num_gradients = 0
    self._point = forms.sequence_form(game, forms.uniform(game))
    # What each player's empty sequence was worth in the last step.
    self._values = np.zeros(game.num_players)

  @abc.abstractmethod
  def _iterate(self) -> None:
    """Does one iteration."""

  def _advance(self, count: int) -> None:
    with DeferredInterrupt():
      for _ in range(count):
        self._iterate()

  @exclusive
  def prepare(self) -> None:
    """Compiles kernels or takes them from disk: a copy does an iteration."""
    copy.copy(self)._iterate()
    self.nash_conv()

  def _gradients(self, point: Float64s, players: Iterable[int] | None = None) -> Float64s:
    """Returns the gradients of some players, by default of all, at a point; 0 at the sequences of others."""
    result = np.zeros(self.compiled_game.end)
    payoff = self.compiled_game.every_infoset.payoff
    for player in self._players if players is None else players:
      payoff.gradient_into(player, point, result)
      self.num_gradients += 1
    return result

  @property
  def game(self) -> pyspiel.Game:
    """The game, sequential, as OpenSpiel has it."""
    return self.compiled_game.game

  @property
  def nodes_touched(self) -> int:
    """How many states a recursive implementation would have visited: all, for each gradient of a player."""
    return self.num_gradients * self.compiled_game.num_states

  def _check_finite(self) -> None:
    # What is not finite anywhere makes its way up to the root.
    roots = self._values.tolist()
    if not all(map(math.isfinite, roots)):
      raise errors.NotFiniteError(
        f"After {self.iteration:,} iterations of {type(self).__name__} the players' values are {roots}: steps or "
        "payoffs were too large for floating-point numbers. Take smaller steps."
      )

  def _check_state(self, state: Mapping[str, Any]) -> None:
    super()._check_state(state)
    for name, value in state.items():
      if isinstance(value, np.ndarray):
        require(np.isfinite(value), f"{name} is finite")
    for name in {"_point", "_cumulative"} & state.keys():
      require(state[name] >= 0, "strategies and their sums are not negative")
    require(0 <= state["num_gradients"] < 1 << 63, "the number of gradients is possible")
    for treeplex in self.compiled_game.treeplexes:
      require(state["_point"][treeplex.root] == 1.0, "a strategy begins with 1")

  def current_probabilities(self) -> Float64s:
    """Returns the last iterate in behavioural form, shape (sequences,)."""
    return forms.behavioral_form(self.compiled_game, self._point)

  def current_sequence_form(self) -> Float64s:
    """Returns the last iterate in sequence form, a copy of shape (sequences,)."""
    return self._point.copy()

  def average_probabilities(self) -> Float64s:
    """Returns the policy that the theory is about in behavioural form, shape (sequences,)."""
    return forms.behavioral_form(self.compiled_game, self._sums())

  def average_sequence_form(self) -> Float64s:
    """Returns the same in sequence form, shape (sequences,), without a detour by infosets."""
    result = self._sums().copy()
    for treeplex in self.compiled_game.treeplexes:
      result[treeplex.root : treeplex.end] /= result[treeplex.root]
    return result

  def _sums(self) -> Float64s:
    """Returns what the average is a multiple of."""
    return self._point
