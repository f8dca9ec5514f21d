"""Weak policies, as blueprints for search."""

import spiel_cfr
from spiel_cfr import search


def blueprint(game, iterations=10):
  """Returns the average policy of some iterations of CFR."""
  solver = spiel_cfr.CFRSolver(game)
  solver.run(iterations)
  return solver.average_policy()


def subgame(state, policy, searcher, gadget=None):
  """Returns the subgame of a public state, with the ranges and bounds of a policy."""
  bounds = search.Bounds.from_policy(state, policy, searcher, gadget)
  return search.Subgame(state, state.ranges(policy), bounds).game
