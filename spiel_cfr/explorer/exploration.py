"""Function `explore`, which writes the HTML page of a policy."""

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
from spiel_cfr.poker.hand_values import HandValues
from spiel_cfr.poker.public_game import PublicGame
from spiel_cfr.poker.solution import PokerSolution
from spiel_cfr.policies import forms, open_spiel
from spiel_cfr.runs.trace import Row, read_trace
from spiel_cfr.solving import Solution

Which = Literal["average", "current"]
# A file of `TraceFile`, or its rows.
AnyTrace: TypeAlias = str | os.PathLike[str] | Sequence[Row]

_LONGEST_TITLE = 60


@dataclasses.dataclass(frozen=True)
class Exploration:
  """A page that was written.

  Attributes:
    path: path. The HTML file.
    num_nodes: int. The number of histories, or public states, on the page.
    num_infosets: int. The number of infosets on the page; in vector form, of hands or types at public states.
    cut: tuple of str. Descriptions of the parts that were left out.
  """

  path: pathlib.Path
  num_nodes: int
  num_infosets: int
  cut: tuple[str, ...]

  def __str__(self) -> str:
    """Returns the path of the page, its size, and the parts left out, in a few lines."""
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
  runouts: Iterable[str] | None = None,
  max_infosets: int = 100_000,
  max_histories: int = 200_000,
  max_nodes: int = 5_000_000,
) -> Exploration:
  """Writes a page to click through a solved game: one HTML file that needs no server and no network.

      >>> import tempfile
      >>> import spiel_cfr
      >>> with tempfile.TemporaryDirectory() as folder:
      ...   found = explore(spiel_cfr.CFRSolver("kuhn_poker"), f"{folder}/kuhn.html")
      >>> found.num_nodes, found.num_infosets
      (58, 12)

  The page shows histories; for games in vector form, public states with ranges of hands or types. Each has its reach
  probability, the strategy, the value and counterfactual regret of each action, and a best response. A page that would
  be too large shows the likeliest part, and names the parts left out.

  Args:
    policies: a `CorrelatedPolicy`, or anything that `policies.from_policy` reads: a solver, a result of `solve` or
      `search.resolve`, a policy, a `PokerSolution`.
    path: the file to write; its folder must exist.
    game: the game of a policy that has no `compiled_game`. For other policies, it must be theirs.
    which: the policy of a solver: "average" or "current".
    title: the title of the page; None for OpenSpiel's name of the game, with its parameters if they are short.
    traces: name -> trace file or rows of a run, shown as convergence curves; None for the rows of `solve`.
    below: a public state of `search.public_states`, or OpenSpiel states. The page then shows only the histories that
      lead there or follow; numbers are those of the whole game.
    runouts: poker only: cards dealt later, such as "2c" or "2c7s". The page has these boards and those before, and the
      values of every card that may come next. By default the page has all boards if they fit, else the first board.
    max_infosets: the most infosets on the page; in vector form, the most hands or types to move.
    max_histories: the most histories on the page.
    max_nodes: the most histories of the game, all of which are walked. For games of types in vector form, the most
      public states.

  Returns:
    The path and the size of the page.

  Raises:
    ArgumentError: an argument is invalid, or the game of a policy is unknown.
    PolicyError: the policy is not a policy of this game.
    GameTooLargeError: the game has more than `max_nodes` histories, or public states.
    GameError: see `compile_game`.
    FileFormatError: a file in `traces` is no trace.
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
  behavioral: Float64s | HandValues
  if isinstance(policies, CorrelatedPolicy):
    game_string = policies.compiled_game.game_string
    compiled, behavioral = with_mediator(policies, max_nodes)
    source = "a mediator who is obeyed; a player who leaves plays a best response"
  else:
    compiled, behavioral, source = _read(policies, game, which)
    game_string = compiled.original.game_string
  if not isinstance(behavioral, HandValues) and compiled.original is not compiled:
    # The page of an abstraction shows its policy in the full game.
    by_name = open_spiel.to_dict(compiled, behavioral)
    compiled = compiled.original
    behavioral = open_spiel.from_policy(compiled, by_name)
  content = describe(
    compiled,
    behavioral,
    max_infosets=max_infosets,
    max_histories=max_histories,
    max_nodes=max_nodes,
    below=below,
    runouts=runouts,
  )
  if isinstance(policies, CorrelatedPolicy) and content.infosets is not None:
    table = content.infosets
    # Labels by infostates only: if all obey, histories of an infoset share moves that its owner has not observed.
    table.labels[:] = infoset_labels(
      content.tree, content.names, table.infostates, table.player, np.zeros_like(table.player)
    )
  content.header.update(
    _header(compiled, content, behavioral),
    title=title if title is not None else _title(game_string),
    # The string of an endgame has thousands of numbers.
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
  policy: Float64s | HandValues,
  *,
  max_infosets: int,
  max_histories: int,
  max_nodes: int,
  below: Any = None,
  runouts: Iterable[str] | None = None,
) -> Content:
  """Returns the content of a page of a policy in behavioral form, shape (sequences,), or of hands; see `explore`."""
  if isinstance(compiled, PublicGame):
    if below is not None:
      raise errors.ArgumentError(
        "below needs a list of histories, and a game in vector form has public states. Compile it with "
        "vector_form=False."
      )
    if not isinstance(policy, HandValues):
      policy = HandValues(compiled.tree, compiled.layout, policy)
    return public_state_pages.describe(compiled, policy, max_infosets=max_infosets, runouts=runouts)
  assert not isinstance(policy, HandValues)
  if runouts is not None:
    raise errors.ArgumentError(
      f"runouts are for poker in vector form, see poker.compile_public_game; {compiled.name} is in another form."
    )
  if isinstance(compiled, VectorGame) and below is None:
    return type_pages.describe(compiled, policy, max_infosets=max_infosets, max_nodes=max_nodes)
  if hasattr(below, "states"):
    below = below.states()
  if not isinstance(below, Iterable | None):
    raise errors.ArgumentError(
      f"below must be a public state or a list of OpenSpiel's states, not {arguments.shortened(below)}."
    )
  return history_pages.describe(
    compiled,
    policy,
    max_nodes=max_nodes,
    max_infosets=max_infosets,
    max_histories=max_histories,
    below=below,
  )


def _read(
  policies: Any, game: AnyGame | None, which: Which
) -> tuple[CompiledGame, Float64s | HandValues, str]:
  """Returns the game, the policy in behavioral form or with values of hands, and a description of the policy."""
  if isinstance(policies, PokerSolution):
    if game is not None:
      open_spiel.check_game(compile_game(game), policies)
    return policies.compiled_game, policies.values, policies.source
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
      f"The game of {arguments.shortened(policies)} is unknown. Give it: explore(..., game=...)."
    )
  compiled = compile_game(game)
  source = f"a {type(policies).__name__}"
  if isinstance(policies, Solution):
    source = f"{policies.solver.recipe.name} after {policies.iterations:,} iterations"
  return compiled, open_spiel.from_policy(compiled, policies), source


def _title(game_string: str) -> str:
  """Returns the title of a game's page, such as "Leduc Poker (players=3)"; long parameters are left out."""
  # A simultaneous game in turn-based form has the simultaneous game's title.
  inside = re.fullmatch(r"turn_based_simultaneous_game\(game=(.*)\)", game_string)
  name, _, parameters = (inside[1] if inside else game_string).partition("(")
  long_names: dict[str, str] = {
    each.short_name: each.long_name for each in pyspiel.registered_games()
  }
  title, parameters = long_names.get(name, name), parameters.removesuffix(")")
  if not parameters:
    return title
  is_long = len(title) + len(parameters) > _LONGEST_TITLE
  return f"{title} ({'…' if is_long else parameters.replace(',', ', ')})"


