"""How good is what was trained elsewhere: judged exactly, against others, and by sampling where a game is too large."""

from spiel_cfr.referee.learned_response import NashConvBound, nash_conv_lower_bound

__all__ = [
  "NashConvBound",
  "nash_conv_lower_bound",
]
