"""The loop over a game as a whole."""

import functools
from collections.abc import Callable

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s, Uint16s, Uint64s, aligned_zeros
from spiel_cfr._numba.simd import MOST_LANES
from spiel_cfr.cfr.loops.iterations import (
  FlatArrays,
  FlatGame,
  FlatKernels,
  FlatWorkspace,
  run_iterations,
)
from spiel_cfr.cfr.loops.loop import IterationNumbers, Loop
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.forced_moves import Decisions
from spiel_cfr.games.sequence_form.shared_infosets import NO_SHARED_INFOSETS, spans_depths, shared_backward_pass
from spiel_cfr.games.sequence_form.tree_passes import (
  Memory,
  Tree,
  new_scratch,
  tree_adopt,
  tree_forward_pass,
  tree_reach,
  tree_backward_pass,
)
from spiel_cfr.policies import forms
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer, resumption


class FlatLoop(Loop):
  """See the module's docstring. All arrays are in the game's order.

  Iterations leave out infosets with one action, but for minimizers that want to see them.
  """

  def __init__(
    self, game: CompiledGame, minimizer: RegretMinimizer, tapered: bool, correlated: bool
  ) -> None:
    """Allocates the arrays; strategies are uniform."""
    super().__init__(game, minimizer)
    # Whether arguments of kernels are checked, for which that of a loop that takes its place for a while is too short.
    self._checks = True
    predicts = minimizer.predict is not None
    if game.shared_infosets is not None and predicts and spans_depths(game.shared_infosets, game.groups):
      raise errors.AbstractionError(
        f"{minimizer} predicts utilities from the deepest infosets up, which needs buckets of infosets that are as "
        "deep; some in this game are not. Take a solver without predictions, such as DCFRSolver, or put the number of "
        "own actions into the names of the buckets."
      )
    decisions = game.every_infoset if minimizer.visits_forced else game.decisions
    self._allocate(decisions, tapered, correlated)
    self.strategy[:] = forms.uniform(game)
    self.local[:, : game.num_infosets] = self._initial_local
    self.refresh()

  @classmethod
  def blank(cls, game: CompiledGame, minimizer: RegretMinimizer, scale: Uint16s) -> "FlatLoop":
    """Returns a loop of zeros, for somebody who writes to all of its arrays, with a minimizer of another loop.

    `scale` is as `CompiledGame.scale`.
    """
    result = cls.__new__(cls)
    result._game, result._minimizer, result._checks = game, minimizer, False
    result._allocate(game.every_infoset, tapered=False, correlated=False, scale=scale)
    return result

  def _allocate(
    self, decisions: Decisions, tapered: bool, correlated: bool, scale: Uint16s | None = None
  ) -> None:
    game, minimizer = self._game, self._minimizer
    zeros = functools.partial(aligned_zeros, dtype=game.dtype)
    self.strategy = zeros(game.end)
    self.cumulative = zeros(game.end)
    self.tapered = zeros(game.end if tapered else 0)
    self.gradients = aligned_zeros(game.end if correlated and game.num_players > 2 else 0)
    self.play_values = np.zeros(game.num_players if correlated else 0)
    self.lock(np.zeros(0, np.int64))
    self.state = zeros(minimizer.state_lines, game.end)
    # Kernels may read whole vectors.
    self.local = aligned_zeros(minimizer.local_lines, game.num_infosets + MOST_LANES)
    self._tree = Tree(game.groups, game.parent, game.scale if scale is None else scale)
    self._decisions = decisions
    self._visited = self._tree._replace(groups=decisions.groups, parent=decisions.parent)
    self._workspace = FlatWorkspace(
      zeros(game.end),
      zeros(game.end),
      zeros(game.end if minimizer.predict else 0),
      zeros(0 if game.shared_infosets is None else game.end),
    )
    self._scratch = new_scratch(game.dtype)
    self._roots = [treeplex.root for treeplex in game.treeplexes]
    self._workspace.sequence_form[self._roots] = 1.0

  def advance(self, alternating: bool, numbers: IterationNumbers, done: Uint64s) -> None:
    """See the base class."""
    self._run(alternating, numbers, done)

  def hold(self, sequences: Int64s) -> None:
    """See the base class."""
    super().lock(sequences)
    self.__dict__.pop("_run", None)

  @functools.cached_property
  def _run(self) -> Callable[[bool, IterationNumbers, Uint64s], None]:
    """The iterations, with all arguments that stay: to check these takes longer than an iteration of small games."""
    kernel = run_iterations.of(self._game.dtype)
    bind = kernel.bound if self._checks else functools.partial(functools.partial, kernel.unchecked)
    return bind(*self.kernels(), self.predicts, self.game(), self.arrays())

  @property
  def predicts(self) -> bool:
    """Whether the minimizer predicts."""
    return self._minimizer.predict is not None

  def kernels(self) -> FlatKernels:
    """Returns what iterations call."""
    dtype, minimizer = self._game.dtype, self._minimizer
    return FlatKernels(
      self._decisions.payoff.gradient.of(dtype),
      minimizer.observe.of(dtype),
      minimizer.predict.of(dtype) if minimizer.predict else minimizer.observe.of(dtype).absent,
      shared_backward_pass.of(dtype) if self._game.shared_infosets else shared_backward_pass.of(dtype).absent,
    )

  def game(self) -> FlatGame:
    """Returns what iterations read."""
    decisions = self._decisions
    return FlatGame(
      decisions.payoff.arrays_of(self._game.dtype),
      decisions.players,
      self._visited,
      decisions.forced,
      decisions.chosen,
      self._game.shared_infosets or NO_SHARED_INFOSETS,
    )

  def arrays(self) -> FlatArrays:
    """Returns what iterations write to."""
    return FlatArrays(
      Memory(self.strategy, self.cumulative, self.state, self.local),
      self.tapered,
      self.gradients,
      self.play_values,
      self._held,
      self._kept,
      self._workspace,
      self._scratch,
    )

  def update(self, player: int, parameters: Float64s, before: Float64s, after: Float64s) -> None:
    """See the base class."""
    minimizer, dtype = self._minimizer, self._game.dtype
    sequence_form, utility, prediction, shared = self._workspace
    begin, end, root, stop = self._decisions.players[player].tolist()
    tree = self._visited._replace(groups=self._visited.groups[begin:end])
    self._decisions.payoff.gradient_into(player, sequence_form, utility)
    steps = [(minimizer.observe, utility)]
    if minimizer.predict is not None:
      prediction[root:stop] = utility[root:stop]
      steps.append((minimizer.predict, prediction))
    for step, (kernel_of_blocks, utilities) in enumerate(steps):
      rest = self.state, self.local, parameters, self._scratch
      if self._game.shared_infosets is None:
        tree_backward_pass.of(dtype)(kernel_of_blocks.of(dtype), tree, self.strategy, utilities, *rest)
      else:
        shared_backward_pass.of(dtype)(
          kernel_of_blocks.of(dtype),
          step > 0,
          np.uint64(player),
          self._game.shared_infosets,
          self._visited,
          self.strategy,
          utilities,
          shared,
          *rest,
        )
    self._restore_held()
    weights = float(before[player]), float(after[player])
    total = float(self.cumulative[root])
    self.cumulative[root] += sum(weights)
    tree_forward_pass.of(dtype)(
      tree, self.strategy, sequence_form, self.cumulative, self._scratch, *weights, total
    )
    for numbers in (sequence_form, self.cumulative):
      numbers[self._decisions.forced] = numbers[self._decisions.chosen]

  def resume(self, sequence_form: Float64s, parameters: Float64s) -> None:
    """See the base class."""
    dtype = self._game.dtype
    tree_adopt.of(dtype)(self._tree, sequence_form.astype(dtype), self.strategy)
    if self._game.shared_infosets is not None:
      self.strategy[:] = forms.shared_strategy(self._game, sequence_form, self.strategy)
    self._restore_held()
    self._scratch.value[:] = 0.0
    tree_backward_pass.of(dtype)(
      resumption(self._minimizer).of(dtype),
      self._tree,
      self.strategy,
      self._workspace.utility,
      self.state,
      self.local,
      parameters,
      self._scratch,
    )
    self.refresh()

  def refresh(self) -> None:
    """See the base class."""
    # The empty sequences are 1 from the beginning.
    reach = tree_reach.of(self._game.dtype)
    reach(self._tree, self.strategy, self._workspace.sequence_form, self._scratch)

  def current_sequence_form(self) -> Float64s:
    """See the base class."""
    return self._workspace.sequence_form.astype(np.float64)

  def values(self) -> list[float]:
    """See the base class."""
    utility = self._workspace.utility
    return [utility.item(root) for root in self._roots]

  def state_line(self, line: int) -> Float64s:
    """See the base class."""
    result: Float64s = self.state[line].astype(np.float64, copy=False)
    return result

  def set_state_line(self, line: int, values: Float64s) -> None:
    """See the base class."""
    self.state[line] = values

  def local_line(self, line: int) -> Float64s:
    """See the base class."""
    result: Float64s = self.local[line, : self._game.num_infosets]
    return result

  def set_local_line(self, line: int, values: Float64s) -> None:
    """See the base class."""
    self.local[line, : self._game.num_infosets] = values
