"""The arrays of a full-width solver.

A game is one part, or a trunk and subtrees (`games.compiled.trunk_and_subtrees`). The number of a part is its place in
`Partition.parts`; part 0 is the trunk, or the whole game.
"""

import functools
from collections.abc import Iterator

import numpy as np

from spiel_cfr._numba.arrays import AnyFloats, Float64s, Int64s, Uint16s, aligned_zeros
from spiel_cfr._numba.line_steps import CopyWithin, Selection, copy_within_line, scatter_line
from spiel_cfr._numba.simd import MOST_LANES
from spiel_cfr._numba.steps import Chain, Step
from spiel_cfr.cfr.averaging import Averaging
from spiel_cfr.cfr.loops.state import FullWidthState
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.trunk_and_subtrees import Partition, PartWalk, Visit
from spiel_cfr.games.sequence_form.single_passes import Reach, adopt_pass
from spiel_cfr.games.sequence_form.tree_passes import Tree
from spiel_cfr.policies import forms
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer


class IterationNumbers:
  """The numbers of the current iteration. Steps have these arrays in their records.

  Attributes:
    row: float64 (numbers,). All of the following, one after the other.
    weights: float64 (players, 2). The weight in the average of each player's strategy before and after its update.
    addition: float64 (1,). The factor by which `cumulative` is added to `tapered` after the iteration, or 0.
    parameters: float64 (parameters,). The minimizer's parameters.
  """

  def __init__(self, length: int, num_players: int) -> None:
    """Allocates a row of this length."""
    self.row = aligned_zeros(length)
    self.weights = self.row[: 2 * num_players].reshape(num_players, 2)
    self.addition = self.row[2 * num_players : 2 * num_players + 1]
    self.parameters = self.row[2 * num_players + 1 :]


