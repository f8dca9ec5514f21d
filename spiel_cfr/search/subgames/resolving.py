"""Re-solving the subgames of a whole policy, with its exploitability before and after, by exact best responses."""

import dataclasses
import hashlib
import math
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from spiel_cfr import catalogue, errors
from spiel_cfr._numba.arrays import Float64s, require_array
from spiel_cfr._util import arguments, files
from spiel_cfr._util.interrupt import DeferredInterrupt
from spiel_cfr.evaluation import evaluate
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.policies import forms, open_spiel
from spiel_cfr.policies.solved_policy import SolvedPolicy
from spiel_cfr.search.gadgets import Gadget, find_gadget
from spiel_cfr.search.subgames.search_step import SearchStep, search_step
from spiel_cfr.search.subgames.subgame_solver import SubgameSolver
from spiel_cfr.search.trees.public_state_trees import DEFAULT_MAX_HISTORIES, public_states
from spiel_cfr.search.trees.search_tree import EvaluatedPolicy, PublicState, SearchTree

_KIND, _FORMAT = "checkpoint of a search", 3


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Resolved(SolvedPolicy):
  """A policy with re-solved subgames.

  Attributes:
    compiled_game: `CompiledGame`. The game as arrays.
    sequence_form: float64 (sequences,). The policy in sequence form.
    probabilities: float64 (sequences,). The policy in behavioral form. Infosets that were not re-solved have the
      blueprint's strategy.
    blueprint_exploitability: float. The exploitability of the blueprint.
    exploitability: float. The exploitability of the policy.
    steps: tuple of `SearchStep`. The steps of the search, in order.
    is_complete: bool. False if Ctrl-C ended the search. Public states of the missing steps have the blueprint's
      strategy.
  """

  compiled_game: CompiledGame
  sequence_form: Float64s
  # `SolvedPolicy` has a cached property of this name, which would be taken for a default value.
  probabilities: Float64s = dataclasses.field()
  blueprint_exploitability: float
  exploitability: float
  steps: tuple[SearchStep, ...]
  is_complete: bool

  def __repr__(self) -> str:
    return (
      f"<Resolved {self.compiled_game.name}: exploitability {self.blueprint_exploitability:z.6g} -> "
      f"{self.exploitability:z.6g}, {sum(step.solved for step in self.steps):,} public states>"
    )

  def __str__(self) -> str:
    """Returns a table of the steps."""
    head = ["player", "moves", "solved", "unreached", "refused", "smallest margin", "opponent gets"]
    rows = [
      [
        f"{step.player}",
        "-".join(map(str, sorted({step.min_depth, step.max_depth}))),
        f"{step.solved:,}",
        f"{step.unreached:,}",
        f"{step.refused:,}",
        "-" if math.isnan(step.smallest_margin) else f"{step.smallest_margin:z.2e}",
        f"{step.value_before:z.6f} -> {step.value_after:z.6f}",
      ]
      for step in self.steps
    ]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = ["  ".join(map(str.rjust, row, widths)) for row in (head, *rows)]
    return "\n".join([repr(self)[1:-1], *lines])


