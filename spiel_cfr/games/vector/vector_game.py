"""A game of private types as a public tree, with one vector over types at each of its nodes."""

import functools
import hashlib
import importlib.metadata
import os
from typing import Any

import numpy as np
import numpy.typing as npt
import pyspiel

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Uint16s, Uint32s
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import CompiledGame, Infosets
from spiel_cfr.games.compiled.game_facts import GameFacts
from spiel_cfr.games.compiled.trunk_and_subtrees import PLAYERS, Partition
from spiel_cfr.games.openspiel import loading
from spiel_cfr.games.openspiel.game_view import ActionFilter, GameView, Infostates
from spiel_cfr.games.payoffs.typed_patterns import TypedPatterns
from spiel_cfr.games.sequence_form.blocks import as_scale
from spiel_cfr.games.sequence_form.treeplex import Treeplex
from spiel_cfr.games.vector.terminal_rows import Parts
from spiel_cfr.games.vector.typed_infosets import list_infosets
from spiel_cfr.games.vector.typed_layout import TypedLayout
from spiel_cfr.games.vector.typed_tree import TypedTree
from spiel_cfr.games.vector.typed_walk import estimate_nodes, find_deals, one_per_pair
from spiel_cfr.games.vector.walk_in_processes import walk_typed_tree

# Sequences of a part, whose arrays are then in the level-2 cache; and of a game that is worth cutting.
PART_SEQUENCES = 120_000
LARGE = 4_000_000
# Deals that give both players the same types are all walked in trees of no more nodes, over all deals, than this.
MOST_STATES = 20_000_000


class VectorGame(CompiledGame):
  """A game of private types in vector form. Make one with `compile_vector_game`.

  Infostates, which only policies need, are listed when they are first asked for. `num_states` and `num_terminals`
  count public states.

  Attributes:
    tree: the public tree.
    layout: where the sequences of its nodes are.
  """

  def __init__(
    self,
    view: GameView,
    tree: TypedTree,
    dtype: npt.DTypeLike = np.float64,
    num_threads: int | None = None,
  ) -> None:
    """Describes the game as `CompiledGame` does; without threads it is not cut into parts."""
    self.tree = tree
    self.layout = layout = TypedLayout(tree, None if num_threads is None else PART_SEQUENCES)
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
        parent=functools.partial(_parents, layout, player),
      )
      for player in PLAYERS
    )
    super().__init__(facts, treeplexes)
    self._view, self._dtype = view, np.dtype(dtype)
    if num_threads is not None:
      parts = Parts(layout)
      self._partition = Partition([parts.part(k) for k in range(layout.num_parts)], num_threads)

  @property
  def view(self) -> GameView:
    """How the public tree was walked."""
    return self._view

  @property
  def dtype(self) -> np.dtype[Any]:
    """The precision that the game was compiled for."""
    return self._dtype

  @functools.cached_property
  def payoff(self) -> TypedPatterns:
    """All terminals; solvers of a game in parts use those of the parts."""
    return Parts(self.layout).whole()

  @functools.cached_property
  def infosets(self) -> tuple[Infosets, ...]:
    """Each player's infosets, listed when they are first asked for."""
    return tuple(list_infosets(self.layout, self.view, player) for player in PLAYERS)

  @functools.cached_property
  def loss_bounds(self) -> Float64s:
    """D, as of `CompiledGame`: the largest payoff times the probability that chance deals the type, and what follows."""
    layout, tree = self.layout, self.tree
    result = np.zeros(self.num_infosets)
    for player in PLAYERS:
      types = tree.deals.types[player]
      mass = [
        np.bincount(types, weights, tree.deals.num_types[player])[own[player]]
        for weights, own in zip(tree.weights, tree.types, strict=True)
      ]
      for kind, own in enumerate(mass):
        nodes = np.flatnonzero((tree.kind == kind) & (tree.player == player))
        result[layout.infoset[nodes][:, None] + np.arange(len(own))] = own
    return result * max(map(abs, self.payoff_range))

  @functools.cached_property
  def scale(self) -> Uint16s:
    """`Block.scale` of all infosets, from the same bounds."""
    return as_scale(self.loss_bounds)

  @functools.cached_property
  def digest(self) -> str:
    """Of the public tree, and how solvers go through it."""
    tree = self.tree
    digest = hashlib.sha256(repr((self.partition is not None, self.dtype)).encode())
    for array in (*tree.deals, tree.weights, tree.player, tree.kind, tree.first_edge):
      digest.update(array.tobytes())
    for array in (tree.action, tree.child, tree.matrix, tree.matrices):
      digest.update(array.tobytes())
    return digest.hexdigest()

  @property
  def size(self) -> str:
    """Public states, and infosets of both players."""
    return f"{self.num_states:,} public states, {super().size} in vector form"


def _parents(layout: TypedLayout, player: int) -> Uint32s:
  return Parts(layout).parents(player)


def compile_vector_game(
  game: str | pyspiel.Game,
  action_filter: ActionFilter | None = None,
  *,
  infostate: Infostates | None = None,
  max_nodes: int = 20_000_000,
  max_bytes: int = 1_500_000_000,
  progress: bool = True,
  num_processes: int | None = None,
  partitioned: bool | None = None,
  dtype: npt.DTypeLike = np.float64,
  num_threads: int = 1,
) -> VectorGame:
  loaded = loading.load_game(game, names_infostates=infostate is None)
  view = GameView(loaded, action_filter, infostate=infostate)
  deals, states = find_deals(view)
  weights = deals.weights
  nodes = estimate_nodes(view, states)
  first = one_per_pair(deals)
  if nodes * len(states) > MOST_STATES and not first.all():
    own, other = deals.types
    pair = own * deals.num_types[1] + other
    weights = np.where(first, np.bincount(pair, weights)[pair], 0.0)
  if num_processes is None:
    num_processes = (os.cpu_count() or 1) if nodes * len(states) > 1_000_000 else 1
  tree = walk_typed_tree(
    view, deals, states, weights, max_nodes=max_nodes, max_bytes=max_bytes, progress=progress, num_processes=num_processes,
  )
  if partitioned is None:
    partitioned = int(tree.num_actions.sum()) * max(deals.num_types) > LARGE
  return VectorGame(view, tree, dtype, num_threads if partitioned else None)
