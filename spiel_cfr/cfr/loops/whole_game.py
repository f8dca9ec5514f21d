"""Iterations over a game as a whole, in one call of compiled code.

For each player in turn, an iteration of CFR is

    gradient        utility = what each sequence is worth to the player, given how the others play
    backward_pass   from the leaves up: at every infoset the minimizer observes its utilities and chooses the next
                    strategy; what the infoset was worth is added to the sequence above it
    forward_pass    from the root down: local strategies become sequence form, and are added to the average

`run_iterations` is that, with what else minimizers and solvers may ask for.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numba import types

from spiel_cfr import errors
from spiel_cfr._numba.arrays import (
  COUNT_TABLE,
  COUNTS,
  FLOAT_TABLE,
  FLOATS,
  INDICES,
  AnyFloats,
  Float64s,
  Int64s,
  Uint16s,
  Uint32s,
  Uint64s,
  aligned_zeros,
  floats,
  tuple_type,
)
from spiel_cfr._numba.kernels import Kernel, inlined, kernel
from spiel_cfr._numba.simd import MOST_LANES, add_unbiased, number_for
from spiel_cfr.cfr.averaging import Averaging
from spiel_cfr.cfr.loops.loop import FullWidthState, IterationNumbers, Loop
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.forced_moves import Decisions
from spiel_cfr.games.payoffs.payoff import PayoffArrays, gradient_signature, payoff_arrays_type
from spiel_cfr.games.sequence_form.blocks import block_signature
from spiel_cfr.games.sequence_form.shared_infosets import (
  NO_SHARED_INFOSETS,
  SHARED_INFOSETS,
  SharedInfosets,
  shared_backward_pass,
  shared_backward_pass_signature,
  spans_depths,
)
from spiel_cfr.games.sequence_form.tree_passes import (
  TREE,
  Memory,
  Scratch,
  Tree,
  backward_pass,
  dither_after,
  forward_pass,
  groups_of,
  memory_type,
  new_scratch,
  scratch_type,
  sequences_of,
  tree_adopt,
  tree_backward_pass,
  tree_reach,
)
from spiel_cfr.policies import forms
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer, resumption

_ZERO, _ONE = np.uint64(0), np.uint64(1)


class _Game(NamedTuple):
  """What iterations read of a game: see `forced_moves.Decisions`; `shared` has no players if there are none."""

  payoff: PayoffArrays
  players: Uint64s
  tree: Tree
  forced: Uint32s
  chosen: Uint32s
  shared: SharedInfosets


class _Arrays(NamedTuple):
  """What iterations write to; see `FullWidthState` for the first ones. What nobody wants has the shape (0,).

  Attributes:
    memory: strategies, averages, and what the minimizer keeps.
    locked: sequences at which strategies stay.
    kept: their probabilities.
    sequence_form: of the current strategies, shape (sequences,).
    utility: of each sequence, shape (sequences,).
    prediction: predicted utilities, shape (sequences,).
    pooled: utilities pooled over shared infosets, shape (sequences,).
    scratch: what block kernels work on.
  """

  memory: Memory
  tapered: AnyFloats
  gradients: Float64s
  play_values: Float64s
  locked: Uint32s
  kept: AnyFloats
  sequence_form: AnyFloats
  utility: AnyFloats
  prediction: AnyFloats
  pooled: AnyFloats
  scratch: Scratch


def _signature(number: Any) -> Any:
  line = floats(number)
  step = types.FunctionType(block_signature(number))
  counts = types.uint64
  return types.void(
    types.FunctionType(gradient_signature(number)),
    step,
    step,
    types.FunctionType(shared_backward_pass_signature(number)),
    types.boolean,
    tuple_type(
      _Game, payoff_arrays_type(number), COUNT_TABLE, TREE, INDICES, INDICES, SHARED_INFOSETS
    ),
    tuple_type(
      _Arrays,
      *(memory_type(number), line, FLOATS, FLOATS, INDICES),
      *(line, line, line, line, line, scratch_type(number)),
    ),
    *(types.boolean, tuple_type(IterationNumbers, *[FLOAT_TABLE] * 3, FLOATS)),
    *(COUNTS, counts, counts),
  )


@inlined
def _add(sums: AnyFloats, values: AnyFloats, weight: float, begin: int, end: int) -> None:
  """Adds values from one sequence to another, weighted, to sums."""
  for i in range(begin, end):
    sums[i] += weight * values[i]


@inlined
def _restore_locked(strategy: AnyFloats, locked: Uint32s, kept: AnyFloats) -> None:
  """Locked infosets play what they did before."""
  for i in range(locked.shape[0]):
    strategy[locked[i]] = kept[i]


@inlined
def _count_in_average(cumulative: AnyFloats, root: int, weight: float) -> float:
  """Adds an iteration's weight to what the average is divided by; returns the dither that float32 is rounded with."""
  dither: float = dither_after(np.float64(cumulative[root]))
  added = number_for(cumulative, weight)
  cumulative[root] = add_unbiased(cumulative[root], added, number_for(cumulative, dither))
  return dither


