"""Continual re-solving of a whole policy, measured exactly."""

import dataclasses
import hashlib
import math
import os
from collections.abc import Iterable, Sequence

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
from spiel_cfr.search.public_states import DEFAULT_MAX_HISTORIES, check_cut, public_states
from spiel_cfr.search.search_step import SearchStep, search_step
from spiel_cfr.search.search_tree import Blueprint, PublicState, SearchTree
from spiel_cfr.search.subgame_solver import SubgameSolver

_KIND, _FORMAT = "checkpoint of a search", 2


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Resolved(SolvedPolicy):
  """A policy with re-solved subgames.

  Attributes:
    compiled_game: the game as arrays.
    sequence_form: float64 (sequences,). The policy in sequence form.
    probabilities: float64 (sequences,). The policy in behavioural form. Infosets that were not re-solved have the
      blueprint's strategy.
    blueprint_exploitability: exploitability of the blueprint.
    exploitability: exploitability of the policy.
    steps: the steps of the search, in order.
    is_complete: False if Ctrl-C ended the search. Public states of the missing steps have the blueprint's strategy.
  """

  compiled_game: CompiledGame
  sequence_form: Float64s
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
        str(step.length) if step.length == step.max_length else f"{step.length}-{step.max_length}",
        f"{step.solved:,}",
        f"{step.unreached:,}",
        f"{step.refused:,}",
        "-" if math.isnan(step.smallest_margin) else f"{step.smallest_margin:z.2e}",
        f"{step.before:z.6f} -> {step.after:z.6f}",
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
  """Re-solves the subgames of a policy, as a searching player would at every decision.

      print(resolve("leduc_poker", blueprint))

  With a safe gadget, the result is never more exploitable than the blueprint, up to rounding. Margins are checked by an
  exact best response to the solver's strategy. A public state with a negative margin keeps its old strategy, unless
  that would give the opponent more in the whole game.

  An iterative solver re-solves many subgames at once. In hold'em over vectors of hands, only the rivers are re-solved.

  Args:
    game: a compiled game, or anything that `compile_game` accepts.
    blueprint: a policy of both players, in any form that `policies.from_policy` accepts. For large games, pass a
      solver or the result of `solve` or `resolve`, because these are read without infoset names.
    gadget: a name in `GADGETS`, which lists the guarantees, or a `Gadget`. The default is "safe" for linear programs
      and "follow" for iterative solvers. Over vectors of hands: "follow", "resolving" or "unsafe".
    player: the searcher; None for both players, each of whom searches against the blueprint.
    continual: True re-solves every decision of the searcher from the cut downwards, each from the latest solution.
      False re-solves only the public states of the cut.
    cut: public states, none below another. If `continual`, None re-solves all decisions of the game. Otherwise the
      default is `natural_cut()` of `public_states(game)`.
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
  arguments.positive_integer(iterations, "iterations")
  searchers = (0, 1) if player is None else (arguments.integer(player, "player", 0, 1),)
  game = compile_game(game).original
  states = None if cut is None else check_cut(game, cut)
  tree = states[0].tree if states else public_states(game, max_histories=max_histories)
  tree.check_search(solver, has_cut=cut is not None, has_checkpoint=checkpoint is not None)
  if checkpoint is not None:
    checkpoint = arguments.path(checkpoint, "checkpoint")
  if solver is None:
    solver = tree.solver
  arguments.one_of(solver, "solver", ["lp", *catalogue.SOLVERS])
  subgame_solver = SubgameSolver(solver, iterations)
  chosen = find_gadget(gadget, picks=tree.picks, iterates=not subgame_solver.is_linear_program)
  start = tree.entries(blueprint)
  todo = [
    (searcher, level)
    for searcher in searchers
    for level in _levels(tree, searcher, continual, states)
  ]
  saved = _Checkpoint(checkpoint, tree, start, todo, (repr(chosen), solver, iterations))
  result, steps = saved.read()
  latest: Blueprint | None = None
  with DeferredInterrupt(swallow=True) as interrupt:
    for searcher, level in todo[len(steps) :]:
      if interrupt.requested:
        break
      is_searchers = tree.owned(searcher)
      if latest is None or latest.searcher != searcher:
        latest = tree.blueprint(np.where(is_searchers, result, start), searcher)
      latest, step = search_step(
        latest,
        level,
        chosen,
        subgame_solver,
        keeps_gains=tree.trades_margins,
        # A checkpoint contains only whole steps.
        stop=lambda: checkpoint is None and interrupt.requested,
      )
      steps.append(step)
      result[is_searchers] = latest.entries[is_searchers]
      saved.write(result, steps)
    is_complete = len(steps) == len(todo) and not interrupt.requested
  return _measured(tree, start, result, steps, is_complete)


def _measured(
  tree: SearchTree,
  blueprint: Float64s,
  entries: Float64s,
  steps: Sequence[SearchStep],
  is_complete: bool,
) -> Resolved:
  """Returns a policy with its exploitability and that of the blueprint; both policies have shape (entries,)."""
  game, policies = tree.game, [tree.behavioral_form(each) for each in (blueprint, entries)]
  before, after = (forms.sequence_form(game, each) for each in policies)
  first, second = (evaluate.evaluate(game, each).nash_conv / 2 for each in (before, after))
  return Resolved(game, after, policies[1], first, second, tuple(steps), is_complete)


def _levels(
  tree: SearchTree, searcher: int, continual: bool, cut: Sequence[PublicState] | None
) -> Iterable[list[PublicState]]:
  """Returns the public states that each step re-solves; none of a step's states is below another."""
  if not continual:
    states = list(cut or tree.natural_cut())
    return [states] if states else []
  levels = tree.decisions(searcher)
  if cut is None:
    return levels
  below = {state.number for state in cut}
  for index in range(len(tree)):
    if tree.above[index] in below:
      below.add(index)
  inside = ([state for state in level if state.number in below] for level in levels)
  return [level for level in inside if level]


