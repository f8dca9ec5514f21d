"""Explorer: HTML pages on which readers click through a solved game, and reports of poker hands."""

from spiel_cfr.explorer.exploration import Exploration, explore
from spiel_cfr.explorer.hand_report import HandReport, hand_report

__all__ = [
  "Exploration",
  "HandReport",
  "explore",
  "hand_report",
]
