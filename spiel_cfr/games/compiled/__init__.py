"""Compiled games: the arrays that all solvers work on."""
