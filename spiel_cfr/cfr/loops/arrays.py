"""Arrays that the iterations of a full-width solver read and write, and views of their parts.

A game is one *part*, or it is cut into a trunk and subtrees, which are its parts (`games.compiled.trunk_and_subtrees`).
Parts are numbered as in `Partition.parts`. Part 0 is the whole game or the trunk. A `Visit` names a part and a player.

A *line* is one array of a minimizer's state: a number for each sequence (`action_lines`, such as the regrets) or for
each infoset (`infoset_lines`). The state of a part is contiguous, all lines of its columns one after the other. In a
game of one part this is an ordinary matrix of shape (lines, sequences).
"""

import functools
from collections.abc import Iterator

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import AnyFloats, Float64s, Int64s, Uint16s, aligned_zeros
from spiel_cfr._numba.line_steps import CopyWithin, Selection, copy_within_line, scatter_line
from spiel_cfr._numba.simd import MOST_LANES
from spiel_cfr._numba.steps import Chain, Step
from spiel_cfr.cfr.averaging import AverageRule, Averaging
from spiel_cfr.cfr.loops.state import FullWidthState
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.trunk_and_subtrees import Partition, PartSteps, Visit
from spiel_cfr.games.sequence_form.single_passes import adopt_pass, forward
from spiel_cfr.games.sequence_form.tree_passes import Tree
from spiel_cfr.policies import forms
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer

# Columns of an `IterationSchedule`; the parameters are the last ones.
WEIGHT, TAPER_FACTOR, FIRST_PARAMETER = range(3)


class IterationNumbers:
  """The numbers of the `IterationSchedule` for the current iteration.

  The loop copies them into `joined` before each iteration. The steps of the iteration have views of it, the following
  four arrays, in their records.

  Attributes:
    joined: float64 (columns,). All numbers: the following four arrays, one after the other.
    weight: float64 (1,). The averaging weight of the iteration.
    taper_factor: float64 (1,). The factor by which `FullWidthState.cumulative` is added to `tapered` after the
      iteration; 0 for no addition.
    parameters: float64 (parameters,). The minimizer's parameters.
    rule_parameters: float64 (parameters of the rule,). The parameters of `AverageRule`; shape (0,) without a rule.
  """

  def __init__(self, parameters: Float64s, rule_parameters: Float64s) -> None:
    """Allocates the numbers of an iteration with these parameters, and with weights of 0."""
    rule_start = FIRST_PARAMETER + len(parameters)
    self.joined = aligned_zeros(rule_start + len(rule_parameters))
    self.weight = self.joined[WEIGHT : WEIGHT + 1]
    self.taper_factor = self.joined[TAPER_FACTOR : TAPER_FACTOR + 1]
    self.parameters = self.joined[FIRST_PARAMETER:rule_start]
    self.rule_parameters = self.joined[rule_start:]
    self.parameters[:], self.rule_parameters[:] = parameters, rule_parameters


def parameters_of(
  source: RegretMinimizer | AverageRule, iterations: Int64s, game: CompiledGame
) -> Float64s:
  """Returns the parameters of a minimizer or a rule at these iterations, shape (iterations, parameters).

  Raises:
    ArgumentError: a user's class returns another shape, or a minimizer returns no tie tolerance.
  """
  try:
    result = np.ascontiguousarray(source.parameters(iterations, game), np.float64)
  except (TypeError, ValueError):
    result = np.zeros(0)
  has_tolerance = isinstance(source, RegretMinimizer)
  if result.ndim != 2 or len(result) != len(iterations) or result.shape[1] < has_tolerance:
    first = ", the tie tolerance first" if has_tolerance else ""
    raise errors.ArgumentError(
      f"`parameters` of {source} must return numbers of shape ({len(iterations)}, numbers){first}, not of shape "
      f"{result.shape}."
    )
  return result


def first_parameters(source: RegretMinimizer | AverageRule | None, game: CompiledGame) -> Float64s:
  """Returns the parameters of a minimizer or a rule in iteration 1, shape (parameters,); shape (0,) for None."""
  return np.zeros(0) if source is None else parameters_of(source, np.ones(1, np.int64), game)[0]


