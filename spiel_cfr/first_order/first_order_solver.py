"""What first-order methods share: a game, a distance, an array or two, and iterations in compiled code."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, get_args

import numpy as np
import pyspiel

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, aligned_zeros, require
from spiel_cfr._numba.kernels import Kernel
from spiel_cfr._util import arguments
from spiel_cfr._util.time_slices import Slices
from spiel_cfr.cfr.stepping import Stepping
from spiel_cfr.first_order.descent_steps import GRADIENTS, ITERATIONS, Problem, Work
from spiel_cfr.first_order.distances import PROX, Weights, dilated_distance
from spiel_cfr.games.compiled.file_checks import check_payoffs
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.games.sequence_form.tree_passes import Tree, new_scratch
from spiel_cfr.policies import forms
from spiel_cfr.regret_minimizers.oftrl import Regularizer

# Of sums of values, as a fraction of the range of payoffs.
_ROUNDING = 1e-13


class GradientSolver(Stepping):
  """Base class of solvers whose iterations are made of gradients of players and sweeps over their treeplexes.

  Each takes a game as a whole, also one that CFR goes through in parts, and computes in float64. The policy that it
  hands out as its average is its last iterate, unless a subclass has an average.

  Attributes:
    compiled_game: the game as arrays.
  """

  state_names: ClassVar[tuple[str, ...]] = ("iteration", "num_gradients", "_point")
  _workspaces: ClassVar[tuple[str, ...]] = ("_done", "_slices", "_work")
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
    self.compiled_game = compile_game(game)
    compiled = self.compiled_game
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
    bounds = [
      compiled.payoff.sensitivity(compiled.treeplexes, player)
      for player in range(compiled.num_players)
    ]
    # Where nobody's strategy matters to anybody, any number will do.
    self.coupling = max(*bounds) or 1.0
    # What the players' returns sum to, and how far sums of values may be from that by rounding.
    self._total = compiled.constant_sum or 0.0
    self._rounding = _ROUNDING * (compiled.payoff_range[1] - compiled.payoff_range[0])

  def _start(self) -> None:
    game = self.compiled_game
    self._slices = Slices(game.end)
    self._done = np.zeros(2, np.uint64)
    self._point = forms.sequence_form(game, forms.uniform(game))
    self._work = Work(
      aligned_zeros(game.end),
      forms.uniform(game),
      aligned_zeros(3, game.end),
      np.zeros(3),
      new_scratch(),
    )

  def _problem_of(self, observe: Kernel, weights: Float64s, diameters: Float64s) -> Problem:
    game = self.compiled_game
    payoff, players, groups, parent, *_ = game.every_infoset
    tree = Tree(groups, parent)
    return Problem(payoff.gradient, payoff.arrays, observe, players, tree, weights, diameters)

  def _point_like(self) -> Float64s:
    """Returns an array for a point, in which only the empty sequences are 1."""
    result = aligned_zeros(self.compiled_game.end)
    for treeplex in self.compiled_game.treeplexes:
      result[treeplex.root] = 1.0
    return result

  @property
  def iteration(self) -> int:
    """How many iterations have been done."""
    return int(self._done[ITERATIONS])

  @iteration.setter
  def iteration(self, number: int) -> None:
    self._done[ITERATIONS] = number

  @property
  def num_gradients(self) -> int:
    """How many gradients of one player have been computed."""
    return int(self._done[GRADIENTS])

  @num_gradients.setter
  def num_gradients(self, number: int) -> None:
    self._done[GRADIENTS] = number

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
    roots = [self._work.utility.item(tree.root) for tree in self.compiled_game.treeplexes]
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
    require(state["_point"] >= 0, "strategies are not negative")
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


class FirstOrderSolver(GradientSolver):
  """Base class of the first-order methods: proximal steps with a dilated distance.

  Attributes:
    compiled_game: the game as arrays.
    regularizer: what the distance is made of at an infoset.
    weights: the weights of the infosets, see `first_order.distances`.
    diameters: the largest distance from the uniform strategy, shape (players,).
    coupling: a bound on the spectral norm of the payoffs, as `Payoff.sensitivity` has it: by how much the Euclidean
      norm of any player's gradient changes when each other's sequence form moves by 1.
  """

  def __init__(self, game: AnyGame, regularizer: Regularizer, weights: Weights) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or what `compile_game` takes.
      regularizer: "entropy" or "euclidean".
      weights: "kroer2017", "farina2021" or "one".

    Raises:
      ArgumentError: there is no such regularizer, or there are no such weights.
      UnsupportedGameError: the method is for constant-sum games of two players, and the game is none.
      GameError: see `compile_game`.
    """
    arguments.one_of(regularizer, "regularizer", get_args(Regularizer))
    arguments.one_of(weights, "weights", get_args(Weights))
    super().__init__(game)
    self.regularizer, self.weights = regularizer, weights
    self._distance = dilated_distance(self.compiled_game, regularizer, weights)
    self.diameters = self._distance.diameters.copy()
    self._start()

  def _start(self) -> None:
    super()._start()
    self._work.centers[:] = self._distance.center

  @property
  def _problem(self) -> Problem:
    distance = self._distance
    return self._problem_of(PROX[self.regularizer], distance.weights, distance.diameters)


class AveragedSolver(FirstOrderSolver):
  """Base class of the first-order methods whose average converges."""

  state_names: ClassVar[tuple[str, ...]] = (*FirstOrderSolver.state_names, "_cumulative")

  def _start(self) -> None:
    super()._start()
    self._cumulative = aligned_zeros(self.compiled_game.end)

  def _sums(self) -> Float64s:
    # Before any iteration, the first iterate.
    return self._cumulative if self._cumulative[0] else self._point

  def _check_state(self, state: Mapping[str, Any]) -> None:
    super()._check_state(state)
    require(state["_cumulative"] >= 0, "averages are not negative")