class SolverArrays:
  """The arrays that iterations read and write.

  Attributes:
    game: the game.
    partition: the parts of the game.
    state: the state of the solver.
    walk: reach probabilities and utilities.
    numbers: the numbers of the current iteration.
    deferred: float64 (players, 2). A 0, and the weight with which the player's strategy must still be added to the
      average in the subtrees.
    locked: two arrays (locked sequences,). The locked sequences, and their probabilities.
    predict: `StepKernel`. The minimizer's kernel `predict`; None if it does not predict.
  """

  def __init__(
    self, game: CompiledGame, minimizer: RegretMinimizer, averaging: Averaging, partition: Partition
  ) -> None:
    """Allocates arrays of zeros."""
    self.game, self._minimizer = game, minimizer
    self.partition, self.parts = partition, partition.parts
    zeros, lines = functools.partial(aligned_zeros, dtype=game.dtype), minimizer.action_lines
    whole, correlated = len(self.parts) == 1, averaging.correlated
    self.state = FullWidthState(
      strategy=zeros(game.end),
      cumulative=zeros(game.end),
      tapered=zeros(game.end if averaging.tapered else 0),
      action_state=zeros(*(lines, game.end) if whole else (lines * game.end,)),
      # Kernels may read whole vectors.
      infoset_state=aligned_zeros(minimizer.infoset_lines, game.num_infosets + MOST_LANES)
      if whole
      else aligned_zeros(minimizer.infoset_lines * game.num_infosets + MOST_LANES),
      # With two players, the averages determine the gradients.
      gradients=aligned_zeros(game.end if correlated and game.num_players > 2 else 0),
      play_values=np.zeros(game.num_players if correlated else 0),
      locked=np.zeros(game.num_infosets, np.uint8),
    )
    # Read once, since the workspace depends on it.
    self.predict = minimizer.predict
    self.walk = PartWalk(partition, predicts=self.predict is not None, dtype=game.dtype)
    self.numbers = IterationNumbers(2 * game.num_players + 1, game.num_players)
    self.deferred = np.zeros((game.num_players, 2))
    self.lock(np.zeros(0, np.int64))

  def begin(self) -> None:
    """Writes uniform strategies, and the first numbers of the minimizer."""
    forms.uniform(self.game, self.state.strategy)
    initial = self._minimizer.initial_infoset_state(self.game)
    for infosets, lines in self.infoset_state_parts():
      lines[:] = initial[:, infosets]
    self.reach()

  def lock(self, sequences: Int64s) -> None:
    """Locks the current probabilities of these sequences."""
    self.locked = sequences, self.state.strategy[sequences]

  def restore_locked_in(self, visit: Visit) -> list[Step]:
    """Returns the step that writes the probabilities of a player's locked sequences in a part; none without such."""
    part, (sequences, probabilities) = self.parts[visit.number], self.locked
    numbers, place = sequences - part.sequences[visit.player].start, self.place(visit)
    inside = (numbers >= place.start) & (numbers < min(place.stop, part.own_length(visit.player)))
    if not inside.any():
      return []
    record = Selection(
      probabilities[inside], numbers[inside].astype(np.uint32), self.strategy(visit)
    )
    return [scatter_line.on(record, self.game.dtype)]

  def restore_locked(self) -> None:
    """Writes the probabilities of locked sequences again."""
    sequences, probabilities = self.locked
    self.state.strategy[sequences] = probabilities

  def set_strategy(self, probabilities: Float64s) -> None:
    """Makes a behavioral form, shape (sequences,), the current policy; locked sequences stay."""
    self.state.strategy[:] = probabilities
    self.restore_locked()
    self.reach()

  def reach(self) -> None:
    """Computes the reach probabilities of the trunk from the current strategies."""
    part, walk = self.parts[0], self.walk
    for visit, tree in zip(walk.visits(0), part.every_infoset, strict=True):
      Chain(walk.reach(visit, self.strategy(visit), tree)).run()

  def adopt(self, sequence_form: Float64s) -> None:
    """Makes a sequence form, shape (sequences,), the current policy, without a call of `reach`.

    Locked sequences stay, and so does the strategy of an infoset that its owner never reaches.
    """
    game, walk = self.game, self.walk
    for number, part in enumerate(self.parts):
      for visit, tree in zip(walk.visits(number), part.every_infoset, strict=True):
        sequences, reach = part.sequences[visit.player], visit.sequence_form
        reach[: part.own_length(visit.player)] = sequence_form[sequences]
        record = Reach(tree, self.strategy(visit), reach, visit.workspace.scratch.value)
        Chain([*walk.enter(visit), adopt_pass.on(record, game.dtype)]).run()
    if game.shared_infosets is not None:
      self.state.strategy[:] = forms.shared_strategy(game, sequence_form, self.state.strategy)
    self.restore_locked()

  def sequence_form(self) -> AnyFloats:
    """Returns the current policy in sequence form, a copy of shape (sequences,)."""
    result, walk = aligned_zeros(self.game.end, dtype=self.game.dtype), self.walk
    for number, part in enumerate(self.parts):
      for visit in walk.visits(number):
        if number:
          # Padding stays 0.
          visit.sequence_form[:] = 0.0
          Chain(walk.reach(visit, self.strategy(visit))).run()
        length = part.own_length(visit.player)
        result[part.sequences[visit.player]] = visit.sequence_form[:length]
    self.copy_forced(result).run()
    return result

  def copy_forced(self, line: AnyFloats) -> Chain:
    """Returns the step that fills the numbers of forced moves: each is that of its owner's last choice.

    `line` is a number for each sequence that a forced move shares with the sequence above, such as its reach.
    """
    moves = list(self.partition.forced()) if len(line) else []
    if not moves:
      return Chain([])
    sources = np.concatenate([chosen for _, chosen in moves]).astype(np.uint32)
    targets = np.concatenate([np.arange(forced.start, forced.stop) for forced, _ in moves])
    record = CopyWithin(line, sources, targets.astype(np.uint32))
    return Chain([copy_within_line.on(record, self.game.dtype)])

  def values(self) -> list[float]:
    """Returns the value of each player's empty sequence in its last iteration."""
    utility, part = self.walk.trunk.utility, self.parts[0]
    return [utility[player].item(part.player_slice(player).start) for player in self.walk.players]

  def total(self, player: int) -> AnyFloats:
    """Returns the sum of the weights in a player's average, a view of shape (1,)."""
    trunk = self.parts[0]
    root = trunk.sequences[player].start + trunk.player_slice(player).start
    return self.state.cumulative[root : root + 1]

  def tree(self, visit: Visit) -> Tree:
    """Returns a player's infosets in a part."""
    return self.parts[visit.number].trees[visit.player]

  def place(self, visit: Visit) -> slice:
    """Returns the place of a player's sequences in its arrays of a part."""
    return self.parts[visit.number].player_slice(visit.player)

  def strategy(self, visit: Visit) -> AnyFloats:
    """Returns the strategy in a part, a view of shape (sequences,): of the player, or of all in a whole game."""
    return self.state.strategy[self.parts[visit.number].sequences[visit.player]]

  def cumulative(self, visit: Visit) -> AnyFloats:
    """Returns the sums of strategies in a part, a view of shape (sequences,), of the same players as `strategy`."""
    return self.state.cumulative[self.parts[visit.number].sequences[visit.player]]

  def scale(self, visit: Visit) -> Uint16s:
    """Returns `Block.scale` of a player's infosets in a part."""
    infosets = self.parts[visit.number].infosets[visit.player]
    return self.game.scale[infosets.start : infosets.stop + MOST_LANES]

  def action_state(self, visit: Visit) -> AnyFloats:
    """Returns the minimizer's numbers of actions of a player in a part, a view of shape (lines, sequences)."""
    sequences = self.parts[visit.number].sequences[visit.player]
    return _lines(self.state.action_state, self._minimizer.action_lines, sequences)

  def infoset_state(self, visit: Visit) -> AnyFloats:
    """Returns the minimizer's numbers of infosets of a player in a part, a view of shape (lines, infosets).

    In a game that is one part, columns of padding follow.
    """
    if len(self.parts) == 1:
      return self.state.infoset_state
    infosets = self.parts[visit.number].infosets[visit.player]
    return _lines(self.state.infoset_state, self._minimizer.infoset_lines, infosets)

  def action_state_parts(self) -> Iterator[tuple[slice, AnyFloats]]:
    """Yields the sequences of a part, and their numbers in `action_state`, a view of shape (lines, sequences)."""
    for number, part in enumerate(self.parts):
      for visit in self.walk.visits(number)[: 1 if part.shared_slices else None]:
        yield part.sequences[visit.player], self.action_state(visit)

  def infoset_state_parts(self) -> Iterator[tuple[slice, Float64s]]:
    """Yields the infosets of a part, and their numbers in `infoset_state`, a view of shape (lines, infosets)."""
    for number, part in enumerate(self.parts):
      for visit in self.walk.visits(number)[: 1 if part.shared_slices else None]:
        infosets = part.infosets[visit.player]
        yield infosets, self.infoset_state(visit)[:, : infosets.stop - infosets.start]

  def action_numbers(self) -> Float64s:
    """Returns a copy of `action_state` in the game's order, shape (lines, sequences)."""
    result = np.zeros((self._minimizer.action_lines, self.game.end))
    for sequences, lines in self.action_state_parts():
      result[:, sequences] = lines
    return result

  def set_action_state(self, values: Float64s) -> None:
    """Writes `action_state`, given in the game's order, shape (lines, sequences)."""
    for sequences, lines in self.action_state_parts():
      lines[:] = values[:, sequences]

  def infoset_numbers(self) -> Float64s:
    """Returns a copy of `infoset_state` in the game's order, shape (lines, infosets)."""
    result = np.zeros((self._minimizer.infoset_lines, self.game.num_infosets))
    for infosets, lines in self.infoset_state_parts():
      result[:, infosets] = lines
    return result


def _lines(array: AnyFloats, lines: int, place: slice) -> AnyFloats:
  """Returns all lines of a part, a view."""
  flat = array.reshape(-1)[lines * place.start : lines * place.stop]
  return flat.reshape(lines, place.stop - place.start)
