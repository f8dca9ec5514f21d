"""Exact values of two-player games: their sequence form as sparse matrices, and linear programs over these."""
