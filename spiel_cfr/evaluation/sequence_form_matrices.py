"""Constraint and payoff matrices of the sequence form, from which users build linear programs of their own.

The strategies of player p are the vectors x >= 0 with E_p x = e, where e = (1, 0, ..., 0). These constraints give the
empty sequence probability 1, and make the actions of each infoset sum to the sequence above it. The expected utility of
a player is x_0' A x_1, with A its payoff matrix. See von Stengel, "Efficient Computation of Behavior Strategies"
(1996).

Rows and columns number the sequences without the padding of solvers' arrays: 0 is the empty sequence, and the others
follow in the order of the player's layout. `sequences` translates them to indices of solvers' arrays.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy  # Python imports `scipy.sparse` at its first use.

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.games.sequence_form.treeplex import Treeplex


def sequences(game: AnyGame, player: int) -> Int64s:
  """Returns the sequence of each row or column of a player's matrices, as an index of solvers' arrays.

  `solver.average_sequence_form()[sequences(game, player)]` is a player's average strategy as a vector x.

  Args:
    game: a compiled game, or an argument of `compile_game`.
    player: the player.

  Returns:
    int64, shape (sequences of the player,), the empty sequence first.

  Raises:
    ArgumentError: the game has no such player.
    GameError: see `compile_game`.
  """
  return _sequences(_treeplex(compile_game(game), player))


def constraint_matrix(game: AnyGame, player: int) -> Any:
  """Returns E of the constraints E x = (1, 0, ..., 0) on a player's strategies in sequence form.

  Args:
    game: a compiled game of any number of players, or an argument of `compile_game`.
    player: the player.

  Returns:
    A SciPy sparse matrix in CSR form, shape (1 + infosets, sequences). The first row has 1 at the empty sequence. The
    row of an infoset has 1 at each of its sequences, and -1 at the sequence above it.

  Raises:
    ArgumentError: the game has no such player.
    GameError: see `compile_game`.
  """
  return _constraints(_treeplex(compile_game(game), player))


def payoff_matrix(game: AnyGame, player: int = 0) -> Any:
  """Returns A such that a player's expected utility is x_0' A x_1, x_p the sequence-form strategy of player p.

  Args:
    game: a compiled game of two players, or an argument of `compile_game`.
    player: the player whose utility is returned.

  Returns:
    A SciPy sparse matrix in CSR form, shape (sequences of player 0, sequences of player 1). An entry is the sum, over
    the histories with these last sequences, of chance's probability times the return.

  Raises:
    UnsupportedGameError: the game has more than two players.
    ArgumentError: the game has no such player.
    GameError: see `compile_game`.
  """
  compiled = compile_game(game)
  if compiled.num_players != 2:
    raise errors.UnsupportedGameError(
      f"The payoffs of {compiled.num_players} players are not a matrix. Use a game of two players, or "
      "compiled.payoff.leaves(player), which lists them for any number of players."
    )
  player = arguments.integer(player, "player", 0, 1)
  sequences_of_player, sequences_of_others, values = compiled.payoff.leaves(player)
  trees = compiled.treeplexes
  entries = [
    _row_numbers(tree)[last_sequences.astype(np.int64) - tree.root]
    for tree, last_sequences in (
      (trees[player], sequences_of_player),
      (trees[1 - player], sequences_of_others[0]),
    )
  ]
  rows, columns = entries if player == 0 else entries[::-1]
  shape = trees[0].num_sequences, trees[1].num_sequences
  return scipy.sparse.coo_matrix((values, (rows, columns)), shape=shape).tocsr()


class StrategyConstraints(NamedTuple):
  """The constraints E x = e, x >= 0 of a linear program with variables x and q, end to end; q is free.

  Attributes:
    matrix: SciPy sparse matrix in CSC form, shape (1 + infosets, variables). E, with columns of 0 for q.
    right: float64 (1 + infosets,). The right side e.
    lowest: float64 (variables,). The lower bounds of the variables.
  """

  matrix: Any
  right: Float64s
  lowest: Float64s


def strategy_constraints(matrix: Any, num_free: int) -> StrategyConstraints:
  """Returns the constraints on a player's strategy x in a program that has other variables q as well.

  Args:
    matrix: the player's `constraint_matrix`.
    num_free: the number of variables q.
  """
  num_rows, num_sequences = matrix.shape
  zeros = scipy.sparse.csr_matrix((num_rows, num_free))
  return StrategyConstraints(
    matrix=scipy.sparse.hstack([matrix, zeros]).tocsc(),
    right=np.append(1.0, np.zeros(num_rows - 1)),
    lowest=np.append(np.zeros(num_sequences), np.full(num_free, -np.inf)),
  )


def _treeplex(compiled: CompiledGame, player: int) -> Treeplex:
  return compiled.treeplexes[arguments.integer(player, "player", 0, compiled.num_players - 1)]


def _sequences(tree: Treeplex) -> Int64s:
  """Returns the sequence of each row; see `sequences`."""
  return np.concatenate([[tree.root], *(rows.ravel() for rows, _ in tree.infoset_groups())])


def _row_numbers(tree: Treeplex) -> Int64s:
  """Returns the row of each of the player's sequences, -1 for padding; shape (sequences with padding,)."""
  result = np.full(tree.end - tree.root, -1)
  sequences = _sequences(tree)
  result[sequences - tree.root] = np.arange(len(sequences))
  return result


def _constraints(tree: Treeplex) -> Any:
  """Returns the constraint matrix of a player; see `constraint_matrix`."""
  row_numbers = _row_numbers(tree)
  rows, columns, values = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)], [np.ones(1)]
  for group, infosets in tree.infoset_groups():
    infoset = 1 + np.arange(infosets.start, infosets.stop)
    rows += [infoset, np.broadcast_to(infoset, group.shape).ravel()]
    above = tree.parent[infosets].astype(np.int64)
    columns += [row_numbers[above - tree.root], row_numbers[group - tree.root].ravel()]
    values += [np.full(len(infoset), -1.0), np.ones(group.size)]
  entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
  return scipy.sparse.coo_matrix(entries, shape=(1 + tree.num_infosets, tree.num_sequences)).tocsr()
