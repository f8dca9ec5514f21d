"""Solvers: a regret minimizer, a weighting and an order of updates on one shared loop."""
