"""Pruning: CFR leaves out the subtrees below actions that are not played, for a window of iterations at a time."""
