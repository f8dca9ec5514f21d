"""Search by re-solving subgames: public states, gadgets that make it safe, exact evaluation of whole policies, bots.

The modules by question, in reading order. Of the folders `trees`, `subgames`, `play` and `leaf_values`, each imports
only those before it; all import `gadgets` and `gadget_games`:

    What makes re-solving safe?                  gadgets; gadget_games (the game that a solver solves)
    What are public states and ranges?           trees/search_tree (the interface), public_state_trees
      one player's private states and values     trees/private_forest
      both players'                              trees/forest_tree
      from listed histories                      trees/history_tree, listed_tree
      in vector form                             trees/vector_tree
      on rivers of hold'em                       trees/rivers, river_game
    How does a subgame become a gadget game?     trees/forest_gadget_games, infoset_front
    How is a subgame solved from ranges?         subgames/subgame, subgame_solver
    How is a whole policy re-solved?             subgames/resolving, search_step
    How does a subgame stop before the end?      subgames/lookahead, lookahead_sequences
    How does a bot search during play?           play/search_bot
      with a blueprint                           play/blueprint_search, segments
      on rivers of hold'em                       play/river_search
      with leaf values                           play/belief_search, segments
    Where do leaf values come from?              leaf_values/exact_values, value_network, self_play_examples

To read how subgames are re-solved, open five files: `gadgets`, `gadget_games`, `subgame_solver`, `search_step` and
`resolving`. Searches without leaf values make these calls:

    start_from_ranges, or start_from_policy        the beginning of a subgame: ranges, and bounds of the gadget
    SearchTree.builder.build                       the gadget game: subgames with the gadget in front, as one game
    SubgameSolver.solve, or equilibrium            the searcher's strategy, or both players', by a program or iterations
    GadgetGame.write                               the solution, in a policy of the whole game

Three functions make them:

    search_step      the searcher's strategies at public states, and their margins: steps of `resolve`, decisions of a
                     `SearchBot`
    solve_unsafe     both players' strategies, without bounds: `SolvedValues`, a `Subgame` without bounds, and rivers
                     on which a `SearchBot` has no bounds
    Subgame.solve    the searcher's strategy at one public state, with bounds that the caller gives

Subgames with leaf values are solved by `Lookahead.solve` instead, also those of a `BeliefBot`.
"""

from spiel_cfr.search.gadgets import GADGETS, Gadget
from spiel_cfr.search.leaf_values.exact_values import ResponseValues, SolvedValues
from spiel_cfr.search.leaf_values.self_play_examples import no_values, self_play
from spiel_cfr.search.leaf_values.value_network import Examples, ValueNetwork, learn_values
from spiel_cfr.search.play.belief_search import BeliefBot
from spiel_cfr.search.play.river_search import UnsafeSearchWarning
from spiel_cfr.search.play.search_bot import SearchBot, played_policy
from spiel_cfr.search.subgames.lookahead import LeafValues
from spiel_cfr.search.subgames.resolving import Resolved, resolve
from spiel_cfr.search.subgames.search_step import SearchStep
from spiel_cfr.search.subgames.subgame import Bounds, Subgame, SubgameSolution
from spiel_cfr.search.trees.public_state_trees import public_states
from spiel_cfr.search.trees.search_tree import PublicState, SearchTree

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
