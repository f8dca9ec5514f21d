r"""Defines a regret minimizer outside the library, and compares its speed with the library's.

    python examples/own_minimizer.py --game=leduc_poker --iterations=1000

`spiel_cfr.games.sequence_form.blocks` describes a block, and `spiel_cfr.regret_minimizers.regret_minimizer` describes
the methods of a minimizer.
"""

import dataclasses
import time

import numpy as np
from absl import app, flags

import spiel_cfr
from spiel_cfr.regret_minimizers import (
  Block,
  block_kernel,
  expected_value,
  full,
  load,
  normalize,
  parameter_rows,
  sequence,
  store,
  tolerance,
  vector_starts,
  where_greater,
)

_GAME = flags.DEFINE_string("game", "leduc_poker", "OpenSpiel game string")
_ITERATIONS = flags.DEFINE_integer("iterations", 1000, "number of iterations", lower_bound=1)


@block_kernel
def match(block: Block) -> None:
  regret, zero, share = block.action_state[0], full(0.0), full(block.parameters[1])
  for i in vector_starts(block):
    value, tie, total = expected_value(block, i), tolerance(block, i), zero
    for action in range(block.actions):
      at = sequence(block, action, i)
      updated = load(regret, at) + load(block.utility, at) - value
      positive = where_greater(updated, tie, updated, zero)
      store(regret, at, where_greater(updated, tie, updated, share * updated))
      store(block.strategy, at, positive)
      total = total + positive
    normalize(block, i, total)


@dataclasses.dataclass(frozen=True)
class Matching(spiel_cfr.RegretMinimizer):
  """Regret matching that multiplies negative regrets by a share: 1 as in CFR, 0 as in CFR+."""

  share: float = 1.0
  observe = match

  def parameters(self, iterations: np.ndarray, game: spiel_cfr.CompiledGame) -> np.ndarray:
    return parameter_rows(iterations, game, self.share)


def main(_: list[str]) -> None:
  game = spiel_cfr.compile_game(_GAME.value)
  own, library = spiel_cfr.FullWidthSolver(game, Matching()), spiel_cfr.CFRSolver(game)
  for name, solver in {"own": own, "library": library}.items():
    solver.prepare()
    start = time.perf_counter()
    solver.run(_ITERATIONS.value)
    microseconds = (time.perf_counter() - start) / _ITERATIONS.value * 1e6
    print(f"{name:8} {microseconds:z9.2f} us per iteration, NashConv {solver.nash_conv():z.3e}")


if __name__ == "__main__":
  app.run(main)
