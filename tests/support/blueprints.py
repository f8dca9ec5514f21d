"""Policies that are not good enough, to be searched."""

import spiel_cfr


def blueprint(game, iterations=10):
  """Returns the average policy of some iterations of CFR."""
  solver = spiel_cfr.CFRSolver(game)
  solver.run(iterations)
  return solver.average_policy()
