"""Solving subgames: one from ranges, those of a whole policy, and subgames that stop at leaf values."""
