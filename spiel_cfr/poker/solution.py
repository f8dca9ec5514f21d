"""Solutions of poker games: a policy and the values of all hands, in files that open in about a second.

A file contains the compiled game, so that loading neither walks the betting nor deals cards. It has the policy in
behavioral form, in steps of 1 / 65,535, and the values of hands at chance nodes, from which `HandValues` computes any
board.
"""

import dataclasses
import os
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, require, require_array
from spiel_cfr._util import arguments, files
from spiel_cfr._util.environment import versions
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.sequence_form.treeplex import ACTIONS, COUNT, FIRST_SEQUENCE, STRIDE
from spiel_cfr.games.vector.public_tree import PLAYERS
from spiel_cfr.poker import saved_game
from spiel_cfr.poker.hand_values import ONE, HandValues, RunoutValues
from spiel_cfr.poker.public_game import PublicGame

KIND, FORMAT = "poker solution of spiel_cfr", 1


class HasAverageSequenceForm(Protocol):
  """Protocol of solvers whose average policy can be saved as a solution: all solvers of a compiled game."""

  compiled_game: Any
  recipe: Any

  @property
  def iteration(self) -> int:
    """The number of iterations."""

  def average_sequence_form(self) -> Float64s:
    """Returns the average policy in sequence form, float64 (sequences,)."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class PokerSolution:
  """Solved poker game: a policy with the values of all hands. Make one with `save_solution` or `load_solution`.

  A solution is a policy for functions such as `nash_conv`. `explore` makes its page in a second.

  Attributes:
    compiled_game: PublicGame. The game; with merged suits, without names of infosets.
    values: HandValues. The policy, and the ranges and values of hands at all public states.
    source: str. The name of the solver and its number of iterations.
  """

  compiled_game: PublicGame
  values: HandValues
  source: str

  @classmethod
  def of(cls, solver: HasAverageSequenceForm) -> "PokerSolution":
    """Returns the solution of a solver's average policy, in 16 bits.

    Raises:
      ArgumentError: `solver` is not a solver of a compiled game.
      UnsupportedGameError: the solver's game is not a poker game in vector form, or merges hands that differ by more
        than suits.
    """
    game = getattr(solver, "compiled_game", None)
    if not isinstance(game, CompiledGame) or not hasattr(solver, "average_sequence_form"):
      raise errors.ArgumentError(
        f"solver must be a solver of a compiled game, such as `solve(...).solver`, not {arguments.shortened(solver)}."
      )
    if not isinstance(game, PublicGame):
      raise errors.UnsupportedGameError(
        f"A solution is of a game of poker.compile_public_game, not of {game}. Save the solver instead: solver.save."
      )
    steps = _in_steps(game, solver.average_sequence_form())
    source = f"average policy of {solver.recipe.name} after {int(solver.iteration):,} iterations"
    return cls(saved_game.without_names(game), HandValues(game.tree, game.layout, steps), source)

  @property
  def expected_values(self) -> Float64s:
    """The expected payoff of each player, in chips net since the start of the hand; float64 (players,)."""
    return np.asarray(self.values.board(0).expected_values()[0])

  @property
  def best_response_values(self) -> Float64s:
    """The payoff of each player's best response, in chips net since the start of the hand; float64 (players,)."""
    return np.asarray(self.values.board(0).expected_values(best=True)[0])

  @property
  def nash_conv(self) -> float:
    """The sum of the players' gains by best responses, in chips."""
    return float((self.best_response_values - self.expected_values).sum())

  @property
  def exploitability(self) -> float:
    """NashConv / 2, in chips: the mean gain by a best response, also for a game with rake."""
    return self.nash_conv / 2

  @property
  def probabilities(self) -> Float64s:
    """The policy in behavioral form, float64 (sequences,); it takes four times the memory of the 16-bit policy."""
    result = np.zeros(self.compiled_game.end)
    for treeplex in self.compiled_game.treeplexes:
      for sequences, _ in treeplex.infoset_groups():
        steps = self.values.probabilities[sequences]
        result[sequences] = steps / steps.sum(axis=0, dtype=np.int64)
    return result

  def probabilities_in(self, game: CompiledGame) -> Float64s | None:
    """Returns the policy in behavioral form if `game` is its game, else None."""
    is_same = game is self.compiled_game or game.digest == self.compiled_game.digest
    return self.probabilities if is_same else None

  def save(self, path: str | os.PathLike[str]) -> None:
    """Writes a file for `load_solution`. If the process dies, the file is complete or absent.

    Raises:
      ArgumentError: `path` is not a path.
      OSError: the file can't be written.
    """
    header, arrays = saved_game.to_file(self.compiled_game)
    arrays["probabilities"] = self.values.probabilities
    for board, runouts in self.values.runout_values().items():
      arrays[f"{board}.wins"] = runouts.wins.astype(np.float32)
      for player in PLAYERS:
        arrays[f"{board}.{player}.values"] = runouts.values[player].astype(np.float32)
    header |= {"source": self.source, "versions": versions()}
    files.write(path, KIND, FORMAT, header, arrays)

  def __repr__(self) -> str:
    """Returns one line."""
    return f"<PokerSolution: {self.source}, {self.compiled_game.size}>"


