"""How good is what was trained elsewhere: judged exactly, against others, and by sampling where a game is too large."""

from spiel_cfr.referee.learned_response import LearnedResponse, NashConvBound, nash_conv_lower_bound
from spiel_cfr.referee.mean_bounds import least_mean

__all__ = [
  "LearnedResponse",
  "NashConvBound",
  "least_mean",
  "nash_conv_lower_bound",
]
