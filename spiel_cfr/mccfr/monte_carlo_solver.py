"""Base class of Monte Carlo solvers: the choice of the engine, random numbers, and counts of iterations and nodes."""

from collections.abc import Callable
from typing import Any, Literal, TypedDict, get_args

import numpy as np
import pyspiel

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr.cfr.solver import Solver
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.loading import load_game
from spiel_cfr.games.payoffs.utility_bounds import check_payoffs
from spiel_cfr.mccfr.compiled_engine import CompiledEngine
from spiel_cfr.mccfr.random_draws import ITERATIONS, KEY, VISITED, new_key
from spiel_cfr.mccfr.sampling_rules import Sampler
from spiel_cfr.regret_minimizers.regret_minimizer import TIE, RegretMinimizer
from spiel_cfr.regret_minimizers.schedules import NumberOrSchedule

EngineName = Literal["compiled", "states"]
DEFAULT_MAX_NODES = 500_000


class Options(TypedDict, total=False):
  """Keyword arguments that all Monte Carlo CFR solvers take; see `SamplingSolver`."""

  seed: int | np.random.Generator | None
  minimizer: RegretMinimizer | None
  average_weights: NumberOrSchedule
  engine: EngineName | None
  max_nodes: int
  max_infosets: int


class Iterations(int):
  """The number of iterations done. A call runs one more iteration, as OpenSpiel's method `iteration` does.

  Attributes:
    run_one: function without arguments that runs one iteration.
  """

  run_one: Callable[[], None]

  def __call__(self) -> None:
    """Runs one iteration: a traversal and an update for each player."""
    self.run_one()


class MonteCarloSolver(Solver):
  """Base class of solvers that sample the game. Their states have `counters`; see `random_draws.new_counters`.

  Call `solver.iteration()` as in OpenSpiel, or `solver.run(1000)`, which is faster. `solver.iteration` is the number of
  iterations done. Runs and traces need a compiled game. A solver can continue after Ctrl-C. On the state engine, the
  interrupted traversal may have moved baselines.

  Attributes:
    engine: "compiled" to sample arrays of the whole game, or "states" to sample OpenSpiel's states.
  """

  engine: EngineName
  # The state, and the engine that runs on it.
  _runtime: Any

  def __init__(
    self,
    game: AnyGame,
    sampler: Sampler,
    seed: int | np.random.Generator | None,
    engine: EngineName | None,
    max_nodes: int,
  ) -> None:
    """Chooses the engine, and compiles the game for it. The subclass must call `reset`. See `SamplingSolver`."""
    if engine is not None:
      arguments.one_of(engine, "engine", get_args(EngineName), " or None")
    max_nodes = arguments.positive_integer(max_nodes, "max_nodes")
    self._key = new_key(seed)
    self._sampler = sampler
    self._compiled = game if isinstance(game, CompiledGame) else None
    self._compiled_engine, self.engine = None, "states"
    if engine != "states":
      self._compiled_engine = _compiled_engine(game, sampler, max_nodes, engine == "compiled")
    if self._compiled_engine is not None:
      self._compiled, self.engine = self._compiled_engine.compiled_game, "compiled"
    # A compiled game has a view of its own, which handles games that can't be pickled.
    self._view = GameView(load_game(game)) if self._compiled is None else None
    if self._compiled is None:
      bounds = self.game.min_utility(), self.game.max_utility()
    else:
      bounds = self._compiled.payoff_range
    check_payoffs(str(self.game), bounds)
    self._payoff_range = bounds
    self._tie = TIE * (bounds[1] - bounds[0])

  def refresh(self) -> None:
    super().refresh()
    # After a `reset`, the solver repeats the random numbers of the loaded solver.
    self._key = int(self.state.counters[KEY])

  def prepare(self) -> None:
    self._advance(0)

  @property
  def compiled_game(self) -> CompiledGame:  # type: ignore[override]
    """The game as arrays.

    Raises:
      UnsupportedGameError: the solver works on states, and was not given a compiled game.
    """
    if self._compiled is None:
      raise errors.UnsupportedGameError(
        "This needs a compiled game, and the solver works on states: make it with the game that "
        "compile_game returns, with a large enough max_nodes, if time and memory allow it."
      )
    return self._compiled

  def probabilities_in(self, game: CompiledGame) -> Float64s | None:
    return None if self._compiled is None else super().probabilities_in(game)

  @property
  def state(self) -> Any:
    return self._runtime.state

  @property
  def view(self) -> GameView:
    """The view of the game that traversals walk."""
    return self.compiled_game.view if self._view is None else self._view

  @property
  def game(self) -> pyspiel.Game:
    """The game, sequential, without an action filter."""
    return self.view.game

  def game_identity(self) -> dict[str, str | None]:
    if self._compiled is None:
      return {"game": str(self.game), "game_sha256": None}
    return super().game_identity()

  @property
  def iteration(self) -> Iterations:  # type: ignore[override]
    """The number of iterations done; `iteration()` runs one more."""
    done = Iterations(self.state.counters[ITERATIONS])
    done.run_one = self.evaluate_and_update_policy
    return done

  @property
  def nodes_touched(self) -> int:
    """The number of nodes that traversals have visited, including chance and terminal nodes."""
    return int(self.state.counters[VISITED])

  def __repr__(self) -> str:
    game = self._compiled or self.game
    return (
      f"<{self.recipe.name} of {game}, engine {self.engine}, iteration {int(self.iteration):,}>"
    )


def _compiled_engine(
  game: AnyGame, sampler: Sampler, max_nodes: int, required: bool
) -> CompiledEngine | None:
  """Returns the compiled engine of a game. Returns None if the game can't have one, unless it is required."""
  try:
    # The engine needs a list of histories anyway, so the vector form would save nothing.
    compiled = compile_game(game, max_nodes=max_nodes, vector_form=False)
    return CompiledEngine(compiled, sampler, max_nodes)
  except errors.GameTooLargeError as error:
    if required and 'engine="states"' in str(error):
      raise
    if required:
      raise errors.GameTooLargeError(
        f'{error} Or sample OpenSpiel\'s states, with engine="states".'
      ) from error
  except errors.ImperfectRecallError:
    if required:
      raise
  return None
