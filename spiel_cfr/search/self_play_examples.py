"""Training data for leaf values, from self-play with search.

The loop is that of ReBeL (Brown, Bakhtin, Lerer and Gong 2020). A public state is solved down to its leaves with the
current leaf values, from the ranges of play and from random ranges. The solutions are examples. Play continues at one
of the leaves. Its ranges of play are those under the strategies of a random iteration of the solver.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.loading import load_game
from spiel_cfr.search.cut_outs import PerPlayer
from spiel_cfr.search.lookahead import (
  LeafValues,
  Lookahead,
  LookaheadSolution,
  check_leaf_values,
)
from spiel_cfr.search.search_tree import PublicState
from spiel_cfr.search.segments import Segment, check_view
from spiel_cfr.search.value_network import Examples

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
    iterations: the number of iterations of PCFR+ in each subgame.
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
  solved = [
    example
    for _ in range(plays)
    for example in _play(root, leaf_values, batch, iterations, exploration, rng)
  ]
  return _examples(solved, batch)


def _examples(solved: Sequence[tuple[PublicState, PerPlayer, PerPlayer]], batch: int) -> Examples:
  """Returns solved public states as training data.

  Args:
    solved: public states, with ranges and values as `_play` yields them.
    batch: the number of columns of ranges and values.
  """
  states = [state for state, _, _ in solved for _ in range(batch)]
  width = max((len(range_) for _, ranges, _ in solved for range_ in ranges), default=1)
  ranges_table, values_table = np.zeros((2, len(states), 2, width))
  for position, (_, ranges, values) in enumerate(solved):
    rows = slice(position * batch, (position + 1) * batch)
    for player in (0, 1):
      count = len(ranges[player])
      ranges_table[rows, player, :count] = ranges[player].T
      values_table[rows, player, :count] = values[player].T
  return Examples(states, ranges_table, values_table)


def _play(
  root: Segment,
  leaf_values: LeafValues,
  batch: int,
  iterations: int,
  exploration: float,
  rng: np.random.Generator,
) -> Iterator[tuple[PublicState, PerPlayer, PerPlayer]]:
  """Yields the public states of one play, without the root, with both players' ranges and values.

  Ranges and values have shape (private states, batch). The first half of the columns (rounded up) are ranges of play.
  """
  num_play_columns = (batch + 1) // 2
  segment, ranges = root, (np.ones((1, num_play_columns)), np.ones((1, num_play_columns)))
  while True:
    lookahead = segment.lookahead
    drawn = rng.integers(1, iterations + 1, ranges[0].shape[1])
    solution = lookahead.solve(ranges, leaf_values, iterations, drawn_iterations=drawn)
    if segment is not root:
      yield lookahead.root, ranges, solution.values
    leaf = _next_leaf(lookahead, ranges, solution, exploration, rng)
    if leaf is None:
      return
    segment = segment.segment_below(lookahead.leaves[leaf].number)
    first, second = (
      np.hstack(
        [
          solution.drawn_ranges[leaf, player, :count, :num_play_columns],
          _random_ranges(count, batch - num_play_columns, rng),
        ]
      )
      for player, count in enumerate(lookahead.counts[leaf].tolist())
    )
    ranges = first, second


def _next_leaf(
  lookahead: Lookahead,
  ranges: PerPlayer,
  solution: LookaheadSolution,
  exploration: float,
  rng: np.random.Generator,
) -> int | None:
  """Returns the position of a random leaf, at which play continues; None if the game ends before a leaf.

  With probability `exploration`, all leaves are equally likely. Otherwise, the probability of a leaf follows from the
  ranges in the first column and from the strategies of the iteration drawn for this column.
  """
  count = len(lookahead.leaves)
  if not count:
    return None
  first, second, chance = lookahead.root.tree.pairs(lookahead.root.number)
  total = float((chance * ranges[0][first, 0] * ranges[1][second, 0]).sum())
  if rng.random() < exploration or not total > 0:
    return int(rng.integers(count))
  drawn = solution.drawn_ranges[..., 0]
  likely = np.einsum("li,lij,lj->l", drawn[:, 0], lookahead.chances, drawn[:, 1]) / total
  leaf = int(np.searchsorted(np.cumsum(likely), rng.random()))
  return leaf if leaf < count else None


def _random_ranges(count: int, columns: int, rng: np.random.Generator) -> Float64s:
  """Returns random ranges, from uniform to nearly pure, shape (count, columns); some private states have 0."""
  drawn = rng.random((count, columns)) ** np.exp(rng.uniform(-2.0, 2.0, columns))
  with_zeros = drawn * (rng.random((count, columns)) < _POSITIVE_FRACTION)
  return np.where(with_zeros.any(axis=0), with_zeros, drawn)
