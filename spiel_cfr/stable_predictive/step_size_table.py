"""Table of the step sizes and their constants at every infoset, for a solver of stable-predictive CFR."""

import math
from typing import NamedTuple

import numpy as np

from spiel_cfr.cfr.cfr import FullWidthSolver
from spiel_cfr.cfr.solver import Solver
from spiel_cfr.stable_predictive.adaptive_steps import AdaptiveSteps
from spiel_cfr.stable_predictive.regret_composition import decision_depths
from spiel_cfr.stable_predictive.stable_predictive_cfr import steps_of


class StepSize(NamedTuple):
  """The step size of one infoset, and the constants behind it. Constants that the theory does not have are nan.

  Attributes:
    player: the player to move at the infoset.
    infostate: the information state string.
    depth: the number of the player's infosets above.
    stability: gamma, equation (14): the target stability of the strategy from the infoset on; nan for adaptive steps.
    kappa: the target stability of the local strategy, equation (15); nan for adaptive steps.
    strategy_norm: B, equation (16): the largest Euclidean norm of a sequence-form strategy from the infoset on; nan for
      adaptive steps.
    loss_norm: D, the bound on counterfactual losses.
    step: eta, the step size; for adaptive steps, that of the next iteration.
  """

  player: int
  infostate: str
  depth: int
  stability: float
  kappa: float
  strategy_norm: float
  loss_norm: float
  step: float


# The heading of each column with constants.
_HEADINGS = {
  "stability": "gamma",
  "kappa": "kappa",
  "strategy_norm": "B",
  "loss_norm": "D",
  "step": "eta",
}


class StepSizeTable(tuple[StepSize, ...]):
  """The step sizes of all infosets: by player, and parents before children. `print` shows a table."""

  def __str__(self) -> str:
    """Returns the table, without columns of nan. Infostates are indented by depth."""
    columns = [
      name for name in _HEADINGS if not all(math.isnan(getattr(row, name)) for row in self)
    ]
    headings = " ".join(f"{_HEADINGS[name]:>9}" for name in columns)
    lines = [f"{'player':>6} {'depth':>5} {headings}  infostate"]
    for row in self:
      numbers = " ".join(f"{getattr(row, name):z9.3g}" for name in columns)
      lines.append(f"{row.player:6} {row.depth:5} {numbers}  {'  ' * row.depth}{row.infostate!r}")
    return "\n".join(lines)


def step_sizes(solver: Solver) -> StepSizeTable:
  """Returns the step sizes of all infosets and their constants; print them for a table.

  Adaptive steps are those of the next iteration.

  Raises:
    ArgumentError: the solver was not made by `StablePredictiveCFRSolver`.
  """
  constants, game = steps_of(solver), solver.compiled_game
  if isinstance(constants, AdaptiveSteps):
    assert isinstance(solver, FullWidthSolver)
    totals = constants.error_totals(solver.infoset_numbers(0), solver.iteration)
    nans = np.full(game.num_infosets, np.nan)
    steps = constants.steps_after(totals)
    columns = [nans, nans, nans, constants.loss_norm, steps]
  else:
    columns = [
      constants.stability,
      constants.kappa,
      constants.strategy_norm,
      constants.loss_norm,
      constants.steps,
    ]
  numbers = np.stack(columns, axis=1).tolist()
  rows = []
  for player, tree in enumerate(game.treeplexes):
    infosets, depths = game.infosets[player], decision_depths(tree)
    for infostate, place in zip(infosets.infostates, infosets.position.tolist(), strict=True):
      constants_of_infoset = numbers[tree.first_infoset + place]
      rows.append(StepSize(player, infostate, int(depths[place]), *constants_of_infoset))
  return StepSizeTable(rows)
