"""Subgames solved again: public states, gadgets that make it safe, whole policies searched everywhere and measured."""

from spiel_cfr.search.depth_limits import solve_trunk
from spiel_cfr.search.gadgets import GADGETS, Gadget
from spiel_cfr.search.public_states import PublicState, PublicTree, public_states
from spiel_cfr.search.resolve import Resolved, resolve
from spiel_cfr.search.search_bot import SearchBot
from spiel_cfr.search.search_step import Step
from spiel_cfr.search.subgames import subgame
from spiel_cfr.search.value_networks import (
  PublicStateValues,
  SolvedValues,
  ValueNetwork,
  learn_values,
  solve_by_values,
)
from spiel_cfr.search.vector_states import VectorPublicState, VectorPublicTree

__all__ = [
  "GADGETS",
  "Gadget",
  "PublicState",
  "PublicStateValues",
  "PublicTree",
  "Resolved",
  "SearchBot",
  "SolvedValues",
  "Step",
  "ValueNetwork",
  "VectorPublicState",
  "VectorPublicTree",
  "learn_values",
  "public_states",
  "resolve",
  "solve_by_values",
  "solve_trunk",
  "subgame",
]
