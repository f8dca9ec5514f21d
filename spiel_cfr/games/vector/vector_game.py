"""A game of private types as a public tree, with one vector over types at each of its nodes."""

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
from spiel_cfr.games.vector.public_tree_game import PublicTreeGame
from spiel_cfr.games.vector.typed_terminals import TypedTerminals, loss_bounds
from spiel_cfr.games.vector.typed_tree import PUBLIC_TREE, TypedTree
from spiel_cfr.games.vector.walk_in_processes import walk_typed_tree

# Sequences from which on a game is cut into parts.
LARGE = 4_000_000
# States, of all deals, up to which all deals are walked, also those that give both players the same types; and from
# which several processes do it.
MOST_STATES = 20_000_000
WORTH_PROCESSES = 1_000_000
# Processes at most: each takes two of the files that a process may have open, often 1,024.
MOST_PROCESSES = 256
# States, of all pairs of types, to a node that there may be.
MOST_STATES_A_NODE = 60
# States, of all deals, from which `compile_game` tries the vector form: lists of leaves of smaller games are as fast.
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
    """Takes what is known of the game; without threads it is not cut into parts, without a view it is loaded again."""
    super().__init__(facts, tree, dtype, num_threads, view)

  def __reduce__(self) -> tuple[Any, ...]:
    """Pickles what it was made of; a game that OpenSpiel can't load again stays behind."""
    view = self._view
    if view is not None and not loading.can_be_loaded_again(view.game):
      view = None
    return VectorGame, (self.facts, self.tree, self.dtype, self.num_threads, view)

  def _builder(self, layout: Layout, above: Int32s) -> TypedTerminals:
    return TypedTerminals(self.tree, layout, above, self.dtype)

  @functools.cached_property
  def loss_bounds(self) -> Float64s:
    """D, as of `CompiledGame`: the largest payoff times the probability of the type, and of what chance does later."""
    return loss_bounds(self.tree, self.layout)

  @functools.cached_property
  def scale(self) -> Uint16s:
    """`Block.scale` of all infosets, from the same bounds, which few solvers need to be kept."""
    return as_scale(loss_bounds(self.tree, self.layout))

  def save(self, path: str | os.PathLike[str]) -> None:
    """Writes the public tree to a file; `compile_vector_game` takes what `load_compiled_game` makes of it.

    Raises:
      UnsupportedGameError: infostates have names of one's own, which no file keeps.
    """
    if self._view is not None and self._view.names_infostates:
      raise errors.UnsupportedGameError(
        "The file of a game in vector form has no names of infosets, and these are no names of OpenSpiel's. "
        "compile_game(game, infostate=..., vector_form=False) lists them."
      )
    header = dataclasses.asdict(self.facts) | {"payoff_form": PUBLIC_TREE, "num_players": 2}
    files.write(path, KIND, FORMAT, header, self.tree.saved())


def is_worth_it(view: GameView) -> bool:
  """Returns whether `compile_game` should try the vector form by itself: of large games where chance deals types."""
  try:
    deals, states = find_deals(view)
    # Where nobody has anything to hide, each knows from its type what the other's is.
    hides = np.count_nonzero(one_per_pair(deals) >= 0) > min(deals.num_types)
    enough = WORTHWHILE // len(states)
    if not hides or count_nodes(view, states[0], enough) < enough:
      return False
    try_out(view, deals, states)
    return True
  except errors.SpielCFRError as error:
    # The walk that lists its leaves raises what is wrong with the game itself.
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

  Kuhn and Leduc poker, liar's dice and tiny bridge are such games: chance deals each of two players a type (cards,
  dice), what anybody does afterwards both see, and chance may reveal more. That it is one is checked at every node for
  every pair of types. A game of 236 million histories fits in 1 GB, see docs/vector_form.md.

  Args:
    game: an OpenSpiel game or its string; or one that this function has returned, to solve it in another precision or
      with other threads.
    action_filter: as of `compile_game`.
    infostate: as of `compile_game`.
    max_nodes: how many terminals the public tree may have; and 60 times as many nodes times pairs of types.
    max_bytes: how much the memory of the process may grow during the walk.
    progress: whether to show a bar, if standard error is a terminal.
    num_processes: how many processes walk the public tree, where the system can fork; at most 256. By default
      one for each core if the game is large. The result does not depend on it.
    partitioned: whether solvers go through public subtrees one at a time, which takes little memory and can be done by
      several threads. By default they do in large games.
    dtype: what solvers compute with and keep: float64, or float32 for half the memory and about half the time.
    num_threads: how many threads solvers of a partitioned game use. Results do not depend on it.

  Returns:
    The compiled game, for any full-width solver.

  Raises:
    UnsupportedGameError: the game is of another kind; the message has the history that says so.
    GameTooLargeError: its public tree is too large.
    ArgumentError: an argument makes no sense, or see `GameView.legal_actions`.
    GameError: the game can't be loaded, or chance outcomes have no probabilities.
  """
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
    loaded = loading.load_game(game, names_infostates=infostate is None)
    view = GameView(loaded, action_filter, infostate=infostate)
    tree = _walk(view, max_nodes, max_bytes, progress, num_processes)
    facts = walked_facts(
      loaded,
      payoff_range=tree.payoff_range,
      constant_sum=tree.constant_sum,
      num_states=tree.num_nodes + len(tree.matrix),
      num_terminals=len(tree.matrix),
    )
  if partitioned is None:
    partitioned = int(tree.num_sequences.sum()) > LARGE
  if not partitioned and num_threads > 1:
    raise errors.ArgumentError(
      "Threads are for partitioned games; this one is not, but partitioned=True makes it one."
    )
  return VectorGame(facts, tree, dtype, num_threads if partitioned else None, view)


def _walk(
  view: GameView, max_nodes: int, max_bytes: int, progress: bool, num_processes: int | None
) -> TypedTree:
  deals, states = find_deals(view)
  try_out(view, deals, states)
  weights, once = deals.weights, one_per_pair(deals)
  num_pairs = int(np.count_nonzero(once >= 0))
  most = max(1, MOST_STATES_A_NODE * max_nodes // num_pairs)
  num_nodes = count_nodes(
    view, states[0], most, lambda: _check_terminals(view, len(states), max_nodes)
  )
  if num_nodes == most:
    raise errors.GameTooLargeError(
      f"The game is far too large to compile: its public tree has {most:,} nodes and more, each for {num_pairs:,} "
      f"pairs of types; by an estimate, there are {estimate_view(view, ESTIMATE_SECONDS)}. The tree may have "
      f"max_nodes={max_nodes:,}, and {MOST_STATES_A_NODE} times as many for all pairs, about an hour of a core at the "
      f"default. Raise the limit if there is the time. {ADVICE}"
    )
  num_states = num_nodes * len(states)
  if num_states > MOST_STATES:
    weights = once
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
  """Raises GameTooLargeError if the public tree certainly has more terminals: at least the mean number of a deal."""
  estimate = estimate_view(view, ESTIMATE_SECONDS)
  if estimate.fewest_terminals > num_deals * max_terminals:
    raise errors.GameTooLargeError(
      f"The game is far too large to compile: about {estimate}. Its public tree may have max_nodes={max_terminals:,} "
      f"terminals. {ADVICE}"
    )