@inlined
def _copy_forced(
  game: _Game, sequence_form: AnyFloats, cumulative: AnyFloats, tapered: AnyFloats
) -> None:
  """Where there is one action only, it is played as often as what leads to it."""
  forced, chosen = game.forced, game.chosen
  for i in range(forced.shape[0]):
    sequence_form[forced[i]] = sequence_form[chosen[i]]
    cumulative[forced[i]] = cumulative[chosen[i]]
    if tapered.shape[0] != 0:
      tapered[forced[i]] = tapered[chosen[i]]


# Kernels are arguments of their own, because to read them from a tuple takes Python longer.
@kernel(_signature)
def run_iterations(
  gradient: Kernel,
  observe: Kernel,
  predict: Kernel,
  shared_pass: Kernel,
  predicts: bool,
  game: _Game,
  arrays: _Arrays,
  alternating: bool,
  numbers: IterationNumbers,
  done: Uint64s,
  first_player: int,
  end_player: int,
) -> None:
  """Runs as many iterations as there are rows of numbers, of the players from `first_player` to `end_player` - 1.

  `observe` and `predict` are the minimizer's kernels; the latter is any other where it does not predict. `shared_pass`
  is absent where no infosets are shared. `done` is `FullWidthState.counts`: iterations are counted here, so that no
  interruption comes between an iteration and its number.
  """
  payoff, players, tree, shared = game.payoff, game.players, game.tree, game.shared
  strategy, cumulative, action_state, infoset_state = arrays.memory
  sequence_form, utility, prediction = arrays.sequence_form, arrays.utility, arrays.prediction
  pooled, scratch = arrays.pooled, arrays.scratch
  shares = shared.players.shape[0] > 0
  for iteration in range(np.uint64(numbers.parameters.shape[0])):
    parameters = numbers.parameters[iteration]
    if not alternating:
      for player in range(first_player, end_player):
        gradient(player, payoff, sequence_form, utility)
        if arrays.gradients.shape[0] != 0:
          root, stop = sequences_of(players, player)
          _add(arrays.gradients, utility, numbers.weights_before[iteration, player], root, stop)
    for player in range(first_player, end_player):
      begin, end = groups_of(players, player)
      root, stop = sequences_of(players, player)
      if alternating:
        gradient(player, payoff, sequence_form, utility)
      if predicts:
        for i in range(root, stop):
          prediction[i] = utility[i]
      # First it observes what has come, then what it predicts. In a loop, since two calls would be compiled twice.
      minimize, values = observe, utility
      for stage in range(1 + predicts):
        if stage == 1:
          minimize, values = predict, prediction
        # fmt: off
        if shares:
          shared_pass(
            minimize, stage == 1, player, shared, tree, strategy, values, pooled,
            action_state, infoset_state, parameters, scratch,
          )
        else:
          backward_pass(minimize, begin, end, tree, strategy, values, action_state, infoset_state, parameters, scratch)
        # fmt: on
      _restore_locked(strategy, arrays.locked, arrays.kept)
      before = numbers.weights_before[iteration, player]
      after = numbers.weights_after[iteration, player]
      if arrays.play_values.shape[0] != 0:
        arrays.play_values[player] += before * utility[root]
      dither = _count_in_average(cumulative, root, before + after)
      forward_pass(
        begin, end, tree, strategy, sequence_form, cumulative, scratch, before, after, dither
      )
    done[0] += _ONE
    if numbers.additions[iteration] != 0.0:
      length = np.uint64(arrays.tapered.shape[0])
      _add(arrays.tapered, cumulative, numbers.additions[iteration], _ZERO, length)
      done[1] = done[0]
  _copy_forced(game, sequence_form, cumulative, arrays.tapered)