class SolverArrays:
  """The state of a solver, workspaces for reach probabilities and utilities, and the numbers of the current iteration.

  Attributes:
    game: the game.
    partition: the partition of the game into parts.
    parts: list of `Part`. The parts of the game, as in `partition`.
    state: `FullWidthState`. The state of the solver.
    part_steps: the steps of visits to the parts, and their workspaces, with reach probabilities and utilities.
    iteration_numbers: the weights and parameters of the current iteration.
    deferred_weights: float64 (players,). The weights still to be added to subtrees' averages, for each player's current
      strategy; 0 if nothing is deferred. See `partitioned_loop`.
    locked: two arrays (locked sequences,). The locked sequences, and their probabilities.
    predict: `StepKernel`. The minimizer's kernel `predict`; None for a minimizer without predictions.
  """

  def __init__(
    self, game: CompiledGame, minimizer: RegretMinimizer, averaging: Averaging, partition: Partition
  ) -> None:
    """Allocates arrays of zeros. Call `initialize` before the first iteration."""
    self.game, self._minimizer = game, minimizer
    self.partition, self.parts = partition, partition.parts
    self.state = self._new_state(averaging)
    # `predict` may be a property. It is read once, since the workspace depends on it.
    self.predict = minimizer.predict
    self.part_steps = PartSteps(partition, predicts=self.predict is not None, dtype=game.dtype)
    # A user's kernel runs for a trial before the first iteration, with the parameters of that iteration.
    self.iteration_numbers = IterationNumbers(
      first_parameters(minimizer, game), first_parameters(averaging.rule, game)
    )
    self.deferred_weights = np.zeros(game.num_players)
    self.lock(np.zeros(0, np.int64))

  def _new_state(self, averaging: Averaging) -> FullWidthState:
    """Returns a state of zeros. Arrays of averages that `averaging` does not use have length 0."""
    game, minimizer = self.game, self._minimizer
    zeros = functools.partial(aligned_zeros, dtype=game.dtype)
    if len(self.parts) == 1:
      action_shape: tuple[int, ...] = minimizer.action_lines, game.end
      # Kernels read whole vectors, which may end after the last infoset.
      infoset_shape: tuple[int, ...] = minimizer.infoset_lines, game.num_infosets + MOST_LANES
    else:
      action_shape = (minimizer.action_lines * game.end,)
      infoset_shape = (minimizer.infoset_lines * game.num_infosets + MOST_LANES,)
    rule = averaging.rule
    return FullWidthState(
      strategy=zeros(game.end),
      cumulative=zeros(game.end),
      tapered=zeros(game.end if averaging.tapered else 0),
      memory=zeros(0 if rule is None else rule.memory_lines * game.end),
      action_state=zeros(*action_shape),
      infoset_state=aligned_zeros(*infoset_shape),
      locked=np.zeros(game.num_infosets, np.uint8),
    )

  def initialize(self) -> None:
    """Writes uniform strategies, and the minimizer's initial infoset state."""
    forms.uniform(self.game, self.state.strategy)
    initial = self._minimizer.initial_infoset_state(self.game)
    for infosets, lines in self.infoset_state_parts():
      lines[:] = initial[:, infosets]
    self.compute_reach()

  def lock(self, sequences: Int64s) -> None:
    """Locks the current probabilities of these sequences, and unlocks all others."""
    self.locked = sequences, self.state.strategy[sequences]

  def restore_locked_steps(self, visit: Visit) -> list[Step]:
    """Returns the step that restores the probabilities of a player's locked sequences in a part.

    The list is empty if the player has no locked sequences there.
    """
    part, (sequences, probabilities) = self.parts[visit.part], self.locked
    in_part = sequences - part.sequences[visit.player].start
    own = self.player_slice(visit)
    end = min(own.stop, part.own_length(visit.player))
    is_own = (in_part >= own.start) & (in_part < end)
    if not is_own.any():
      return []
    record = Selection(
      probabilities[is_own], in_part[is_own].astype(np.uint32), self.strategy(visit)
    )
    return [scatter_line.on(record, self.game.dtype)]

  def restore_locked(self) -> None:
    """Restores the probabilities of all locked sequences."""
    sequences, probabilities = self.locked
    self.state.strategy[sequences] = probabilities

  def set_strategy(self, probabilities: Float64s) -> None:
    """Makes a behavioral form, shape (sequences,), the current policy. Locked sequences keep their probabilities."""
    self.state.strategy[:] = probabilities
    self.restore_locked()
    self.compute_reach()

  def compute_reach(self) -> None:
    """Computes the reach probabilities of part 0, the whole game or its trunk, from the current strategies."""
    part, part_steps = self.parts[0], self.part_steps
    for visit, tree in zip(part_steps.visits(0), part.every_infoset, strict=True):
      Chain(part_steps.reach(visit, self.strategy(visit), tree)).run()

  def set_sequence_form(self, sequence_form: Float64s) -> None:
    """Makes a sequence form, shape (sequences,), the current policy. The caller then calls `compute_reach`.

    Locked sequences keep their probabilities. An infoset that its owner never reaches keeps its strategy.
    """
    game, part_steps = self.game, self.part_steps
    for number, part in enumerate(self.parts):
      for visit, tree in zip(part_steps.visits(number), part.every_infoset, strict=True):
        sequences, reach = part.sequences[visit.player], visit.sequence_form
        reach[: part.own_length(visit.player)] = sequence_form[sequences]
        record = forward(tree, self.strategy(visit), reach, visit.workspace.scratch)
        Chain([*part_steps.enter(visit), adopt_pass.on(record, game.dtype)]).run()
    if game.shared_infosets is not None:
      self.state.strategy[:] = forms.shared_strategy(game, sequence_form, self.state.strategy)
    self.restore_locked()

  def sequence_form(self) -> AnyFloats:
    """Returns the current policy in sequence form, a copy of shape (sequences,)."""
    result, part_steps = aligned_zeros(self.game.end, dtype=self.game.dtype), self.part_steps
    for number, part in enumerate(self.parts):
      for visit in part_steps.visits(number):
        # The trunk's sequence form is up to date.
        if number:
          # Padding must be 0.
          visit.sequence_form[:] = 0.0
          Chain(part_steps.reach(visit, self.strategy(visit))).run()
        length = part.own_length(visit.player)
        result[part.sequences[visit.player]] = visit.sequence_form[:length]
    self.fill_forced_moves(result).run()
    return result

  def fill_forced_moves(self, values: AnyFloats) -> Chain:
    """Returns the chain that fills in the values of forced moves, which are the infosets with a single action.

    Iterations leave out forced moves. Their values are copied from the last sequence before them at which their player
    has a choice.

    Args:
      values: shape (sequences,) or (0,). Numbers that are equal at both sequences, such as reach probabilities.
    """
    moves = list(self.partition.forced()) if len(values) else []
    if not moves:
      return Chain([])
    sources = np.concatenate([last_choices for _, last_choices in moves]).astype(np.uint32)
    targets = np.concatenate([np.arange(forced.start, forced.stop) for forced, _ in moves])
    record = CopyWithin(values, sources, targets.astype(np.uint32))
    return Chain([copy_within_line.on(record, self.game.dtype)])

  def root_values(self) -> list[float]:
    """Returns the value of each player's empty sequence in its last update."""
    return [
      visit.utility.item(self.player_slice(visit).start) for visit in self.part_steps.visits(0)
    ]

  def weight_sum(self, player: int) -> AnyFloats:
    """Returns the sum of a player's averaging weights, a view of shape (1,).

    It is the entry of the player's empty sequence in `FullWidthState.cumulative`.
    """
    part = self.parts[0]
    root = part.sequences[player].start + part.player_slice(player).start
    return self.state.cumulative[root : root + 1]

  def tree(self, visit: Visit) -> Tree:
    """Returns a player's infosets in a part, without those that iterations leave out."""
    return self.parts[visit.part].trees[visit.player]

  def player_slice(self, visit: Visit) -> slice:
    """Returns the slice of a player's sequences in its arrays of a part."""
    return self.parts[visit.part].player_slice(visit.player)

  def strategy(self, visit: Visit) -> AnyFloats:
    """Returns the strategy in a part, a view of shape (sequences,).

    In a game of one part, the players share the array: the view has the sequences of all players.
    """
    return self.state.strategy[self.parts[visit.part].sequences[visit.player]]

  def cumulative(self, visit: Visit) -> AnyFloats:
    """Returns the cumulative strategy in a part, a view of shape (sequences,).

    In a game of one part, the view has the sequences of all players.
    """
    return self.state.cumulative[self.parts[visit.part].sequences[visit.player]]

  def scale(self, visit: Visit) -> Uint16s:
    """Returns `Block.scale` of a player's infosets in a part, a view with padding."""
    infosets = self.parts[visit.part].infosets[visit.player]
    return self.game.scale[infosets.start : infosets.stop + MOST_LANES]

  def action_state(self, visit: Visit) -> AnyFloats:
    """Returns `FullWidthState.action_state` of a player in a part, a view of shape (lines, sequences)."""
    sequences = self.parts[visit.part].sequences[visit.player]
    return contiguous_lines(self.state.action_state, self._minimizer.action_lines, sequences)

  def infoset_state(self, visit: Visit) -> AnyFloats:
    """Returns `FullWidthState.infoset_state` of a player in a part, a view of shape (lines, infosets).

    In a game of one part, columns of padding follow.
    """
    if len(self.parts) == 1:
      return self.state.infoset_state
    infosets = self.parts[visit.part].infosets[visit.player]
    return contiguous_lines(self.state.infoset_state, self._minimizer.infoset_lines, infosets)

  def action_state_parts(self) -> Iterator[tuple[slice, AnyFloats]]:
    """Yields a slice of sequences and its `action_state`, a view of shape (lines, sequences), for each array."""
    for visit in self._visits_of_arrays():
      yield self.parts[visit.part].sequences[visit.player], self.action_state(visit)

  def infoset_state_parts(self) -> Iterator[tuple[slice, Float64s]]:
    """Yields a slice of infosets and its `infoset_state`, a view of shape (lines, infosets), for each array."""
    for visit in self._visits_of_arrays():
      infosets = self.parts[visit.part].infosets[visit.player]
      yield infosets, self.infoset_state(visit)[:, : infosets.stop - infosets.start]

  def _visits_of_arrays(self) -> Iterator[Visit]:
    """Yields one visit for each array of state: for each part and player, or for the part alone if players share it."""
    for number, part in enumerate(self.parts):
      visits = self.part_steps.visits(number)
      yield from visits[:1] if part.shared_slices else visits

  def action_state_in_game_order(self) -> Float64s:
    """Returns a copy of `action_state` in the game's order, shape (lines, sequences)."""
    result = np.zeros((self._minimizer.action_lines, self.game.end))
    for sequences, lines in self.action_state_parts():
      result[:, sequences] = lines
    return result

  def set_action_state(self, values: Float64s) -> None:
    """Writes `action_state`, given in the game's order, shape (lines, sequences)."""
    for sequences, lines in self.action_state_parts():
      lines[:] = values[:, sequences]

  def infoset_state_in_game_order(self) -> Float64s:
    """Returns a copy of `infoset_state` in the game's order, shape (lines, infosets)."""
    result = np.zeros((self._minimizer.infoset_lines, self.game.num_infosets))
    for infosets, lines in self.infoset_state_parts():
      result[:, infosets] = lines
    return result


def contiguous_lines(array: AnyFloats, lines: int, columns: slice) -> AnyFloats:
  """Returns the lines of a part or of a player, a view of shape (lines, columns of the part).

  Args:
    array: the lines of all parts. The numbers of a part are contiguous, line by line, so that a part with the columns
      `columns` begins at `lines * columns.start`.
    lines: the number of lines.
    columns: the sequences or infosets of the part.
  """
  flat = array.reshape(-1)[lines * columns.start : lines * columns.stop]
  return flat.reshape(lines, columns.stop - columns.start)
