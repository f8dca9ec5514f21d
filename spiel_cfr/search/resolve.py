"""A whole policy whose subgames have been solved again, measured exactly."""

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
from spiel_cfr.search.cut_outs import SubgameSolver
from spiel_cfr.search.gadgets import Gadget, find_gadget
from spiel_cfr.search.public_states import DEFAULT_MAX_HISTORIES, check_cut, public_states
from spiel_cfr.search.search_step import Step, search_step
from spiel_cfr.search.search_tree import Blueprint, PublicState, SearchTree

_KIND, _FORMAT = "checkpoint of a search", 2
# The solver where the opponent can't pick, as in vector form.
_ITERATES = "dcfr"


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Resolved(SolvedPolicy):
  """A policy whose subgames were solved again.

  Attributes:
    compiled_game: the game as arrays.
    sequence_form: float64 (sequences,). The policy in sequence form.
    probabilities: float64 (sequences,). The policy in behavioural form; the blueprint where nothing was solved again.
    blueprint_exploitability: exploitability of the blueprint.
    exploitability: exploitability of the policy.
    steps: the steps of the search, in order.
    is_complete: False after Ctrl-C: the public states after it keep the blueprint.
  """

  compiled_game: CompiledGame
  sequence_form: Float64s
  probabilities: Float64s = dataclasses.field()
  blueprint_exploitability: float
  exploitability: float
  steps: tuple[Step, ...]
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
  """Solves a policy's subgames again, as a player that searches would while it plays, everywhere at once.

      print(resolve("leduc_poker", blueprint))

  With a safe gadget the policy is never more exploitable than the blueprint, but for rounding. Margins are checked by
  an exact best response to what the solver returns: public states where one is negative keep what they had, unless
  the opponent gets more of the whole by that.

  Of a game in vector form no histories are listed, and a solver that iterates solves many subgames at once. Of poker
  over vectors of hands it is the rivers, what follows the last public cards, that are solved again.

  Args:
    game: a compiled game, or what `compile_game` takes.
    blueprint: a policy of both players, anything that `policies.from_policy` reads; of large games a solver, or what
      `solve` or this function has found, for which no infoset has to be named.
    gadget: one of `GADGETS`, see there what each promises, or a `Gadget`. By default "safe" for linear programs, and
      "follow" for solvers that iterate. In vector form "follow", "resolving" or "unsafe".
    player: who searches; None for both, each against the blueprint.
    continual: whether all decisions of the searcher are solved again, from the cut down, each on what the last solution
      plays in all of its subgame; otherwise, only those of the cut.
    cut: public states, none below another; by default the first decisions of all if `continual`, otherwise
      `natural_cut()` of `public_states(game)`.
    solver: "lp" for linear programs, exact and fast up to some thousand sequences; or a name in `catalogue.SOLVERS`. By
      default "lp", in vector form "dcfr".
    iterations: how many a solver that is no program does in each subgame.
    max_histories: how many histories the game may have, if it is not in vector form.
    checkpoint: a file that is written after each step; if it is there, from which to go on, to the same bits.

  Returns:
    The policy. After Ctrl-C, one whose later steps are missing.

  Raises:
    UnsupportedGameError: the game is not a constant-sum game of two players, or infosets span lengths.
    PolicyError: the blueprint does not know the game's infosets.
    ArgumentError: an argument is not as above.
    CheckpointMismatchError: the file is of another game, blueprint, or other arguments.
    FileFormatError: the file is damaged, or no checkpoint.
    OSError: the file can't be read or written.
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
    solver = "lp" if tree.picks else _ITERATES
  arguments.one_of(solver, "solver", ["lp", *catalogue.SOLVERS])
  solves = SubgameSolver(solver, iterations)
  chosen = find_gadget(gadget, picks=tree.picks, iterates=not solves.is_program)
  start = tree.entries(blueprint)
  todo = [
    (searcher, level)
    for searcher in searchers
    for level in _levels(tree, searcher, continual, states)
  ]
  kept = _Checkpoint(checkpoint, tree, start, todo, (repr(chosen), solver, iterations))
  result, steps = kept.read()
  latest: Blueprint | None = None
  with DeferredInterrupt(swallow=True) as interrupt:
    for searcher, level in todo[len(steps) :]:
      if interrupt.requested:
        break
      mine = tree.owned(searcher)
      if latest is None or latest.searcher != searcher:
        latest = tree.blueprint(np.where(mine, result, start), searcher)
      latest, step = search_step(
        latest,
        level,
        chosen,
        solves,
        keeps_gains=tree.trades_margins,
        # A checkpoint has whole steps.
        stop=lambda: checkpoint is None and interrupt.requested,
      )
      steps.append(step)
      result[mine] = latest.entries[mine]
      kept.write(result, steps)
    is_complete = len(steps) == len(todo) and not interrupt.requested
  return resolved(tree, start, result, steps, is_complete)


def resolved(
  tree: SearchTree,
  blueprint: Float64s,
  entries: Float64s,
  steps: Sequence[Step],
  is_complete: bool = True,
) -> Resolved:
  """Returns a policy with its exploitability and that of a blueprint, both as probabilities of entries."""
  game, policies = tree.game, [tree.behavioral_form(each) for each in (blueprint, entries)]
  before, after = (forms.sequence_form(game, each) for each in policies)
  first, second = (evaluate.evaluate(game, each).nash_conv / 2 for each in (before, after))
  return Resolved(game, after, policies[1], first, second, tuple(steps), is_complete)


def _levels(
  tree: SearchTree, searcher: int, continual: bool, cut: Sequence[PublicState] | None
) -> Iterable[list[PublicState]]:
  """Returns the public states that are solved again, those that are independent of each other together."""
  if not continual:
    chosen = list(cut or tree.natural_cut())
    return [chosen] if chosen else []
  levels = tree.decisions(searcher)
  if cut is None:
    return levels
  below = {state.number for state in cut}
  for number in range(len(tree)):
    if tree.above[number] in below:
      below.add(number)
  kept = ([state for state in level if state.number in below] for level in levels)
  return [level for level in kept if level]


class _Checkpoint:
  """A file of what `resolve` has done so far, if there is to be one."""

  def __init__(
    self,
    path: str | os.PathLike[str] | None,
    tree: SearchTree,
    start: Float64s,
    todo: Sequence[tuple[int, Sequence[PublicState]]],
    options: tuple[object, ...],
  ) -> None:
    """Notes of what run it is."""
    self._path, self._start = path, start
    numbers = [(searcher, [state.number for state in states]) for searcher, states in todo]
    text = repr((tree.game.digest, numbers, options)).encode() + start.tobytes()
    self._run = hashlib.sha256(text).hexdigest()

  def read(self) -> tuple[Float64s, list[Step]]:
    """Returns what is played and the steps done: those of the file, or the blueprint and none."""
    if self._path is None or not os.path.exists(self._path):
      return self._start.copy(), []
    header, arrays = files.read(self._path, _KIND, _FORMAT)
    try:
      if header["run"] != self._run:
        raise errors.CheckpointMismatchError(
          f"{self._path} is of another game or blueprint, or of other arguments. Give another file, or delete it."
        )
      entries, steps = arrays["entries"], [Step(*step) for step in header["steps"]]
      require_array(entries, "entries", np.float64, len(self._start))
    except (KeyError, TypeError, ValueError) as error:
      if isinstance(error, errors.SpielCFRError):
        raise
      raise errors.FileFormatError(f"{self._path} is not a {_KIND}: {error}.") from error
    return entries, steps

  def write(self, entries: Float64s, steps: Sequence[Step]) -> None:
    """Keeps what is played now."""
    if self._path is not None:
      header = {"run": self._run, "steps": [dataclasses.astuple(step) for step in steps]}
      files.write(self._path, _KIND, _FORMAT, header, {"entries": entries})
