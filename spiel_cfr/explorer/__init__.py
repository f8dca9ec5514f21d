"""Explorer: HTML pages on which readers click through a solved game."""

from spiel_cfr.explorer.exploration import Exploration, explore

__all__ = [
  "Exploration",
  "explore",
]