@typed
def save_solution(solver: HasAverageSequenceForm, path: str | os.PathLike[str]) -> PokerSolution:
  """Writes the average policy of a solver of a poker game, with the values of all hands, to a file.

  Computing the values takes as long as some tens of iterations: 0.2 s for a turn of 2,271 public states.

  Args:
    solver: a solver of a game of `compile_public_game`.
    path: the file, for `load_solution`.

  Returns:
    The solution.

  Raises:
    ArgumentError: `solver` is not a solver of a compiled game, or `path` is not a path.
    UnsupportedGameError: the solver's game is not a poker game in vector form.
    OSError: the file can't be written.
  """
  solution = PokerSolution.of(solver)
  solution.save(path)
  return solution


@typed
def load_solution(path: str | os.PathLike[str]) -> PokerSolution:
  """Reads a file of `save_solution`, in about a second, without compiling the game.

  Raises:
    ArgumentError: `path` is not a path.
    DamagedFileError: a part of the file is missing or was changed.
    FileFormatError: the file is not a solution, or has another version of the format.
    OSError: the file can't be read.
  """
  header, arrays = files.read(path, KIND, FORMAT)
  try:
    game = saved_game.from_file(header, arrays)
    steps = arrays["probabilities"]
    require(steps.dtype == np.uint16 and steps.shape == (game.end,), "every sequence has 16 bits")
    values = HandValues(game.tree, game.layout, steps)
    runouts = {
      board: _read_runouts(values, board, arrays)
      for board, following in enumerate(values.following)
      if following
    }
    source = header["source"]
    require(isinstance(source, str), "the source is a string")
  # A file with a correct checksum may come from another program and have any content.
  except (
    errors.SpielCFRError,
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    TypeError,
    ValueError,
  ) as error:
    raise errors.FileFormatError(f"{path} is not a {KIND}: {error}") from error
  return PokerSolution(game, HandValues(game.tree, game.layout, steps, runouts), source)


def _read_runouts(values: HandValues, board: int, arrays: files.Arrays) -> RunoutValues:
  """Returns the values of a board's runouts from the arrays of a file, after checks."""
  hands = values.tree.boards[board].hands
  num_chances = len(values.street(board).chances)
  wins = arrays[f"{board}.wins"]
  first, second = (arrays[f"{board}.{player}.values"] for player in PLAYERS)
  for values_of_player, hands_of_player in zip((first, second), hands, strict=True):
    require_array(values_of_player, "values", np.float32, 2, num_chances, len(hands_of_player))
    require(np.isfinite(values_of_player), "values are finite")
  require_array(wins, "wins", np.float32, *map(len, hands))
  require((wins >= 0) & (wins <= 1), "equities are probabilities")
  return RunoutValues((first, second), wins)


def _in_steps(game: PublicGame, sums: Float64s) -> npt.NDArray[np.uint16]:
  """Returns the behavioral form of a policy in steps of 1 / 65,535, uniform at infosets whose sums are all 0.

  Args:
    game: the game.
    sums: float64 (sequences,). The policy in sequence form, or a positive multiple of it.
  """
  result = np.zeros(game.end, np.uint16)
  for treeplex in game.treeplexes:
    for group in treeplex.groups.astype(np.int64).tolist():
      first, stride, actions = group[FIRST_SEQUENCE], group[STRIDE], group[ACTIONS]
      rows = slice(first, first + stride * actions)
      of_infosets = sums[rows].reshape(actions, stride)[:, : group[COUNT]]
      total = of_infosets.sum(axis=0)
      shares = np.where(total > 0, of_infosets / np.where(total > 0, total, 1.0), 1 / actions)
      result[rows].reshape(actions, stride)[:, : group[COUNT]] = np.rint(shares * ONE)
  return result
