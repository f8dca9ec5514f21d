"""Search by re-solving subgames: public states, gadgets that make it safe, exact evaluation of whole policies, bots.

The modules by question, in reading order:

    What are public states and ranges?             search_tree (the interface), public_state_trees
    What makes re-solving safe?                    gadgets
    How is a whole policy re-solved?               resolving, search_step
    How is a subgame solved from ranges?           subgames, subgame_solver, gadget_games (the interface)
    How are private states and values computed?    private_forest (one player's), forest_tree (both players')
      from listed histories                        history_tree, listed_tree
      in vector form                               vector_tree
    How does a subgame become a game to solve?     forest_gadget_games, infoset_front
    How are rivers of hold'em searched?            rivers, river_game
    How does a bot search during play?             search_bot
      with a blueprint                             blueprint_search, segments
      on rivers of hold'em                         river_search
      with leaf values                             belief_search, segments
    How does a subgame stop before the end?        lookahead, lookahead_sequences
    Where do leaf values come from?                exact_values, value_network, self_play_examples

To read how subgames are re-solved, open five files: `gadgets`, `gadget_games`, `subgame_solver`, `search_step` and
`resolving`. Searches without leaf values make these calls:

    start_from_ranges, or start_from_policy        the beginning of a subgame: ranges, and bounds of the gadget
    SearchTree.builder.build                       the gadget game: subgames with the gadget in front, as one game
    SubgameSolver.solve, or equilibrium            the searcher's strategy, or both players', by a program or iterations
    GadgetGame.write                               the solution, in a policy of the whole game

Three functions make them:

    search_step      the searcher's strategies at public states, then their margins: each step of `resolve`, each
                     decision of a `SearchBot` with bounds
    solve_unsafe     both players' strategies without bounds: `SolvedValues`, a `Subgame` without bounds, and a river
                     of a `SearchBot` where the blueprint gives no bounds
    Subgame.solve    the searcher's strategy at one public state, with bounds that the caller gives

Subgames with leaf values are solved by `Lookahead.solve` instead, also those of a `BeliefBot`.
"""

from spiel_cfr.search.belief_search import BeliefBot
from spiel_cfr.search.exact_values import ResponseValues, SolvedValues
from spiel_cfr.search.gadgets import GADGETS, Gadget
from spiel_cfr.search.lookahead import LeafValues
from spiel_cfr.search.public_state_trees import public_states
from spiel_cfr.search.resolving import Resolved, resolve
from spiel_cfr.search.river_search import UnsafeSearchWarning
from spiel_cfr.search.search_bot import SearchBot, played_policy
from spiel_cfr.search.search_step import SearchStep
from spiel_cfr.search.search_tree import PublicState, SearchTree
from spiel_cfr.search.self_play_examples import no_values, self_play
from spiel_cfr.search.subgames import Bounds, Subgame, SubgameSolution
from spiel_cfr.search.value_network import Examples, ValueNetwork, learn_values

__all__ = [
  "GADGETS",
  "BeliefBot",
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