class WholeGameLoop(Loop):
  """Iterations over a game as a whole. All arrays are in the game's order.

  Infosets with one action are left out, but for minimizers that want to see them.
  """

  def __init__(self, game: CompiledGame, minimizer: RegretMinimizer, averaging: Averaging) -> None:
    """Allocates the arrays; strategies are uniform.

    Raises:
      AbstractionError: the minimizer predicts, and shared infosets are not all as deep.
    """
    super().__init__(game, minimizer)
    # Whether arguments of kernels are checked, for which that of a loop that takes its place for a while is too short.
    self._checks = True
    if (
      game.shared_infosets is not None
      and self._predicts
      and spans_depths(game.shared_infosets, game.groups)
    ):
      raise errors.AbstractionError(
        f"{minimizer} predicts utilities from the deepest infosets up, which needs buckets of infosets that are as "
        "deep; some in this game are not. Take a solver without predictions, such as DCFRSolver, or put the number of "
        "own actions into the names of the buckets."
      )
    decisions = game.every_infoset if minimizer.visits_forced else game.decisions
    self._allocate(decisions, averaging, game.scale)
    self._begin()

  @classmethod
  def blank(cls, game: CompiledGame, minimizer: RegretMinimizer, scale: Uint16s) -> "WholeGameLoop":
    """Returns a loop of zeros, for somebody who writes to all of its arrays, with a minimizer of another loop.

    `scale` is as `CompiledGame.scale`.
    """
    result = cls.__new__(cls)
    result._game, result._minimizer, result._checks = game, minimizer, False
    result._allocate(game.every_infoset, Averaging(), scale)
    return result

  def _allocate(self, decisions: Decisions, averaging: Averaging, scale: Uint16s) -> None:
    game, minimizer, correlated = self._game, self._minimizer, averaging.correlated
    zeros = functools.partial(aligned_zeros, dtype=game.dtype)
    self.state = FullWidthState(
      strategy=zeros(game.end),
      cumulative=zeros(game.end),
      tapered=zeros(game.end if averaging.tapered else 0),
      action_state=zeros(minimizer.action_lines, game.end),
      # Kernels may read whole vectors.
      infoset_state=aligned_zeros(minimizer.infoset_lines, game.num_infosets + MOST_LANES),
      gradients=aligned_zeros(game.end if correlated and game.num_players > 2 else 0),
      play_values=np.zeros(game.num_players if correlated else 0),
      locked=np.zeros(game.num_infosets, np.uint8),
    )
    self._sequence_form, self._utility = zeros(game.end), zeros(game.end)
    self._scratch = new_scratch(game.dtype)
    self._tree = Tree(game.groups, game.parent, scale)
    self._decisions = decisions
    self._roots = [treeplex.root for treeplex in game.treeplexes]
    self._sequence_form[self._roots] = 1.0
    self.lock(np.zeros(0, np.int64))

  @property
  def _predicts(self) -> bool:
    return self._minimizer.predict is not None

  def lock(self, sequences: Int64s) -> None:
    super().lock(sequences)
    self.__dict__.pop("_run", None)

  @functools.cached_property
  def _run(self) -> Callable[..., None]:
    """The iterations, with all arguments that stay: to check these takes longer than an iteration of small games."""
    game, minimizer, decisions = self._game, self._minimizer, self._decisions
    state, dtype = self.state, game.dtype
    zeros = functools.partial(aligned_zeros, dtype=dtype)
    kernel = run_iterations.of(dtype)
    bind = kernel.bound if self._checks else functools.partial(functools.partial, kernel.unchecked)
    return bind(
      decisions.payoff.gradient.of(dtype),
      minimizer.observe.of(dtype),
      (minimizer.predict or minimizer.observe).of(dtype),
      shared_backward_pass.of(dtype)
      if game.shared_infosets
      else shared_backward_pass.of(dtype).absent,
      self._predicts,
      _Game(
        decisions.payoff.arrays_of(dtype),
        decisions.players,
        self._tree._replace(groups=decisions.groups, parent=decisions.parent),
        decisions.forced,
        decisions.chosen,
        game.shared_infosets or NO_SHARED_INFOSETS,
      ),
      _Arrays(
        state.memory,
        *(state.tapered, state.gradients, state.play_values, self._locked, self._kept),
        *(self._sequence_form, self._utility),
        zeros(game.end if self._predicts else 0),
        zeros(0 if game.shared_infosets is None else game.end),
        self._scratch,
      ),
    )

  def advance(self, alternating: bool, numbers: IterationNumbers) -> None:
    self._run(alternating, numbers, self.state.counts, 0, self._game.num_players)

  def update(self, player: int, numbers: IterationNumbers) -> None:
    self._run(True, numbers, np.zeros(2, np.uint64), player, player + 1)

  def init_from_strategy(self, sequence_form: Float64s, parameters: Float64s) -> None:
    dtype = self._game.dtype
    tree_adopt.of(dtype)(self._tree, sequence_form.astype(dtype), self.state.strategy)
    if self._game.shared_infosets is not None:
      self.state.strategy[:] = forms.shared_strategy(self._game, sequence_form, self.state.strategy)
    self._restore_locked()
    self._scratch.value[:] = 0.0
    memory = self.state.action_state, self.state.infoset_state, parameters, self._scratch
    adapt = resumption(self._minimizer).of(dtype)
    tree_backward_pass.of(dtype)(adapt, self._tree, self.state.strategy, self._utility, *memory)
    self.refresh()

  def refresh(self) -> None:
    # The empty sequences are 1 from the beginning.
    reach = tree_reach.of(self._game.dtype)
    reach(self._tree, self.state.strategy, self._sequence_form, self._scratch)

  def current_sequence_form(self) -> Float64s:
    return self._sequence_form.astype(np.float64)

  def values(self) -> list[float]:
    return [self._utility.item(root) for root in self._roots]

  def action_blocks(self) -> Iterator[tuple[slice, AnyFloats]]:
    yield slice(0, self._game.end), self.state.action_state

  def infoset_blocks(self) -> Iterator[tuple[slice, Float64s]]:
    yield slice(0, self._game.num_infosets), self.state.infoset_state[:, : self._game.num_infosets]
