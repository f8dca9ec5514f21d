"""Function `explore`: writes an HTML page on which a reader clicks through a game and its policy."""

import dataclasses
import os
import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import pyspiel

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments, files
from spiel_cfr._util.environment import versions
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.cfr.solver import Solver
from spiel_cfr.correlated.correlated_policy import CorrelatedPolicy
from spiel_cfr.evaluation import evaluate
from spiel_cfr.explorer import hand_pages, history_pages, type_pages
from spiel_cfr.explorer.page import render
from spiel_cfr.explorer.page_content import Content
from spiel_cfr.explorer.recommendations import game_with_mediator
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.games.vector.vector_game import VectorGame
from spiel_cfr.poker.hand_values import HandValues
from spiel_cfr.poker.public_game import PublicGame
from spiel_cfr.poker.solution import PokerSolution
from spiel_cfr.policies import forms, open_spiel
from spiel_cfr.runs.trace import Row, read_trace
from spiel_cfr.search.trees.search_tree import PublicState
from spiel_cfr.solving import Solution

# A file of `TraceFile`, or its rows.
AnyTrace: TypeAlias = str | os.PathLike[str] | Sequence[Row]

_LONGEST_TITLE = 60


@dataclasses.dataclass(frozen=True)
class Exploration:
  """Path and size of a page, the result of `explore`.

  Attributes:
    path: path. The HTML file.
    num_nodes: int. The number of histories, or public states, on the page.
    num_infosets: int. The number of infosets on the page; in vector form, of hands or types at public states.
    cut: tuple of str. Descriptions of the parts that the page leaves out.
  """

  path: pathlib.Path
  num_nodes: int
  num_infosets: int
  cut: tuple[str, ...]

  def __str__(self) -> str:
    """Returns the path of the page, its size, and the parts left out, in a few lines."""
    lines = [f"{self.path}: {self.num_nodes:,} nodes, {self.num_infosets:,} infosets"]
    return "\n".join([*lines, *(f"left out: {sentence}" for sentence in self.cut)])


