"""Subgames solved again: public states, gadgets that make it safe, whole policies searched everywhere and measured."""

from spiel_cfr.search.gadgets import GADGETS, Gadget
from spiel_cfr.search.public_states import PublicState, PublicTree, public_states
from spiel_cfr.search.resolve import Resolved, resolve
from spiel_cfr.search.search_bot import SearchBot
from spiel_cfr.search.search_step import Step
from spiel_cfr.search.subgames import subgame

__all__ = [
  "GADGETS",
  "Gadget",
  "PublicState",
  "PublicTree",
  "Resolved",
  "SearchBot",
  "Step",
  "public_states",
  "resolve",
  "subgame",
]
