"""The call that writes a page of a policy, and what it says of the page."""

import dataclasses
import os
import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import pyspiel

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments, files
from spiel_cfr._util.environment import versions
from spiel_cfr.cfr.solver import Solver
from spiel_cfr.correlated.correlated_policy import CorrelatedPolicy
from spiel_cfr.evaluation import evaluate
from spiel_cfr.explorer import history_pages, public_state_pages, type_pages
from spiel_cfr.explorer.infoset_labels import infoset_labels
from spiel_cfr.explorer.page import render
from spiel_cfr.explorer.page_content import Content
from spiel_cfr.explorer.recommendations import with_mediator
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.games.vector.vector_game import VectorGame
from spiel_cfr.poker.public_game import PublicGame
from spiel_cfr.policies import forms, open_spiel
from spiel_cfr.runs.trace import Row, read_trace
from spiel_cfr.solving import Solution

Which = Literal["average", "current"]
# A file that `TraceFile` wrote, or its rows.
AnyTrace: TypeAlias = str | os.PathLike[str] | Sequence[Row]

_LONGEST_TITLE = 60


@dataclasses.dataclass(frozen=True)
class Exploration:
  """A page that was written.

  Attributes:
    path: of the HTML file.
    num_nodes: how many histories, or public states, are in it.
    num_infosets: how many infosets; in vector form, hands or types at public states.
    cut: what was left out, a sentence each.
  """

  path: pathlib.Path
  num_nodes: int
  num_infosets: int
  cut: tuple[str, ...]

  def __str__(self) -> str:
    """Returns where the page is and what it shows, in a few lines."""
    lines = [f"{self.path}: {self.num_nodes:,} nodes, {self.num_infosets:,} infosets"]
    return "\n".join([*lines, *(f"left out: {sentence}" for sentence in self.cut)])


def explore(
  policies: open_spiel.AnyPolicy,
  path: str | os.PathLike[str],
  *,
  game: AnyGame | None = None,
  which: Which = "average",
  title: str | None = None,
  traces: Mapping[str, AnyTrace] | None = None,
  below: Any = None,
  max_infosets: int = 100_000,
  max_histories: int = 200_000,
  max_nodes: int = 5_000_000,
) -> Exploration:
  """Writes a page on which one clicks through a solved game: one HTML file that needs no server and no network.

      >>> import tempfile
      >>> import spiel_cfr
      >>> with tempfile.TemporaryDirectory() as folder:
      ...   found = explore(spiel_cfr.CFRSolver("kuhn_poker"), f"{folder}/kuhn.html")
      >>> found.num_nodes, found.num_infosets
      (58, 12)

  It shows histories, or public states with ranges of hands or types where the game is in vector form. At each stand the
  strategy, how likely it is to be there, what each action is worth, its counterfactual regret, and what a best response
  does. What is likeliest is kept where there is too much, and the page says what was left out.

  Args:
    policies: a mediator's `CorrelatedPolicy`, or anything that `policies.from_policy` reads: a solver, what `solve` or
      `search.resolve` returns, a policy.
    path: of the file; its folder must be there.
    game: of a policy that doesn't know its own; others must be for this one.
    which: of a solver's policies, "average" or "current".
    title: of the page; by default what OpenSpiel calls the game, with its parameters where they are short.
    traces: convergence curves by name: trace files, or rows of runs. By default those of `solve`.
    below: a public state of `search.public_states`, or states of OpenSpiel's: the page has only what leads there and
      what follows, with the numbers of the whole game, as histories.
    max_infosets: how many infosets the page may have; in vector form, how many hands or types that are to move.
    max_histories: how many histories the page may have.
    max_nodes: how many histories are walked to make it; the walk is what takes time. In games of types in vector form,
      how many public states there may be.

  Returns:
    What was written.

  Raises:
    ArgumentError: an argument makes no sense, or the game of a policy is not known.
    PolicyError: the policy is not one for this game.
    GameTooLargeError: the game has more histories, or public states, than `max_nodes`.
    GameError: see `compile_game`.
    FileFormatError: a trace is none.
    OSError: a file can't be read or written.
  """
  max_infosets = arguments.positive_integer(max_infosets, "max_infosets")
  max_histories = arguments.positive_integer(max_histories, "max_histories")
  max_nodes = arguments.positive_integer(max_nodes, "max_nodes")
  path = arguments.path(path, "path")
  arguments.one_of(which, "which", get_args(Which))
  title = title if title is None else arguments.text(title, "title")
  if traces is None:
    traces = {policies.solver.recipe.name: policies.rows} if isinstance(policies, Solution) else {}
  curves = _curves(traces)
  if isinstance(policies, CorrelatedPolicy):
    game_string = policies.compiled_game.game_string
    compiled, behavioral = with_mediator(policies, max_nodes)
    source = "a mediator who is obeyed; whoever leaves it plays a best response"
  else:
    compiled, behavioral, source = _read(policies, game, which)
    game_string = compiled.original.game_string
  if compiled.original is not compiled:
    # Of an abstraction, what its policy is in the game that it stands for.
    table = open_spiel.to_dict(compiled, behavioral)
    compiled = compiled.original
    behavioral = open_spiel.from_policy(compiled, table)
  content = describe(
    compiled,
    behavioral,
    max_infosets=max_infosets,
    max_histories=max_histories,
    max_nodes=max_nodes,
    below=below,
  )
  if isinstance(policies, CorrelatedPolicy) and content.infosets is not None:
    own = content.infosets
    # Players do not know all the moves that histories have in common in which everybody obeys.
    own.labels[:] = infoset_labels(
      content.tree, content.names, own.infostates, own.player, np.zeros_like(own.player)
    )
  content.header.update(
    _header(compiled, behavioral),
    title=title if title is not None else _title(game_string),
    # An endgame has thousands of numbers in its string.
    game=re.sub(r"(?<==)[^,()]{60,}", "…", game_string),
    policy=source,
    traces=curves,
    versions=versions(),
  )
  with files.replacing(path) as file:
    file.write(render(content))
  cut = tuple(content.header["cut"])
  return Exploration(path, len(content.tree.mover), content.num_infosets, cut)


