r"""Regret matching as a user would write it: a regret minimizer in the user's own file, at the speed of the library's.

    python examples/own_minimizer.py --game=leduc_poker --iterations=1000

`spiel_cfr.games.sequence_form.blocks` says what a block is, and `spiel_cfr.regret_minimizers.regret_minimizer` what
a minimizer has to do.
"""

import time

from absl import app, flags

import spiel_cfr
from spiel_cfr._numba.simd import full, load, store, where_greater
from spiel_cfr.games.sequence_form.blocks import (
  Block,
  expected_value,
  lanes,
  normalize,
  sequence,
  tolerance,
)

_GAME = flags.DEFINE_string("game", "leduc_poker", "any OpenSpiel game, with its parameters")
_ITERATIONS = flags.DEFINE_integer("iterations", 1000, "how many", lower_bound=1)


@spiel_cfr.regret_minimizers.block_kernel
def match_regrets(block: Block) -> None:
  regret, zero = block.state[0], full(0.0)
  for i in lanes(block):
    value, tie, total = expected_value(block, i), tolerance(block, i), zero
    for action in range(block.actions):
      row = sequence(block, action, i)
      updated = load(regret, row) + load(block.utility, row) - value
      positive = where_greater(updated, tie, updated, zero)
      store(regret, row, updated)
      store(block.strategy, row, positive)
      total = total + positive
    normalize(block, i, total)


class OwnRegretMatching(spiel_cfr.RegretMinimizer):
  """It keeps one line, the cumulative regrets, which is what a minimizer keeps unless it says otherwise."""

  observe = match_regrets


def main(_: list[str]) -> None:
  game = spiel_cfr.compile_game(_GAME.value)
  own, library = spiel_cfr.FullWidthSolver(game, OwnRegretMatching()), spiel_cfr.CFRSolver(game)
  for name, solver in {"own": own, "library": library}.items():
    solver.prepare()
    start = time.perf_counter()
    solver.run(_ITERATIONS.value)
    microseconds = (time.perf_counter() - start) / _ITERATIONS.value * 1e6
    print(f"{name:8} {microseconds:9.2f} us an iteration, NashConv {solver.nash_conv():.3e}")


if __name__ == "__main__":
  app.run(main)
