"""Which rule prunes a game, and which solvers it is sound for."""

import numpy as np

from spiel_cfr import errors
from spiel_cfr.cfr.averaging import Averaged
from spiel_cfr.cfr.pruning.constants import Pruning
from spiel_cfr.cfr.pruning.partial_rule import PartialRule
from spiel_cfr.cfr.pruning.rewriting_rule import RewritingRule
from spiel_cfr.cfr.pruning.rule import PruningRule
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame
from spiel_cfr.poker.public_game import PublicGame
from spiel_cfr.regret_minimizers.ledger import can_skip_zeros, noted
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer
from spiel_cfr.regret_minimizers.schedules import Schedule


def make_rule(game: CompiledGame, pruning: Pruning) -> PruningRule:
  """Returns a rule for a game.

  Raises:
    PruningError: it would not be sound there, or nothing of the game can be left out.
  """
  partial, name = pruning.rule == "partial", game.game_string
  if game.num_players != 2 and not partial:
    raise errors.PruningError(
      f"{name} has {game.num_players} players. What a player faces is then no sum of strategies, and {pruning.rule!r} "
      "has no proof. Take pruning='partial', or take no pruning."
    )
  if game.original is not game:
    raise errors.PruningError(
      f"{name} is an abstraction, of which nothing can be left out. Prune its `original`, or take no pruning."
    )
  if isinstance(game, PublicGame):
    _check_vector_form(game, partial)
    return RewritingRule(game, pruning)
  assert isinstance(game, EnumeratedGame)
  return (PartialRule if partial else RewritingRule)(game, pruning)


def _check_vector_form(game: PublicGame, partial: bool) -> None:
  why = None
  if partial:
    why = "single leaves, which 'partial' skips, are not known. Take pruning='best_response'"
  elif game.partition is not None:
    why = "parts are gone through one by one. Compile it with partitioned=False"
  elif game.dtype != np.float64:
    why = (
      f"{game.dtype} is too coarse for histories that are made up. Compile it with dtype=float64"
    )
  if why is not None:
    raise errors.PruningError(
      f"{game.game_string} is compiled in vector form, where {why}, or take no pruning."
    )


def prepared(
  minimizer: RegretMinimizer, weights: Schedule, pruning: Pruning, alternating: bool
) -> tuple[RegretMinimizer, tuple[Averaged, ...] | Averaged]:
  """Returns what a minimizer has to be for a rule, and which strategies averages take.

  Args:
    minimizer: without pruning.
    weights: of the average.
    pruning: the rule.
    alternating: whether a player sees the strategies to which those before it have just updated.

  Raises:
    PruningError: the rule is not sound for it.
  """
  if pruning.rule != "partial":
    return noted(minimizer, weights), ("after", "before") if alternating else "before"
  if not can_skip_zeros(minimizer):
    raise errors.PruningError(
      f"{minimizer} changes what is kept even where utilities are 0, as discounts and steps do, so that nothing can be "
      "skipped unnoticed. Take CFRSolver, CFRPlusSolver or PCFRPlusSolver."
    )
  return minimizer, "before"
