"""Pruning: solvers in windows of iterations that leave out subtrees below actions that are not played for a while."""
