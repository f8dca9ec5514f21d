"""Search by re-solving subgames: public states, gadgets that make it safe, exact evaluation of whole policies, bots."""

from spiel_cfr.search.exact_values import ResponseValues, SolvedValues
from spiel_cfr.search.gadgets import GADGETS, Gadget
from spiel_cfr.search.hand_search import UnsafeSearchWarning
from spiel_cfr.search.lookahead import LeafValues
from spiel_cfr.search.played_policy import played_policy
from spiel_cfr.search.public_states import public_states
from spiel_cfr.search.resolve import Resolved, resolve
from spiel_cfr.search.search_bot import SearchBot
from spiel_cfr.search.search_step import SearchStep
from spiel_cfr.search.search_tree import PublicState, SearchTree
from spiel_cfr.search.self_play import no_values, self_play
from spiel_cfr.search.subgames import Bounds, Subgame, SubgameSolution
from spiel_cfr.search.value_network import Examples, ValueNetwork, learn_values

__all__ = [
  "GADGETS",
  "Bounds",
  "Examples",
  "Gadget",
  "LeafValues",
  "PublicState",
  "Resolved",
  "ResponseValues",
  "SearchBot",
  "SearchStep",
  "SearchTree",
  "SolvedValues",
  "Subgame",
  "SubgameSolution",
  "UnsafeSearchWarning",
  "ValueNetwork",
  "learn_values",
  "no_values",
  "played_policy",
  "public_states",
  "resolve",
  "self_play",
]
