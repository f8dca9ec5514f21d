"""Pruning: what is left alone, the rules by which it is, and what is left of a game for a window of iterations."""
