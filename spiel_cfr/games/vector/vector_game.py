"""`compile_vector_game`: games of private types as a public tree, with a vector over types at each node."""

import dataclasses
import functools
import logging
import os
from typing import Any

import numpy as np
import numpy.typing as npt
import pyspiel

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int32s, Uint16s
from spiel_cfr._util import arguments, files
from spiel_cfr.games.compiled.enumerated_game import FORMAT, KIND
from spiel_cfr.games.compiled.game_facts import GameFacts, walked_facts
from spiel_cfr.games.openspiel import loading
from spiel_cfr.games.openspiel.game_size import (
  ADVICE,
  DEFAULT_MAX_BYTES,
  DEFAULT_MAX_NODES,
  ESTIMATE_SECONDS,
  estimate_view,
)
from spiel_cfr.games.openspiel.game_view import ActionFilter, GameView, Infostates
from spiel_cfr.games.sequence_form.blocks import as_scale
from spiel_cfr.games.vector.deals import (
  compare_alike,
  count_nodes,
  find_deals,
  one_per_pair,
  try_out,
)
from spiel_cfr.games.vector.layout import Layout
from spiel_cfr.games.vector.public_tree_game import PublicTreeGame, threads_of_parts
from spiel_cfr.games.vector.typed_terminals import TypedTerminals, loss_bounds
from spiel_cfr.games.vector.typed_tree import PUBLIC_TREE, TypedTree
from spiel_cfr.games.vector.walk_in_processes import walk_typed_tree

# Games with more sequences than this are cut into parts.
LARGE = 4_000_000
# Games with at most this many states, over all deals, are walked with every deal. Larger games are walked with one deal
# for each pair of types.
MOST_STATES = 20_000_000
# Games with more states than this, over all deals, are walked by several processes.
WORTH_PROCESSES = 1_000_000
# Largest number of processes. A process takes two open files, of which systems often allow 1,024.
MOST_PROCESSES = 256
# Largest number of states, over all pairs of types, for each terminal that `max_nodes` allows.
MOST_STATES_A_NODE = 60
# `compile_game` tries the vector form from this number of states on, over all deals. Smaller lists of leaves are as
# fast.
WORTHWHILE = 1_000_000

_log = logging.getLogger(__name__)


class VectorGame(PublicTreeGame):
  """A game of private types in vector form. Make one with `compile_vector_game`."""

  tree: TypedTree

  def __init__(
    self,
    facts: GameFacts,
    tree: TypedTree,
    dtype: npt.DTypeLike = np.float64,
    num_threads: int | None = None,
    view: GameView | None = None,
  ) -> None:
    """Takes the arguments of `PublicTreeGame`. Without `num_threads`, the tree is not cut into parts."""
    super().__init__(facts, tree, dtype, num_threads, view)

  def __reduce__(self) -> tuple[Any, ...]:
    """Pickles the constructor's arguments, without the view of a game that OpenSpiel can't load again."""
    view = self._view
    if view is not None and not loading.can_be_loaded_again(view.game):
      view = None
    return VectorGame, (self.facts, self.tree, self.dtype, self.num_threads, view)

  def _builder(self, layout: Layout, above: Int32s) -> TypedTerminals:
    return TypedTerminals(self.tree, layout, above, self.dtype)

  @functools.cached_property
  def loss_bounds(self) -> Float64s:
    """D of `CompiledGame`: the largest payoff times chance's reach probability of each infoset."""
    return loss_bounds(self.tree, self.layout)

  @functools.cached_property
  def scale(self) -> Uint16s:
    """`Block.scale` of all infosets, from `loss_bounds`; the bounds themselves are not kept for it."""
    return as_scale(loss_bounds(self.tree, self.layout))

  def save(self, path: str | os.PathLike[str]) -> None:
    """Writes the public tree to a file; `compile_vector_game` takes the game that `load_compiled_game` returns.

    Raises:
      UnsupportedGameError: infostates are not OpenSpiel's; files keep no other names.
    """
    if self._view is not None and self._view.has_own_names:
      raise errors.UnsupportedGameError(
        "The file of a game in vector form has no names of infosets, and these names are not OpenSpiel's. "
        "compile_game(game, infostate=..., vector_form=False) lists them."
      )
    header = dataclasses.asdict(self.facts) | {"payoff_form": PUBLIC_TREE, "num_players": 2}
    files.write(path, KIND, FORMAT, header, self.tree.saved())


def is_chosen_by_default(view: GameView) -> bool:
  """Returns whether `compile_game` should try the vector form: for large games in which chance deals hidden types."""
  try:
    deals, states = find_deals(view)
    # Without hidden information, each player's type determines the other's.
    is_hidden = np.count_nonzero(one_per_pair(deals) >= 0) > min(deals.num_types)
    num_needed = WORTHWHILE // len(states)
    if not is_hidden or count_nodes(view, states[0], num_needed) < num_needed:
      return False
    try_out(view, deals, states)
    return True
  except errors.SpielCFRError as error:
    # An error of the game itself will be raised by the walk that lists its leaves.
    _log.info("%s is not compiled in vector form: %s", view.game, error)
    return False


