"""CFR-BR: each player learns against the others' best responses, so that its current policy converges too.

Johanson et al., "Finding Optimal Abstract Strategies in Extensive-Form Games" (2012). As in OpenSpiel, every player
learns in this way, and every iteration begins with the best responses to the current policies; a best response is
pure, and plays the first of several best actions.
"""

from collections.abc import Iterable

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util.time_slices import whole_steps
from spiel_cfr.cfr.cfr import TabularCFRSolver
from spiel_cfr.cfr.loops import IterationNumbers
from spiel_cfr.evaluation import evaluate
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.policies import open_spiel


class CFRBRSolver(TabularCFRSolver):
  """CFR-BR, with the names, arguments and iterates of OpenSpiel's, for any number of players."""

  def __init__(
    self, game: AnyGame, linear_averaging: bool = False, regret_matching_plus: bool = False
  ) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or what `compile_game` takes.
      linear_averaging: whether iteration t weighs t in the average, or 1.
      regret_matching_plus: whether negative cumulative regrets are forgotten.

    Raises:
      GameError: see `compile_game`.
    """
    super().__init__(
      game,
      alternating_updates=False,
      linear_averaging=linear_averaging,
      regret_matching_plus=regret_matching_plus,
    )

  def hold(self, policy: open_spiel.AnyPolicy, infostates: Iterable[str] | None = None) -> None:
    """Refuses to keep a part of the policy fixed: best responses would not keep to it.

    Raises:
      LockError: always.
    """
    raise errors.LockError(
      f"{self!r} can't hold a policy. Take another FullWidthSolver, such as CFRPlusSolver."
    )

  @property
  def nodes_touched(self) -> int:
    """How many states a recursive implementation would have visited: for each player, in two walks."""
    return self.iteration * 2 * self.compiled_game.num_players * self.compiled_game.num_states

  def _run_loop(self, numbers: IterationNumbers) -> None:
    rows = list(zip(*numbers, strict=True))
    whole_steps(lambda number, last: self._iterate(*rows[number]), len(rows))

  def _iterate(
    self, parameters: Float64s, before: Float64s, after: Float64s, addition: float
  ) -> None:
    loop, game = self._loop, self.compiled_game
    current = self.current_probabilities()
    found = evaluate.evaluate(game, loop.current_sequence_form(), responses=True)
    updated = current.copy()
    for player, treeplex in enumerate(game.treeplexes):
      own = slice(treeplex.root, treeplex.end)
      policies = found.best_responses.copy()
      policies[own] = current[own]
      loop.set_strategy(policies)
      loop.update(player, parameters, before, after)
      updated[own] = loop.strategy[own]
    loop.set_strategy(updated)
    self.iteration += 1
    if addition:
      self.add_to_tapered()