def resolve(
  game: AnyGame,
  blueprint: open_spiel.AnyPolicy,
  *,
  gadget: str | Gadget | None = None,
  player: int | None = None,
  continual: bool = True,
  cut: Sequence[PublicState] | None = None,
  solver: str | None = None,
  iterations: int = 1000,
  max_histories: int = DEFAULT_MAX_HISTORIES,
  checkpoint: str | os.PathLike[str] | None = None,
) -> Resolved:
  """Re-solves the subgames of a policy at every decision, as a bot that searches does.

      print(resolve("leduc_poker", blueprint))

  A subgame is solved with a *gadget* in front of it (see `gadgets`). The *bounds* of the gadget say what the opponent
  may get with each of its private states. The *margin* of a private state is its bound minus the value of the
  opponent's best response to the new strategy. If no margin is negative, the result is at most as exploitable as the
  blueprint, up to rounding.

  `resolve` computes all margins exactly, unless the gadget has no bounds ("unsafe"). A public state with a negative
  margin gets its old strategy back, with three exceptions:

  - A river of hold'em keeps its new strategy if the opponent exceeds its bounds by at most a thousandth of the pot, as
    a mean over its hands. The policy can become more exploitable by that much.
  - All new strategies of a step stay if the opponent's best response to the whole policy is worth less with them than
    without those of negative margins.
  - All new strategies of a step stay if the blueprint has no answer to an action of the opponent, because the bounds
    then mean little.

  An iterative solver re-solves many subgames at once. In hold'em in vector form, only the rivers are re-solved.

  Args:
    game: a compiled game, or anything that `compile_game` accepts.
    blueprint: a policy of both players, in any form that `policies.from_policy` accepts. For large games, pass a
      solver or the result of `solve` or `resolve`, because these are read without infoset names.
    gadget: a name in `GADGETS`, which lists the guarantees, or a `Gadget`. The default is "safe" for linear programs
      and "follow" for iterative solvers. Hold'em in vector form takes "follow", "resolving" or "unsafe".
    player: the searcher. With None, both players search, each against the other's blueprint.
    continual: True re-solves every decision of the searcher from the cut downwards, each from the latest solution.
      False re-solves only the public states of the cut.
    cut: the public states from which the search starts, none below another. By default, if `continual`, all decisions
      of the game are re-solved; otherwise, the cut is `natural_cut()` of `public_states(game)`.
    solver: "lp" for linear programs, which are exact, and fast up to a few thousand sequences; or a name in
      `catalogue.SOLVERS`. The default is "lp", in vector form "dcfr".
    iterations: the number of iterations in each subgame; ignored for solver="lp".
    max_histories: the largest number of histories of a game that is not in vector form.
    checkpoint: a file that is written after each step. If the file exists, the search is resumed bit for bit.

  Returns:
    The new policy. After Ctrl-C, the policy with the steps finished so far.

  Raises:
    UnsupportedGameError: the game is not a constant-sum game of two players, or an infoset is reached after different
      numbers of moves.
    PolicyError: the blueprint does not know the game's infosets.
    ArgumentError: an argument is not as above.
    CheckpointMismatchError: the file belongs to another game or blueprint, or to other arguments.
    FileFormatError: the file is damaged, or is not a checkpoint.
    OSError: the file cannot be read or written.
    GameError: see `compile_game`.
  """
  arguments.boolean(continual, "continual")
  arguments.positive_integer(iterations, "iterations")
  searchers = (0, 1) if player is None else (arguments.integer(player, "player", 0, 1),)
  game = compile_game(game).original
  states = None if cut is None else _checked_cut(game, cut)
  tree = states[0].tree if states else public_states(game, max_histories=max_histories)
  if checkpoint is not None:
    checkpoint = arguments.path(checkpoint, "checkpoint")
  if solver is None:
    solver = tree.default_solver
  arguments.one_of(solver, "solver", ["lp", *catalogue.SOLVERS])
  subgame_solver = SubgameSolver(solver, iterations)
  chosen = find_gadget(gadget, is_linear_program=subgame_solver.is_linear_program)
  blueprint_array = tree.policy_array(blueprint)
  todo = [
    (searcher, level)
    for searcher in searchers
    for level in _levels(tree, searcher, continual, states)
  ]
  progress = _Checkpoint(
    checkpoint, tree, blueprint_array, todo, (repr(chosen), solver, iterations)
  )
  result, steps = progress.read()
  latest: EvaluatedPolicy | None = None
  with DeferredInterrupt(swallow=True) as interrupt:
    for searcher, level in todo[len(steps) :]:
      if interrupt.requested:
        break
      is_own_slot = tree.owned(searcher)
      if latest is None or latest.searcher != searcher:
        latest = tree.evaluated(np.where(is_own_slot, result, blueprint_array), searcher)
      latest, step = search_step(
        latest,
        level,
        chosen,
        subgame_solver,
        keeps_gains=True,
        # A checkpoint contains only whole steps.
        stop=lambda: checkpoint is None and interrupt.requested,
      )
      steps.append(step)
      result[is_own_slot] = latest.policy[is_own_slot]
      progress.write(result, steps)
    is_complete = len(steps) == len(todo) and not interrupt.requested
  return _measured(tree, blueprint_array, result, steps, is_complete)


def _measured(
  tree: SearchTree,
  blueprint_array: Float64s,
  policy: Float64s,
  steps: Sequence[SearchStep],
  is_complete: bool,
) -> Resolved:
  """Returns a policy with its exploitability and that of the blueprint; both policies have shape (slots,)."""
  game, probabilities = tree.game, tree.behavioral_form(policy)
  sequence_form = forms.sequence_form(game, probabilities)
  blueprint_form = forms.sequence_form(game, tree.behavioral_form(blueprint_array))
  return Resolved(
    compiled_game=game,
    sequence_form=sequence_form,
    probabilities=probabilities,
    blueprint_exploitability=evaluate.evaluate(game, blueprint_form).nash_conv / 2,
    exploitability=evaluate.evaluate(game, sequence_form).nash_conv / 2,
    steps=tuple(steps),
    is_complete=is_complete,
  )


