"""Training data for leaf values: public states, solved during play from the ranges of play and from random ranges.

The loop is that of ReBeL (Brown, Bakhtin, Lerer and Gong 2020). A public state is solved down to its leaves with the
current leaf values. Its solution is an example. Play continues at one of the leaves, with the ranges of a random
iteration.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.loading import load_game
from spiel_cfr.search.cut_outs import Pair
from spiel_cfr.search.lookahead import Found, LeafValues, Lookahead, check_leaf_values
from spiel_cfr.search.search_tree import PublicState
from spiel_cfr.search.segments import Segment, check_view
from spiel_cfr.search.value_network import Examples

# The probability that a private state has a positive probability in a random range.
_LIKELY = 0.85


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
  """Plays with search, and returns the solutions of all public states that were solved.

      network = learn_values([self_play("leduc_poker")])
      for seed in range(10):
        network = learn_values([self_play("leduc_poker", network, seed=seed)], network=network)

  At each public state, a batch of ranges is solved at once. Half of them are ranges of play, half are random.

  Args:
    game: a compiled game, or anything that `compile_game` accepts. It is walked only as far as it is played.
    leaf_values: the values at leaves; 0 by default.
    depth: the number of moves of a subgame, see `Subgame`.
    plays: the number of plays.
    batch: the number of ranges at each public state.
    iterations: the number of iterations of PCFR+ in each subgame.
    exploration: the probability that the next leaf is drawn uniformly, not by the players' strategies.
    max_histories: the largest number of histories of a subgame.
    seed: the seed of ranges and play.

  Raises:
    UnsupportedGameError: the game is not a constant-sum game of two players, or see `Subgame`.
    GameTooLargeError: a subgame has more histories.
    ArgumentError: an argument is not as above.
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
    each
    for _ in range(plays)
    for each in _play(root, leaf_values, batch, iterations, exploration, rng)
  ]
  states = [state for state, _, _ in solved for _ in range(batch)]
  width = max((len(own) for _, ranges, _ in solved for own in ranges), default=1)
  tables = np.zeros((2, len(states), 2, width))
  for place, (_, *both) in enumerate(solved):
    for table, pair in zip(tables, both, strict=True):
      for player, own in enumerate(pair):
        table[place * batch : (place + 1) * batch, player, : len(own)] = own.T
  return Examples(states, tables[0], tables[1])


def _play(
  root: Segment,
  leaf_values: LeafValues,
  batch: int,
  iterations: int,
  exploration: float,
  rng: np.random.Generator,
) -> Iterator[tuple[PublicState, Pair, Pair]]:
  """Yields the public states of one play, without the root; with each, ranges and values in columns."""
  reached = (batch + 1) // 2
  segment, ranges = root, (np.ones((1, reached)), np.ones((1, reached)))
  while True:
    lookahead = segment.lookahead
    moments = rng.integers(1, iterations + 1, ranges[0].shape[1])
    found = lookahead.solve(ranges, leaf_values, iterations, moments=moments)
    if segment is not root:
      yield lookahead.root, ranges, found.values
    leaf = _next_leaf(lookahead, ranges, found, exploration, rng)
    if leaf is None:
      return
    segment = segment.below(lookahead.leaves[leaf].number)
    first, second = (
      np.hstack(
        [
          found.drawn_ranges[leaf, player, :count, :reached],
          _random_ranges(count, batch - reached, rng),
        ]
      )
      for player, count in enumerate(lookahead.counts[leaf].tolist())
    )
    ranges = first, second


def _next_leaf(
  lookahead: Lookahead, ranges: Pair, found: Found, exploration: float, rng: np.random.Generator
) -> int | None:
  """Returns the position of the leaf at which play goes on with the first ranges; None if the game ends before."""
  count = len(lookahead.leaves)
  if not count:
    return None
  first, second, chance = lookahead.root.tree.pairs(lookahead.root.number)
  total = float((chance * ranges[0][first, 0] * ranges[1][second, 0]).sum())
  if rng.random() < exploration or not total > 0:
    return int(rng.integers(count))
  own, other = found.drawn_ranges[:, 0, :, 0], found.drawn_ranges[:, 1, :, 0]
  likely = np.einsum("li,lij,lj->l", own, lookahead.chances, other) / total
  leaf = int(np.searchsorted(np.cumsum(likely), rng.random()))
  return leaf if leaf < count else None


def _random_ranges(count: int, columns: int, rng: np.random.Generator) -> Float64s:
  """Returns random ranges, from even to nearly pure, with private states in rows; some private states have 0."""
  drawn = rng.random((count, columns)) ** np.exp(rng.uniform(-2.0, 2.0, columns))
  thinned = drawn * (rng.random((count, columns)) < _LIKELY)
  return np.where(thinned.any(axis=0), thinned, drawn)
