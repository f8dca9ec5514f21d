"""A game without what is pruned, in the same layout, so that the same kernels run on it for a window of iterations.

Where a sequence is pruned, its owner does not play it, and neither what follows it nor the leaves that it has a part in
matter to anybody. Dropped are pruned sequences, the owner's infosets below them, those of others that nothing can lead
to any more, and the leaves of which a player's sequence is dropped. Infosets with one action left have nothing to
decide, and are left out as well: see `games.compiled.forced_moves`.
"""

from typing import Any, NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s, Int64s, Uint32s, aligned_zeros
from spiel_cfr._numba.simd import MOST_LANES
from spiel_cfr.cfr.loops import FullWidthState

IterationNumbers = WholeGameLoop = object
from spiel_cfr.cfr.pruning.backfill import Group
from spiel_cfr.evaluation.best_responses import take_best
from spiel_cfr.evaluation.counterfactual_values import backward_pass
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame
from spiel_cfr.games.payoffs.build_payoff import merged_leaves
from spiel_cfr.games.payoffs.leaf_rows import LeafRows
from spiel_cfr.games.payoffs.payoff import Payoff
from spiel_cfr.games.payoffs.typed_patterns import TypedPatterns
from spiel_cfr.games.payoffs.utility_bounds import Leaves
from spiel_cfr.games.sequence_form.tree_passes import Tree
from spiel_cfr.games.sequence_form.treeplex import Treeplex, build_treeplex
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer, tie_tolerances

# What takes as long as so many leaves that are looked at one by one: a vector of typed patterns, a sequence in passes.
_LEAVES_A_VECTOR, _LEAVES_A_SEQUENCE = 5, 2


class PrunableGame:
  """A game, and what all windows need of it.

  Attributes:
    game: the game.
    groups: all infosets with something to decide.
    owner: the infoset of each sequence, shape (sequences,); 0 where there is none.
    ties: below what a difference of utilities is rounding, shape (infosets,).
    work: how long an iteration takes, roughly: as long as to look at so many leaves.
  """

  def __init__(self, game: CompiledGame) -> None:
    """Lists leaves and infosets.

    Raises:
      PruningError: nothing of the game can be left out.
    """
    why = ""
    if game.num_players != 2:
      why = f"has {game.num_players} players; what a player faces is then no sum of strategies"
    elif game.original is not game:
      why = "is an abstraction. Prune its `original`"
    elif not isinstance(game, EnumeratedGame):
      why = "is compiled in vector form. Compile it with vector_form=False"
    if why or not isinstance(game, EnumeratedGame):
      raise errors.PruningError(f"{game.name} {why}, or take no pruning.")
    self.game = game
    deciding = game.decisions
    self._payoff, self._tree = deciding.payoff, Tree(deciding.groups, deciding.parent)
    self.groups = [
      Group(
        slice(first, first + actions * stride),
        actions,
        slice(infoset, infoset + count),
        deciding.parent[infoset : infoset + count].astype(np.int64),
      )
      for first, stride, count, actions, infoset, _ in deciding.groups.astype(np.int64).tolist()
    ]
    # Each player's sequences, infoset by infoset.
    self._rows, self.owner = [], np.zeros(game.end, np.int64)
    for tree in game.treeplexes:
      rows = [np.zeros(0, np.int64), *(rows.T.ravel() for rows, _ in tree.blocks())]
      self._rows.append(np.concatenate(rows))
      infosets = tree.first_infoset + np.arange(tree.num_infosets)
      self.owner[self._rows[-1]] = np.repeat(infosets, tree.infoset_actions)
    self.ties = tie_tolerances(game)
    self.work = _work(self._payoff, sum(group.actions * len(group.above) for group in self.groups))
    # Both players' sequences at each leaf, shape (2, leaves), and what it is worth to them, shape (leaves, 2).
    leaves, self._worth = merged_leaves(
      self._payoff, 2, np.arange(game.end, dtype=np.uint32), np.ones(game.end)
    )
    self._leaves = leaves.astype(np.intp)
    self._gains = LeafRows.build(leaves, np.maximum(self._worth, 0.0), game.treeplexes)

  def __reduce__(self) -> tuple[Any, ...]:
    """Pickles what it is made of."""
    return PrunableGame, (self.game,)

  def gradients(self, faced: Float64s, gains_only: bool = False) -> Float64s:
    """Returns what each sequence is worth against a sum of sequence forms, shape (sequences,)."""
    result = aligned_zeros(self.game.end)
    for player in range(2):
      (self._gains if gains_only else self._payoff).gradient_into(player, faced, result)
    return result

  def best_responses(self, faced: Float64s, gains_only: bool = False) -> Float64s:
    """Returns what each sequence is worth with a best response to that, losses counting as nothing if so wanted."""
    result = self.gradients(faced, gains_only)
    backward_pass(self.game, take_best, result, tree=self._tree)
    return result

  def without(self, pruned: Bools) -> "Compacted":
    """Returns what is left of the game without some sequences."""
    game = self.game
    kept, matters = np.ones(game.end, bool), np.zeros(game.end, bool)
    for group in self.groups:
      group.of(kept)[:] = kept[group.above] & ~group.of(pruned)
    some = np.flatnonzero(kept[self._leaves[0]] & kept[self._leaves[1]])
    leaves, worth = self._leaves[:, some], self._worth[some]
    matters[leaves] = True
    # How many actions are left; none where no leaf follows.
    follows, rows = np.zeros(game.num_infosets, bool), np.concatenate(self._rows)
    for group in reversed(self.groups):
      follows[group.infosets] = here = group.of(matters).any(axis=0)
      matters[group.above[here]] = True
    live = follows * np.bincount(self.owner[rows[kept[rows]]], minlength=game.num_infosets)
    # Sequences as `build_treeplex` counts them; where there is nothing to decide, what the owner has chosen last.
    number, place, seen = np.zeros(game.end, np.int64), np.zeros(game.end, np.uint32), live > 1
    left = [own[kept[own] & seen[self.owner[own]]] for own in self._rows]
    for own in left:
      number[own] = 1 + np.arange(len(own))
    for group in self.groups:
      rows = group.of(number)
      np.copyto(rows, number[group.above], where=rows == 0)
    treeplexes: list[Treeplex] = []
    infosets: list[Int64s] = []
    root = first = 0
    for tree in game.treeplexes:
      own = tree.first_infoset + np.flatnonzero(seen[tree.first_infoset :][: tree.num_infosets])
      placed = build_treeplex(number[game.decisions.parent[own]], live[own], root, first)
      place[tree.root : tree.end] = placed.sequences[number[tree.root : tree.end]]
      infosets.append(own[np.argsort(placed.position)])
      treeplexes.append(placed.treeplex)
      root, first = placed.treeplex.end, first + len(own)
    payoff = LeafRows.of_leaves(
      [
        Leaves(place[leaves[player]], place[leaves[1 - player]][None], worth[:, player])
        for player in range(2)
      ],
      treeplexes,
    )
    sequences = np.concatenate([[tree.root for tree in game.treeplexes], *left])
    return Compacted(
      game.with_payoff(payoff, treeplexes=tuple(treeplexes)),
      sequences,
      place[sequences],
      np.concatenate(infosets),
      seen,
      share=len(some) / max(1, len(self._worth)),
      work=_work(payoff, len(sequences)),
    )


