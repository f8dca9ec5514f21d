"""Policies as arrays and as OpenSpiel's classes."""

from spiel_cfr.policies.forms import behavioral_form, sequence_form, uniform
from spiel_cfr.policies.open_spiel import (
  AnyPolicy,
  PolicyDict,
  from_policy,
  to_dict,
  to_pyspiel,
)
from spiel_cfr.policies.tabular_policy import CompiledTabularPolicy

__all__ = [
  "AnyPolicy",
  "CompiledTabularPolicy",
  "PolicyDict",
  "behavioral_form",
  "from_policy",
  "sequence_form",
  "to_dict",
  "to_pyspiel",
  "uniform",
]