def compile_vector_game(
  game: str | pyspiel.Game | VectorGame,
  action_filter: ActionFilter | None = None,
  *,
  infostate: Infostates | None = None,
  max_nodes: int = DEFAULT_MAX_NODES,
  max_bytes: int = DEFAULT_MAX_BYTES,
  progress: bool = True,
  num_processes: int | None = None,
  partitioned: bool | None = None,
  dtype: npt.DTypeLike = np.float64,
  num_threads: int = 1,
) -> VectorGame:
  """Compiles a game of private types in vector form: its public tree, with a vector over types at each node.

  In Kuhn and Leduc poker, liar's dice and tiny bridge chance deals a private type (cards, dice) to each of two players.
  All later actions are public, and chance may reveal more. These conditions are checked at every node for every pair of
  types. A game of 236 million histories fits in 1 GB, see docs/vector_form.md.

  Args:
    game: an OpenSpiel game or its string; or the result of this function, to change precision, parts or threads.
    action_filter: as of `compile_game`.
    infostate: as of `compile_game`.
    max_nodes: largest number of terminals of the public tree; 60 times as many nodes times pairs of types are allowed.
    max_bytes: largest growth of the process's memory during the walk.
    progress: whether to show a bar, if standard error is a terminal.
    num_processes: number of processes that walk the public tree, if the system can fork; at most 256. By default, one
      for each core if the game is large. The result does not depend on it.
    partitioned: whether solvers visit public subtrees one at a time, which takes little memory and allows several
      threads. By default they do in large games.
    dtype: the precision of solvers: float64, or float32 for half the memory and about half the time.
    num_threads: number of threads of solvers of a partitioned game. Results do not depend on it.

  Returns:
    The compiled game, for any full-width solver.

  Raises:
    UnsupportedGameError: the game is of another kind; the message has a history that shows it.
    GameTooLargeError: the public tree is too large.
    ArgumentError: an argument is out of its range, or see `GameView.legal_actions`.
    GameError: the game can't be loaded, or chance outcomes have no probabilities.
  """
  arguments.boolean(progress, "progress")
  if partitioned is not None:
    arguments.boolean(partitioned, "partitioned")
  dtype = arguments.precision(dtype)
  num_threads = arguments.positive_integer(num_threads, "num_threads")
  max_nodes = arguments.positive_integer(max_nodes, "max_nodes")
  max_bytes = arguments.positive_integer(max_bytes, "max_bytes")
  if num_processes is not None:
    num_processes = arguments.integer(num_processes, "num_processes", 1, MOST_PROCESSES)
  view: GameView | None
  if isinstance(game, VectorGame):
    if action_filter is not None or infostate is not None:
      raise errors.ArgumentError(
        "The game is compiled already: give its action filter and infostates to the call that compiles it."
      )
    facts, tree, view = game.facts, game.tree, game._view
  else:
    loaded = loading.load_game(game, needs_strings=infostate is None)
    view = GameView(loaded, action_filter, infostate=infostate)
    tree = _walk(view, max_nodes, max_bytes, progress, num_processes)
    facts = walked_facts(
      loaded,
      payoff_range=tree.payoff_range,
      constant_sum=tree.constant_sum,
      num_states=tree.num_nodes + len(tree.matrix),
      num_terminals=len(tree.matrix),
    )
  threads = threads_of_parts(tree, num_threads, partitioned, LARGE)
  return VectorGame(facts, tree, dtype, threads, view)


def _walk(
  view: GameView, max_nodes: int, max_bytes: int, progress: bool, num_processes: int | None
) -> TypedTree:
  """Tests a game and walks its public tree; arguments and errors as of `compile_vector_game`."""
  deals, states = find_deals(view)
  try_out(view, deals, states)
  weights, pair_weights = deals.weights, one_per_pair(deals)
  num_pairs = int(np.count_nonzero(pair_weights >= 0))
  most = max(1, MOST_STATES_A_NODE * max_nodes // num_pairs)
  num_nodes = count_nodes(
    view, states[0], most, lambda: _check_terminals(view, len(states), max_nodes)
  )
  if num_nodes == most:
    raise errors.GameTooLargeError(
      f"The game is far too large to compile: its public tree has {most:,} nodes or more, each for {num_pairs:,} "
      f"pairs of types; by an estimate, the game has {estimate_view(view, ESTIMATE_SECONDS)}. The tree may have "
      f"max_nodes={max_nodes:,}, and {MOST_STATES_A_NODE} times as many for all pairs, about an hour of a core at the "
      f"default. Raise the limit if there is the time. {ADVICE}"
    )
  num_states = num_nodes * len(states)
  if num_states > MOST_STATES:
    weights = pair_weights
    if (weights < 0).any():
      compare_alike(view, deals, states)
  if num_processes is None:
    cores = min(os.cpu_count() or 1, MOST_PROCESSES)
    num_processes = cores if num_states > WORTH_PROCESSES else 1
  return walk_typed_tree(
    view,
    deals,
    states,
    weights,
    max_nodes=max_nodes,
    max_bytes=max_bytes,
    progress=progress,
    num_processes=num_processes,
  )


def _check_terminals(view: GameView, num_deals: int, max_terminals: int) -> None:
  """Raises GameTooLargeError if the public tree certainly has more terminals than allowed.

  It has at least the mean number of terminals of a deal.
  """
  estimate = estimate_view(view, ESTIMATE_SECONDS)
  if estimate.fewest_terminals > num_deals * max_terminals:
    raise errors.GameTooLargeError(
      f"The game is far too large to compile: by an estimate, {estimate}. The limit of its public tree is "
      f"max_nodes={max_terminals:,} terminals. {ADVICE}"
    )