def describe(
  compiled: CompiledGame,
  behavioral: Float64s,
  *,
  max_infosets: int,
  max_histories: int,
  max_nodes: int,
  below: Any = None,
) -> Content:
  """Returns what a page shows of a policy in behavioural form, shape (sequences,); see `explore`."""
  if isinstance(compiled, PublicGame):
    if below is not None:
      raise errors.ArgumentError(
        "A game in vector form is shown by its public states, all of them. Compile it with vector_form=False."
      )
    return public_state_pages.describe(compiled, behavioral, max_infosets=max_infosets)
  if isinstance(compiled, VectorGame) and below is None:
    return type_pages.describe(compiled, behavioral, max_infosets=max_infosets, max_nodes=max_nodes)
  if hasattr(below, "states"):
    below = below.states()
  if not isinstance(below, Iterable | None):
    raise errors.ArgumentError(
      f"below must be a public state, or OpenSpiel's states, not {arguments.shortened(below)}."
    )
  return history_pages.describe(
    compiled,
    behavioral,
    max_nodes=max_nodes,
    max_infosets=max_infosets,
    max_histories=max_histories,
    below=below,
  )


def _read(policies: Any, game: AnyGame | None, which: Which) -> tuple[CompiledGame, Float64s, str]:
  """Returns the game, the policy in behavioural form, and what it is in words."""
  if isinstance(policies, Solver):
    if game is not None:
      open_spiel.check_game(compile_game(game), policies)
    average = which == "average"
    behavioral = policies.average_probabilities() if average else policies.current_probabilities()
    source = (
      f"{which} policy of {policies.recipe.name} after {int(policies.iteration):,} iterations"
    )
    return policies.compiled_game, behavioral, source
  if game is None:
    game = getattr(policies, "compiled_game", getattr(policies, "game", None))
  if game is None:
    raise errors.ArgumentError(
      f"Say which game {arguments.shortened(policies)} is a policy for: explore(..., game=...)."
    )
  compiled = compile_game(game)
  source = f"a {type(policies).__name__}"
  if isinstance(policies, Solution):
    source = f"{policies.solver.recipe.name} after {policies.iterations:,} iterations"
  return compiled, open_spiel.from_policy(compiled, policies), source


def _title(game_string: str) -> str:
  """Returns what a game is called, as "Leduc Poker (players=3)"; long parameters are left out."""
  # The moves of simultaneous games, made one after the other, are theirs.
  inside = re.fullmatch(r"turn_based_simultaneous_game\(game=(.*)\)", game_string)
  name, _, parameters = (inside[1] if inside else game_string).partition("(")
  known: dict[str, str] = {each.short_name: each.long_name for each in pyspiel.registered_games()}
  title, parameters = known.get(name, name), parameters.removesuffix(")")
  if not parameters:
    return title
  long = len(title) + len(parameters) > _LONGEST_TITLE
  return f"{title} ({'…' if long else parameters.replace(',', ', ')})"


def _header(compiled: CompiledGame, behavioral: Float64s) -> dict[str, Any]:
  """Returns what the page says of game and policy as a whole."""
  found = evaluate.evaluate(compiled, forms.sequence_form(compiled, behavioral))
  two_player = compiled.is_two_player_constant_sum
  return {
    "size": compiled.size,
    "players": compiled.num_players,
    "values": found.expected_values.tolist(),
    "best_responses": found.best_response_values.tolist(),
    "nash_conv": found.nash_conv,
    "exploitability": found.nash_conv / 2 if two_player else None,
  }


def _curves(traces: Mapping[str, AnyTrace]) -> list[dict[str, Any]]:
  """Returns the curves of some traces; what can't be on a logarithmic axis is left to the page."""
  if not isinstance(traces, Mapping):
    raise errors.ArgumentError(f"traces must be traces by name, not {arguments.shortened(traces)}.")
  result = []
  for name, trace in traces.items():
    rows: Any = read_trace(trace).rows if isinstance(trace, str | os.PathLike) else trace
    if not isinstance(rows, Sequence) or not all(isinstance(row, Row) for row in rows):
      raise errors.ArgumentError(
        f"traces must be trace files or rows of runs, by name, not {arguments.shortened(trace)}."
      )
    result.append(
      {
        "name": str(name),
        "iterations": [row.iteration for row in rows],
        "seconds": [row.solver_seconds for row in rows],
        "nash_conv": [float(row.nash_conv) for row in rows],
      }
    )
  return result