class Compacted(NamedTuple):
  """What is left of a game.

  Attributes:
    game: it, with sequences and infosets numbered anew.
    sequences: the sequences that are left, in the numbering of the whole game; shape (left,).
    places: the same ones, in that of `game`; likewise.
    infosets: the infosets that are left, in the order of `game`; shape (infosets left,).
    seen: whether an infoset is left, shape (infosets,) of the whole game.
    share: what part of the leaves is left.
    work: as `PrunableGame.work`.
  """

  game: EnumeratedGame
  sequences: Int64s
  places: Uint32s
  infosets: Int64s
  seen: Bools
  share: float
  work: int


class Window:
  """Iterations on what is left of a game.

  Attributes:
    left: what is left.
  """

  def __init__(
    self, left: Compacted, minimizer: RegretMinimizer, whole: FullWidthState, game: CompiledGame
  ) -> None:
    """Copies what is left of a solver's state over the whole game, which `advance` keeps up to date."""
    self.left = left
    scale = np.pad(game.scale[left.infosets], (0, MOST_LANES))
    self._loop = WholeGameLoop.blank(left.game, minimizer, scale)
    small = self._loop.state
    # Iterations count as the solver's.
    small.counts = whole.counts
    self._pairs = [
      (small.strategy, left.places, whole.strategy, left.sequences),
      (small.cumulative, left.places, whole.cumulative, left.sequences),
      (small.action_state[0], left.places, whole.action_state[0], left.sequences),
      (
        small.infoset_state[0],
        np.arange(len(left.infosets)),
        whole.infoset_state[0],
        left.infosets,
      ),
    ]
    for own, places, array, sources in self._pairs:
      own[places] = array[sources]
    self._loop.refresh()

  def advance(self, alternating: bool, numbers: IterationNumbers) -> None:
    """Runs iterations, see `Loop.advance`, and brings the solver's state up to date."""
    self._loop.advance(alternating, numbers)
    for own, places, array, sources in self._pairs:
      array[sources] = own[places]

  def values(self) -> list[float]:
    """Returns what each player's empty sequence was worth in its last iteration."""
    return self._loop.values()


def _work(payoff: Payoff, num_sequences: int) -> int:
  """Returns how long an iteration takes, as long as to look at so many leaves."""
  patterns = isinstance(payoff, TypedPatterns)
  entries = _LEAVES_A_VECTOR * len(payoff.arrays.others) if patterns else len(payoff.arrays.values)
  return entries + _LEAVES_A_SEQUENCE * num_sequences
