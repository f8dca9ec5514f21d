"""Subgames solved again: public states, gadgets that make it safe, whole policies searched everywhere and measured."""

from spiel_cfr.search.depth_limits import solve_by_values, solve_trunk
from spiel_cfr.search.gadgets import GADGETS, Gadget
from spiel_cfr.search.hand_search import UnsafeSearchWarning
from spiel_cfr.search.public_state_values import PublicStateValues, SolvedValues
from spiel_cfr.search.public_states import public_states
from spiel_cfr.search.resolve import Resolved, resolve
from spiel_cfr.search.search_bot import SearchBot
from spiel_cfr.search.search_step import Step
from spiel_cfr.search.search_tree import PublicState, SearchTree
from spiel_cfr.search.subgames import Bounds, Solution, Subgame
from spiel_cfr.search.value_networks import ValueNetwork, learn_values

__all__ = [
  "GADGETS",
  "Bounds",
  "Gadget",
  "PublicState",
  "PublicStateValues",
  "Resolved",
  "SearchBot",
  "SearchTree",
  "Solution",
  "SolvedValues",
  "Step",
  "Subgame",
  "UnsafeSearchWarning",
  "ValueNetwork",
  "learn_values",
  "public_states",
  "resolve",
  "solve_by_values",
  "solve_trunk",
]