class _Checkpoint:
  """The progress of one run of `resolve`, in a file if there is a path."""

  def __init__(
    self,
    path: str | os.PathLike[str] | None,
    tree: SearchTree,
    start: Float64s,
    todo: Sequence[tuple[int, Sequence[PublicState]]],
    options: tuple[object, ...],
  ) -> None:
    """Identifies the run by its game, blueprint, public states and options."""
    self._path, self._start = path, start
    indices = [(searcher, [state.number for state in states]) for searcher, states in todo]
    text = repr((tree.game.digest, indices, options)).encode() + start.tobytes()
    self._run = hashlib.sha256(text).hexdigest()

  def read(self) -> tuple[Float64s, list[SearchStep]]:
    """Returns the policy and the finished steps in the file. Without a file, the blueprint and no steps."""
    if self._path is None or not os.path.exists(self._path):
      return self._start.copy(), []
    header, arrays = files.read(self._path, _KIND, _FORMAT)
    try:
      run, entries = header["run"], arrays["entries"]
      steps = [SearchStep(*step) for step in header["steps"]]
    except (KeyError, TypeError) as error:
      raise errors.FileFormatError(f"{self._path} is not a {_KIND}: {error}.") from error
    if run != self._run:
      raise errors.CheckpointMismatchError(
        f"{self._path} belongs to another game or blueprint, or to other arguments. Give another file, or delete it."
      )
    try:
      require_array(entries, "entries", np.float64, len(self._start))
    except ValueError as error:
      raise errors.FileFormatError(f"{self._path} is not a {_KIND}: {error}.") from error
    return entries, steps

  def write(self, entries: Float64s, steps: Sequence[SearchStep]) -> None:
    """Saves the policy and the finished steps."""
    if self._path is not None:
      header = {"run": self._run, "steps": [dataclasses.astuple(step) for step in steps]}
      files.write(self._path, _KIND, _FORMAT, header, {"entries": entries})
