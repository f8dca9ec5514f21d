"""Training data for leaf values, from self-play with search.

The loop is that of ReBeL (Brown, Bakhtin, Lerer and Gong 2020). A public state is solved down to its leaves with the
current leaf values, from the ranges of play and from random ranges. The solutions are examples. Play continues at one
of the leaves. Its ranges of play are those under the strategies of a random iteration of the solver.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.loading import load_game
from spiel_cfr.search.gadget_games import PerPlayer
from spiel_cfr.search.leaf_values.value_network import Examples
from spiel_cfr.search.play.segments import Segment, check_view
from spiel_cfr.search.subgames.lookahead import (
  LeafValues,
  LookaheadSolution,
  check_leaf_values,
)
from spiel_cfr.search.trees.search_tree import PublicState

# The expected fraction of private states that have a positive probability in a random range.
_POSITIVE_FRACTION = 0.85


def no_values(public_states: Sequence[PublicState], ranges: Float64s) -> Float64s:
  """Returns 0 for each private state: leaf values before training."""
  return np.zeros_like(ranges)


def self_play(
  game: AnyGame,
  leaf_values: LeafValues = no_values,
  *,
  depth: int = 2,
  plays: int = 50,
  batch: int = 16,
  iterations: int = 100,
  exploration: float = 0.5,
  max_histories: int = 50_000,
  seed: int = 0,
) -> Examples:
  """Plays a game against itself with search, and returns the solutions of all public states solved after the root.

      network = learn_values([self_play("leduc_poker")])
      for seed in range(10):
        network = learn_values([self_play("leduc_poker", network, seed=seed)], network=network)

  At each public state, a batch of pairs of ranges is solved at once. Half of them are ranges of play, half are random.

  Args:
    game: a compiled game, or anything that `compile_game` accepts. Only the subgames of the plays are listed.
    leaf_values: the values at leaves; 0 by default.
    depth: the number of moves from the first decision of a subgame to its leaves, chance's included.
    plays: the number of plays.
    batch: the number of pairs of ranges at each public state.
    iterations: the number of iterations of SAPCFR+ in each subgame.
    exploration: the probability that the next leaf is drawn uniformly, not by the players' strategies.
    max_histories: the largest number of histories of a subgame.
    seed: the seed of ranges and play.

  Raises:
    UnsupportedGameError: the game is not a constant-sum game of two players; an infoset is reached after different
      numbers of moves; or a player forgets.
    GameTooLargeError: a subgame has more than `max_histories` histories.
    ArgumentError: an argument has a wrong type or is outside its range.
    GameError: see `compile_game`.
  """
  for name, number in (("plays", plays), ("batch", batch), ("iterations", iterations)):
    arguments.positive_integer(number, name)
  check_leaf_values(leaf_values)
  arguments.positive_integer(depth, "depth")
  arguments.positive_integer(max_histories, "max_histories")
  arguments.real_number(exploration, "exploration", 0.0, 1.0)
  rng = np.random.default_rng(arguments.integer(seed, "seed", 0))
  view = game.original.view if isinstance(game, CompiledGame) else GameView(load_game(game))
  check_view(view)
  root = Segment(view, [view.new_initial_state()], None, depth, max_histories)
  solver = _Solver(leaf_values, iterations, (batch + 1) // 2, rng)
  ones = np.ones((1, solver.num_play_columns))
  first = solver.solve(root, (ones, ones))
  solved = [each for _ in range(plays) for each in _play(first, solver, batch, exploration)]
  return _examples(solved, batch)


class _Solved(NamedTuple):
  """A solved subgame of a play. Ranges and solution have a column for each pair of ranges.

  Attributes:
    segment: `Segment`. The histories of the subgame.
    ranges: by player, float64 (private states, columns). The ranges at its public state.
    solution: `LookaheadSolution`. Its drawn iterations are random.
  """

  segment: Segment
  ranges: PerPlayer
  solution: LookaheadSolution


class _Solver(NamedTuple):
  """The solver of all subgames of `self_play`.

  Attributes:
    leaf_values: the values at leaves.
    iterations: int. The number of iterations.
    num_play_columns: int. The number of columns with ranges of play. These are the first columns.
    rng: the generator of all random numbers.
  """

  leaf_values: LeafValues
  iterations: int
  num_play_columns: int
  rng: np.random.Generator

  def solve(self, segment: Segment, ranges: PerPlayer) -> _Solved:
    """Solves a subgame from its ranges."""
    drawn = self.rng.integers(1, self.iterations + 1, size=ranges[0].shape[1:])
    solution = segment.lookahead.solve(
      ranges, self.leaf_values, self.iterations, drawn_iterations=drawn
    )
    return _Solved(segment, ranges, solution)


def _examples(solved: Sequence[_Solved], batch: int) -> Examples:
  """Returns solved subgames as training data; `batch` is their number of columns."""
  states = [each.segment.lookahead.root for each in solved for _ in range(batch)]
  width = max((len(range_) for each in solved for range_ in each.ranges), default=1)
  ranges_table, values_table = np.zeros((2, len(states), 2, width))
  for position, each in enumerate(solved):
    rows = slice(position * batch, (position + 1) * batch)
    for player, range_ in enumerate(each.ranges):
      ranges_table[rows, player, : len(range_)] = range_.T
      values_table[rows, player, : len(range_)] = each.solution.values[player].T
  return Examples(states, ranges_table, values_table)


def _play(solved: _Solved, solver: _Solver, batch: int, exploration: float) -> Iterator[_Solved]:
  """Yields the subgames of one play below a solved subgame."""
  while True:
    leaf = _next_leaf(solved, solver, exploration)
    if leaf is None:
      return
    lookahead = solved.segment.lookahead
    first, second = (
      _next_range(solved.solution.drawn_ranges[leaf, player, :count], solver, batch)
      for player, count in enumerate(lookahead.counts[leaf].tolist())
    )
    below = solved.segment.segment_below(lookahead.leaves[leaf].index)
    solved = solver.solve(below, (first, second))
    yield solved


def _next_leaf(solved: _Solved, solver: _Solver, exploration: float) -> int | None:
  """Returns the position of a random leaf, at which play continues; None if the game ends before a leaf.

  With probability `exploration`, all leaves are equally likely. Otherwise, the probability of a leaf follows from the
  ranges in a random column of play, and from the strategies of the iteration drawn for this column.
  """
  lookahead, ranges, rng = solved.segment.lookahead, solved.ranges, solver.rng
  count, column = len(lookahead.leaves), int(rng.integers(solver.num_play_columns))
  if not count:
    return None
  first, second, chance = lookahead.root.tree.pairs(lookahead.root.index)
  total = float((chance * ranges[0][first, column] * ranges[1][second, column]).sum())
  if rng.random() < exploration or not total > 0:
    return int(rng.integers(count))
  drawn = solved.solution.drawn_ranges[..., column]
  likely = np.einsum("li,lij,lj->l", drawn[:, 0], lookahead.chances, drawn[:, 1]) / total
  leaf = int(np.searchsorted(np.cumsum(likely), rng.random()))
  return leaf if leaf < count else None


def _next_range(drawn_range: Float64s, solver: _Solver, batch: int) -> Float64s:
  """Returns a player's ranges at a leaf, shape (private states, batch).

  Args:
    drawn_range: float64 (private states, columns). The player's ranges there in the iterations drawn. A range of 0 is
      replaced by a random range.
    solver: the solver.
    batch: the number of columns of the result. The columns after those of play are random ranges.
  """
  result = _random_ranges(len(drawn_range), batch, solver.rng)
  play = drawn_range[:, : solver.num_play_columns]
  is_reached = play.any(axis=0)
  result[:, : solver.num_play_columns][:, is_reached] = play[:, is_reached]
  return result


def _random_ranges(count: int, columns: int, rng: np.random.Generator) -> Float64s:
  """Returns random ranges, from uniform to nearly pure, shape (count, columns); some private states have 0."""
  drawn = rng.random((count, columns)) ** np.exp(rng.uniform(-2.0, 2.0, columns))
  with_zeros = drawn * (rng.random((count, columns)) < _POSITIVE_FRACTION)
  return np.where(with_zeros.any(axis=0), with_zeros, drawn)
