"""Classes and functions for a form of game or a form of payoffs of your own.

docs/extending.md says what such a form supplies. A gradient is a kernel with the decorator `step`, whose argument is a
`NamedTuple`. The annotations of its fields are the types below: `Line` and `Table` for arrays in the precision of the
solver, `Doubles` and `DoubleTable` for float64, `Indices` and `IndexTable` for uint32, `Count` for an integer.
"""

from spiel_cfr._numba.records import (
  Count,
  Counts,
  CountTable,
  Double,
  Doubles,
  DoubleTable,
  IndexTable,
  Indices,
  Line,
  Longs,
  Shorts,
  Table,
)
from spiel_cfr._numba.steps import Step, step
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.game_facts import GameFacts
from spiel_cfr.games.compiled.infosets import Infosets
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.payoffs.payoff import Payoff
from spiel_cfr.games.payoffs.utility_bounds import Leaves
from spiel_cfr.games.sequence_form.treeplex import Treeplex, build_treeplexes
from spiel_cfr.games.vector.parts import PayoffBuilder
from spiel_cfr.games.vector.public_tree import PublicTree
from spiel_cfr.games.vector.public_tree_game import PublicTreeGame

__all__ = [
  "CompiledGame",
  "Count",
  "CountTable",
  "Counts",
  "Double",
  "DoubleTable",
  "Doubles",
  "GameFacts",
  "GameView",
  "IndexTable",
  "Indices",
  "Infosets",
  "Leaves",
  "Line",
  "Longs",
  "Payoff",
  "PayoffBuilder",
  "PublicTree",
  "PublicTreeGame",
  "Shorts",
  "Step",
  "Table",
  "Treeplex",
  "build_treeplexes",
  "step",
]