@typed
def explore(
  policy: open_spiel.AnyPolicy,
  path: str | os.PathLike[str],
  *,
  game: AnyGame | None = None,
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

  The page shows histories, or public states with ranges of hands or types for games in vector form. At a decision it
  shows the reach probability, the strategy, the value and counterfactual regret of each action, and a best response. A
  page that would be too large shows the likeliest part, and names the parts left out.

  Args:
    policy: the policy to show: a `CorrelatedPolicy`, or anything that `policies.from_policy` reads: a solver, a result
      of `solve` or `search.resolve`, a policy, a `PokerSolution`.
    path: the file to write; its folder must exist.
    game: the game of a policy without a `compiled_game`. A policy with a `compiled_game` must be of this game.
    title: the title of the page; None for OpenSpiel's name of the game, with its parameters if they are short.
    traces: name -> trace file or rows of a run, shown as convergence curves; None for the rows of `solve`.
    below: a public state of `search.public_states`, or OpenSpiel states. The page then shows only the histories that
      lead to these states or follow them; numbers are those of the whole game.
    runouts: cards dealt after the first board, such as "2c" or "2c7s"; for poker only. For "2c7s", the page shows the
      first board, the board after "2c" and the board after "7s". At each deal it also lists the value of every card
      that may come. By default the page shows all boards if they fit, otherwise only the first board.
    max_infosets: the most infosets on the page; in vector form, the most hands or types to move.
    max_histories: the most histories on the page.
    max_nodes: the most histories of the whole game, all of which are visited, even for a page that shows fewer. For
      games of private types in vector form, the most public states.

  Returns:
    The path and the size of the page.

  Raises:
    ArgumentError: an argument is invalid, or the game of a policy is unknown.
    PolicyError: the policy is not a policy of this game.
    GameTooLargeError: the game has more than `max_nodes` histories or public states.
    GameError: see `compile_game`.
    FileFormatError: a file in `traces` is not a trace.
    OSError: a file can't be read or written.
  """
  max_infosets = arguments.positive_integer(max_infosets, "max_infosets")
  max_histories = arguments.positive_integer(max_histories, "max_histories")
  max_nodes = arguments.positive_integer(max_nodes, "max_nodes")
  path = arguments.path(path, "path")
  title = title if title is None else arguments.text(title, "title")
  if traces is None:
    traces = {policy.solver.recipe.name: policy.rows} if isinstance(policy, Solution) else {}
  curves = _curves(traces)
  subject = _subject(policy, game, max_nodes)
  content = describe(
    subject.game,
    subject.policy,
    max_infosets=max_infosets,
    max_histories=max_histories,
    max_nodes=max_nodes,
    below=below,
    runouts=runouts,
    # Obedient players share moves that the player at an infoset has not observed. A label must not reveal them.
    labels_by_moves=not isinstance(policy, CorrelatedPolicy),
  )
  content.header.update(
    _header(subject, content),
    title=title if title is not None else _title(subject.game_string),
    # The string of an endgame has thousands of numbers.
    game=re.sub(r"(?<==)[^,()]{60,}", "…", subject.game_string),
    policy=subject.source,
    traces=curves,
    versions=versions(),
  )
  with files.replacing(path) as file:
    file.write(render(content))
  left_out = tuple(content.header["cut"])
  return Exploration(path, len(content.tree.mover), content.num_infosets, left_out)


def describe(
  compiled: CompiledGame,
  policy: Float64s | HandValues,
  *,
  max_infosets: int,
  max_histories: int,
  max_nodes: int,
  below: Any = None,
  runouts: Iterable[str] | None = None,
  labels_by_moves: bool = True,
) -> Content:
  """Returns the content of a page; arguments are those of `explore` and `history_pages.describe`.

  The policy is in behavioral form, float64 (sequences,), or has values of hands.
  """
  if isinstance(compiled, PublicGame):
    if below is not None:
      raise errors.ArgumentError(
        "below selects histories, but the page of a poker game in vector form shows public states. Leave below out and "
        "select boards with runouts, or compile the game with vector_form=False."
      )
    if not isinstance(policy, HandValues):
      policy = HandValues(compiled.tree, compiled.layout, policy)
    return hand_pages.describe(compiled, policy, max_infosets=max_infosets, runouts=runouts)
  assert not isinstance(policy, HandValues)
  if runouts is not None:
    raise errors.ArgumentError(
      f"runouts are for poker in vector form, and {compiled.name} is in another form. Leave runouts out, or compile "
      "the game with poker.compile_public_game."
    )
  if isinstance(compiled, VectorGame) and below is None:
    return type_pages.describe(compiled, policy, max_infosets=max_infosets, max_nodes=max_nodes)
  if isinstance(below, PublicState):
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
    labels_by_moves=labels_by_moves,
  )


class _Subject(NamedTuple):
  """Game and policy that a page shows.

  Attributes:
    game: CompiledGame. The game whose histories or public states are on the page.
    policy: float64 (sequences,) or HandValues. The policy in behavioral form, or a policy with values of hands.
    source: str. A description of the policy, such as the solver and its number of iterations.
    game_string: str. OpenSpiel's string of the game that was solved.
  """

  game: CompiledGame
  policy: Float64s | HandValues
  source: str
  game_string: str


def _subject(policy: Any, game: AnyGame | None, max_nodes: int) -> _Subject:
  """Returns the game and the policy to show. The arguments are those of `explore`."""
  if isinstance(policy, CorrelatedPolicy):
    with_mediator, obedient = game_with_mediator(policy, max_nodes)
    source = "players obey the mediator; a player who deviates plays a best response"
    return _Subject(with_mediator, obedient, source, policy.compiled_game.game_string)
  compiled = _game_of(policy, game)
  if isinstance(policy, PokerSolution):
    return _Subject(compiled, policy.values, policy.source, compiled.original.game_string)
  probabilities = open_spiel.from_policy(compiled, policy)
  if compiled.original is not compiled:
    # The page of an abstraction shows its policy in the full game.
    by_infostate = open_spiel.to_dict(compiled, probabilities)
    compiled = compiled.original
    probabilities = open_spiel.from_policy(compiled, by_infostate)
  return _Subject(compiled, probabilities, _source(policy), compiled.game_string)


def _game_of(policy: Any, game: AnyGame | None) -> CompiledGame:
  """Returns the game in which a policy is read, given the argument `game` of `explore`."""
  if game is None:
    game = getattr(policy, "compiled_game", getattr(policy, "game", None))
  elif isinstance(policy, PokerSolution | Solver):
    # Its own game may be compiled in another form, such as an abstraction.
    open_spiel.check_game(compile_game(game), policy)
    return policy.compiled_game
  if game is None:
    raise errors.ArgumentError(
      f"The game of {arguments.shortened(policy)} is unknown. Give it: explore(..., game=...)."
    )
  return compile_game(game)


def _source(policy: Any) -> str:
  """Returns a description of a policy for the header of a page."""
  if isinstance(policy, Solver):
    return f"average policy of {policy.recipe.name} after {int(policy.iteration):,} iterations"
  if isinstance(policy, Solution):
    return f"{policy.solver.recipe.name} after {policy.iterations:,} iterations"
  return f"a {type(policy).__name__}"


def _title(game_string: str) -> str:
  """Returns the title of a game's page, such as "Leduc Poker (players=3)"; long parameters are left out."""
  # A simultaneous game in turn-based form has the simultaneous game's title.
  match = re.fullmatch(r"turn_based_simultaneous_game\(game=(.*)\)", game_string)
  name, _, parameters = (match[1] if match else game_string).partition("(")
  long_names: dict[str, str] = {
    game_type.short_name: game_type.long_name for game_type in pyspiel.registered_games()
  }
  title, parameters = long_names.get(name, name), parameters.removesuffix(")")
  if not parameters:
    return title
  is_long = len(title) + len(parameters) > _LONGEST_TITLE
  return f"{title} ({'…' if is_long else parameters.replace(',', ', ')})"


def _header(subject: _Subject, content: Content) -> dict[str, Any]:
  """Returns the size of the game, and the values and NashConv of the policy, for the header of a page.

  The content of a poker game has values and NashConv in its header already.
  """
  game = subject.game
  header = {"size": game.size, "players": game.num_players}
  if not isinstance(game, PublicGame):
    assert not isinstance(subject.policy, HandValues)
    evaluation = evaluate.evaluate(game, forms.sequence_form(game, subject.policy))
    header |= {
      "values": evaluation.expected_values.tolist(),
      "best_responses": evaluation.best_response_values.tolist(),
      "nash_conv": evaluation.nash_conv,
      "poker": None,
    }
  nash_conv = (content.header | header)["nash_conv"]
  is_zero_sum = game.is_two_player_constant_sum
  return header | {"exploitability": nash_conv / 2 if is_zero_sum else None}


def _curves(traces: Mapping[str, AnyTrace]) -> list[dict[str, Any]]:
  """Returns the convergence curves of traces. The page drops points that a logarithmic axis can't show."""
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
