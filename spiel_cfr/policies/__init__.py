"""Policies: as arrays, and as OpenSpiel has them."""

from spiel_cfr.policies.forms import behavioral_form, sequence_form, uniform
from spiel_cfr.policies.live_policy import LivePolicy
from spiel_cfr.policies.locked import locked_part, locked_sequences
from spiel_cfr.policies.open_spiel import (
  AnyPolicy,
  CompiledTabularPolicy,
  PolicyDict,
  from_policy,
  player_to_move,
  to_dict,
  to_pyspiel,
)

__all__ = [
  "AnyPolicy",
  "CompiledTabularPolicy",
  "LivePolicy",
  "PolicyDict",
  "behavioral_form",
  "from_policy",
  "locked_part",
  "locked_sequences",
  "player_to_move",
  "sequence_form",
  "to_dict",
  "to_pyspiel",
  "uniform",
]
