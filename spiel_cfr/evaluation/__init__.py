"""Evaluation of policies by best responses, NashConv and exploitability; exact solution by linear programs."""

from spiel_cfr.evaluation.evaluate import (
  BestResponse,
  NashConv,
  best_response,
  expected_values,
  exploitability,
  nash_conv,
)
from spiel_cfr.evaluation.infoset_regrets import InfosetRegret, largest_infoset_regret
from spiel_cfr.evaluation.linear_program import LPSolution, solve_lp
from spiel_cfr.evaluation.payoff_check import check_payoff
from spiel_cfr.evaluation.sequence_form_matrices import constraint_matrix, payoff_matrix, sequences

__all__ = [
  "BestResponse",
  "InfosetRegret",
  "LPSolution",
  "NashConv",
  "best_response",
  "check_payoff",
  "constraint_matrix",
  "expected_values",
  "exploitability",
  "largest_infoset_regret",
  "nash_conv",
  "payoff_matrix",
  "sequences",
  "solve_lp",
]
