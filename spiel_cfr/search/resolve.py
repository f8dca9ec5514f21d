"""A whole policy whose subgames have been solved again, measured exactly."""

import dataclasses
import functools
import hashlib
import os
from collections.abc import Iterable, Sequence

import numpy as np

from spiel_cfr import catalogue, errors
from spiel_cfr._numba.arrays import Float64s, require_array
from spiel_cfr._util import arguments, files
from spiel_cfr._util.interrupt import DeferredInterrupt
from spiel_cfr.evaluation import evaluate
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.policies import forms, open_spiel
from spiel_cfr.policies.solved_policy import SolvedPolicy
from spiel_cfr.search.gadgets import Gadget, find_gadget
from spiel_cfr.search.public_states import (
  DEFAULT_MAX_HISTORIES,
  PublicState,
  PublicTree,
  cut_of,
  public_states,
)
from spiel_cfr.search.search_step import Step, search_step, solve_subgame
from spiel_cfr.search.standing import Standing

_KIND, _FORMAT = "checkpoint of a search", 1


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Resolved(SolvedPolicy):
  """What `resolve` has found.

  Attributes:
    compiled_game: the game as arrays.
    sequence_form: the policy, shape (sequences,); where nobody was solved again, it is the blueprint.
    blueprint_exploitability: of the blueprint.
    exploitability: of the policy.
    steps: what was done, in order.
    is_complete: False after Ctrl-C: what was not reached plays what it has played before.
  """

  compiled_game: CompiledGame
  sequence_form: Float64s
  blueprint_exploitability: float
  exploitability: float
  steps: tuple[Step, ...]
  is_complete: bool
  entries: Float64s

  @property
  def probabilities(self) -> Float64s:
    """The policy in behavioural form, shape (sequences,)."""
    return self.compiled_game.from_actions(self.entries)

  def __repr__(self) -> str:
    return (
      f"<Resolved {self.compiled_game.name}: exploitability {self.blueprint_exploitability:.6g} -> "
      f"{self.exploitability:.6g}, {sum(step.solved for step in self.steps):,} public states>"
    )

  def __str__(self) -> str:
    """Returns a table of the steps."""
    head = ["player", "moves", "solved", "unreached", "refused", "smallest margin", "opponent gets"]
    rows = [
      [
        f"{step.player}",
        f"{step.length}",
        f"{step.solved:,}",
        f"{step.unreached:,}",
        f"{step.refused:,}",
        f"{step.smallest_margin:.2e}",
        f"{step.before:.6f} -> {step.after:.6f}",
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
  gadget: str | Gadget = "safe",
  player: int | None = None,
  continual: bool = True,
  cut: Sequence[PublicState] | None = None,
  solver: str = "lp",
  iterations: int = 1000,
  max_histories: int = DEFAULT_MAX_HISTORIES,
  checkpoint: str | os.PathLike[str] | None = None,
) -> Resolved:
  """Solves a policy's subgames again, as a player that searches would while it plays, everywhere at once.

      print(resolve("leduc_poker", blueprint))

  With a safe gadget no margin is negative: a public state where one is, by an exact best response to what the solver
  returns, keeps what it had. So the policy is never more exploitable than the blueprint, but for rounding.

  Args:
    game: a compiled game, or what `compile_game` takes.
    blueprint: a policy of both players, anything that `policies.from_policy` reads.
    gadget: one of `GADGETS`, see there what each promises, or a `Gadget`.
    player: who searches; None for both, each against the blueprint.
    continual: whether all decisions of the searcher are solved again, from the cut down, each on what the last solution
      plays in all of its subgame; otherwise, only those of the cut.
    cut: public states, none below another; by default the first decisions of all if `continual`, otherwise
      `PublicTree.natural_cut`.
    solver: "lp" for linear programs, exact and fast up to some thousand sequences; or a name in `catalogue.SOLVERS`.
    iterations: how many a solver that is no program does in each subgame.
    max_histories: how many histories the game may have.
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
  chosen = find_gadget(gadget)
  arguments.positive_integer(iterations, "iterations")
  if solver != "lp":
    arguments.one_of(solver, "solver", ["lp", *catalogue.SOLVERS])
  searchers = (0, 1) if player is None else (arguments.integer(player, "player", 0, 1),)
  states = None if cut is None else cut_of(game, cut)
  tree = states[0].tree if states else public_states(game, max_histories=max_histories)
  start = tree.entries(blueprint)
  todo = [
    (searcher, states)
    for searcher in searchers
    for states in _levels(tree, searcher, continual, cut)
  ]
  kept = _Checkpoint(checkpoint, tree, start, todo, (repr(chosen), solver, iterations))
  result, steps = kept.read()
  solve = functools.partial(solve_subgame, solver=solver, iterations=iterations)
  standing: Standing | None = None
  with DeferredInterrupt(swallow=True) as interrupt:
    for searcher, states in todo[len(steps) :]:
      if interrupt.requested:
        break
      mine = tree.histories.player_of_entry == searcher
      if standing is None or standing.searcher != searcher:
        standing = Standing(tree.histories, np.where(mine, result, start), searcher)
      standing, step = search_step(standing, [each.histories for each in states], chosen, solve)
      steps.append(step)
      result[mine] = standing.entries[mine]
      kept.write(result, steps)
  return resolved(tree, start, result, steps, len(steps) == len(todo))


def resolved(
  tree: PublicTree,
  blueprint: Float64s,
  entries: Float64s,
  steps: Sequence[Step],
  is_complete: bool = True,
) -> Resolved:
  """Returns a policy, as probabilities of entries, with what is to say of it beside a blueprint."""
  game = tree.game
  forms_of = [forms.sequence_form(game, game.from_actions(each)) for each in (blueprint, entries)]
  before, after = (evaluate.evaluate(game, each).nash_conv / 2 for each in forms_of)
  return Resolved(game, forms_of[1], before, after, tuple(steps), is_complete, entries)


def _levels(
  tree: PublicTree, searcher: int, continual: bool, cut: Sequence[PublicState] | None
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
    tree: PublicTree,
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
