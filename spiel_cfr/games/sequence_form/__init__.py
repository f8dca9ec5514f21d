"""Treeplexes of players, and the passes over them."""
