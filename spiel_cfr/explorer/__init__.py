"""A solved game to click through: what a page shows, and the page itself, one HTML file."""

from spiel_cfr.explorer.exploration import Exploration, explore

__all__ = [
  "Exploration",
  "explore",
]
