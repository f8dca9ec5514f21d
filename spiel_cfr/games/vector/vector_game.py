"""A game of private types as a public tree, with one vector over types at each of its nodes."""

import functools
import hashlib
import importlib.metadata
from typing import Any

import numpy as np
import numpy.typing as npt
import pyspiel

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Uint32s
from spiel_cfr._numba.simd import LANES, MOST_LANES
from spiel_cfr.games.compiled.compiled_game import CompiledGame, Infosets
from spiel_cfr.games.compiled.game_facts import GameFacts
from spiel_cfr.games.compiled.trunk_and_subtrees import Partition
from spiel_cfr.games.openspiel import loading
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.sequence_form.treeplex import Treeplex
from spiel_cfr.games.vector.typed_layout import PLAYERS, TypedLayout
from spiel_cfr.games.vector.terminal_rows import Parts
from spiel_cfr.games.vector.typed_tree import TypedTree
from spiel_cfr.games.vector.typed_walk import find_deals, one_per_pair, walk_typed_tree


class VectorGame(CompiledGame):
  def __init__(self, view: GameView, tree: TypedTree, dtype=np.float64, num_threads=1, most_sequences=None):
    self.tree = tree
    self._view = view
    self._dtype = np.dtype(dtype)
    self.layout = layout = TypedLayout(tree, most_sequences)
    facts = GameFacts(
      game_string=str(view.game),
      num_distinct_actions=view.game.num_distinct_actions(),
      payoff_range=tree.payoff_range,
      constant_sum=tree.constant_sum,
      num_states=tree.num_nodes + len(tree.matrix),
      num_terminals=len(tree.matrix),
      open_spiel_version=importlib.metadata.version("open_spiel"),
    )
    treeplexes = tuple(
      Treeplex(
        root=layout.roots[player],
        end=layout.roots[player + 1],
        first_infoset=int(layout.first_infosets[player, 0]),
        groups=layout.groups[player],
        parent=functools.partial(_parents, self, player),
      )
      for player in PLAYERS
    )
    super().__init__(facts, treeplexes)
    self.parts = Parts(layout)
    if layout.num_parts > 1:
      self._partition = Partition([self.parts.part(k) for k in range(layout.num_parts)], num_threads)

  @property
  def view(self): return self._view
  @property
  def dtype(self): return self._dtype
  @functools.cached_property
  def payoff(self):
    return self.parts.whole()
  @functools.cached_property
  def infosets(self):
    raise NotImplementedError
  @functools.cached_property
  def digest(self):
    return "x"
  @functools.cached_property
  def loss_bounds(self): return np.ones(self.num_infosets)
  @functools.cached_property
  def scale(self): 
    from spiel_cfr.games.sequence_form.blocks import as_scale
    return as_scale(np.ones(self.num_infosets))

def _parents(game, player):
  return game.parts.parents(player)