def _header(
  compiled: CompiledGame, content: Content, policy: Float64s | HandValues
) -> dict[str, Any]:
  """Returns the page's numbers for the whole game and policy; values of hands are in the content's header already."""
  numbers = {"size": compiled.size, "players": compiled.num_players}
  if not isinstance(compiled, PublicGame):
    assert not isinstance(policy, HandValues)
    found = evaluate.evaluate(compiled, forms.sequence_form(compiled, policy))
    numbers |= {
      "values": found.expected_values.tolist(),
      "best_responses": found.best_response_values.tolist(),
      "nash_conv": found.nash_conv,
      "poker": None,
    }
  nash_conv = (content.header | numbers)["nash_conv"]
  two_player = compiled.is_two_player_constant_sum
  return numbers | {"exploitability": nash_conv / 2 if two_player else None}


def _curves(traces: Mapping[str, AnyTrace]) -> list[dict[str, Any]]:
  """Returns the curves of traces. The page drops points that have no place on a logarithmic axis."""
  if not isinstance(traces, Mapping):
    raise errors.ArgumentError(
      f"traces must be a mapping name -> trace, not {arguments.shortened(traces)}."
    )
  result = []
  for name, trace in traces.items():
    rows: Any = read_trace(trace).rows if isinstance(trace, str | os.PathLike) else trace
    if not isinstance(rows, Sequence) or not all(isinstance(row, Row) for row in rows):
      raise errors.ArgumentError(
        f"The values of traces must be trace files or rows of runs, not {arguments.shortened(trace)}."
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