def _levels(
  tree: SearchTree, searcher: int, continual: bool, cut: Sequence[PublicState] | None
) -> Iterable[list[PublicState]]:
  """Returns a list of public states, none below another, for each step.

  Args:
    tree: the public states.
    searcher: the searcher.
    continual: see `resolve`.
    cut: see `resolve`.
  """
  if not continual:
    states = list(cut or tree.natural_cut())
    return [states] if states else []
  levels = tree.decisions(searcher)
  if cut is None:
    return levels
  at_or_below = {state.index for state in cut}
  for index in range(len(tree)):
    if tree.above[index] in at_or_below:
      at_or_below.add(index)
  inside = ([state for state in level if state.index in at_or_below] for level in levels)
  return [level for level in inside if level]


def _checked_cut(game: AnyGame, cut: Any) -> list[PublicState]:
  """Returns a user's cut as a list, after checking that its public states fit the game and each other.

  Raises:
    ArgumentError: the cut is empty, a public state belongs to another game, or one is below another.
    GameError: see `compile_game`.
  """
  if not isinstance(cut, list | tuple) or not all(isinstance(state, PublicState) for state in cut):
    raise errors.ArgumentError(
      f"cut must be a list of public states, each a PublicState, not {arguments.shortened(cut)}."
    )
  if not cut:
    raise errors.ArgumentError(
      f"The cut of {game} has no public state. A cut must contain at least one."
    )
  expected, tree = compile_game(game).original, cut[0].tree
  for state in cut:
    game_of_state = state.tree.game
    # Indices of public states differ between the forms of trees.
    is_same_form = type(state.tree) is type(tree)
    if game_of_state.digest != expected.digest or not is_same_form:
      problem = f"belongs to {game_of_state.name}, not to {expected.name}"
      if game_of_state.name == expected.name:
        problem = (
          f"belongs to {expected.name} as compiled in another way"
          if is_same_form
          else "is in a tree of another form than the first public state of the cut"
        )
      raise errors.ArgumentError(
        f"{state!r} {problem}. Take the public states of a cut from one call of public_states, with this compiled game."
      )
  marked = np.zeros(len(tree), bool)
  marked[[state.index for state in cut]] = True
  if len(tree.first_of(marked)) < len(cut):
    raise errors.ArgumentError(
      "The public states of a cut must be distinct, and none may be below another."
    )
  return list(cut)


class _Checkpoint:
  """The progress of one run of `resolve`, in a file if there is a path."""

  def __init__(
    self,
    path: str | os.PathLike[str] | None,
    tree: SearchTree,
    blueprint_array: Float64s,
    todo: Sequence[tuple[int, Sequence[PublicState]]],
    options: tuple[object, ...],
  ) -> None:
    """Identifies the run by its game, blueprint, public states and options."""
    self._path, self._blueprint_array = path, blueprint_array
    indices = [(searcher, [state.index for state in states]) for searcher, states in todo]
    text = repr((tree.game.digest, indices, options)).encode() + blueprint_array.tobytes()
    self._run = hashlib.sha256(text).hexdigest()

  def read(self) -> tuple[Float64s, list[SearchStep]]:
    """Returns the policy and the finished steps in the file. Without a file, the blueprint and no steps."""
    if self._path is None or not os.path.exists(self._path):
      return self._blueprint_array.copy(), []
    header, arrays = files.read(self._path, _KIND, _FORMAT)
    try:
      run, policy = header["run"], arrays["policy"]
      steps = [SearchStep(*step) for step in header["steps"]]
    except (KeyError, TypeError) as error:
      raise errors.FileFormatError(f"{self._path} is not a {_KIND}: {error}.") from error
    if run != self._run:
      raise errors.CheckpointMismatchError(
        f"{self._path} belongs to another game or blueprint, or to other arguments. Give another file, or delete it."
      )
    try:
      require_array(policy, "policy", np.float64, len(self._blueprint_array))
    except ValueError as error:
      raise errors.FileFormatError(f"{self._path} is not a {_KIND}: {error}.") from error
    return policy, steps

  def write(self, policy: Float64s, steps: Sequence[SearchStep]) -> None:
    """Saves the policy and the finished steps."""
    if self._path is not None:
      header = {"run": self._run, "steps": [dataclasses.astuple(step) for step in steps]}
      files.write(self._path, _KIND, _FORMAT, header, {"policy": policy})
