"""Evaluation of policies, agents, bots and networks: exactly, against each other, or by playing in large games."""

from spiel_cfr.referee.head_to_head import HeadToHead, head_to_head
from spiel_cfr.referee.judge import judge
from spiel_cfr.referee.learned_response import NashConvBound, nash_conv_lower_bound
from spiel_cfr.referee.match import Match, play_match, value_baseline
from spiel_cfr.referee.policy_conversion import FunctionPolicy
from spiel_cfr.referee.verdict import InfosetGain, Verdict

__all__ = [
  "FunctionPolicy",
  "HeadToHead",
  "InfosetGain",
  "Match",
  "NashConvBound",
  "Verdict",
  "head_to_head",
  "judge",
  "nash_conv_lower_bound",
  "play_match",
  "value_baseline",
]
