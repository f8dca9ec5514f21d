# ruff: noqa: ANN001, ANN201
r"""Regret matching as a user would write it: a local minimizer in the user's own file, at the speed of the library's.

    python examples/own_minimizer.py --game=leduc_poker --iterations=1000

`spiel_cfr.minimizers.base` says what the arguments of a kernel are. `block_kernel` is numba's `njit` with their types.
"""

import time

from absl import app, flags

import spiel_cfr
from spiel_cfr.minimizers.base import LocalMinimizer, block_kernel

_GAME = flags.DEFINE_string("game", "leduc_poker", "any OpenSpiel game, with its parameters")
_ITERATIONS = flags.DEFINE_integer("iterations", 1000, "how many", lower_bound=1)


@block_kernel
def own_regret_matching(  # type: ignore[no-untyped-def]
  state, local, strategy, utility, scratch, parameters, first, stride, infoset, count, actions
):
  regret, value, total, tie, uniform = (
    state[0],
    scratch[0],
    scratch[1],
    parameters[0],
    1.0 / actions,
  )
  for i in range(count):
    value[i] = total[i] = 0.0
  for row in range(first, first + actions * stride, stride):
    for i in range(count):
      value[i] += strategy[row + i] * utility[row + i]
  for row in range(first, first + actions * stride, stride):
    for i in range(count):
      regret[row + i] += utility[row + i] - value[i]
      strategy[row + i] = regret[row + i] if regret[row + i] > tie else 0.0
      total[i] += strategy[row + i]
  for row in range(first, first + actions * stride, stride):
    for i in range(count):
      strategy[row + i] = strategy[row + i] / total[i] if total[i] > 0.0 else uniform


class OwnRegretMatching(LocalMinimizer):
  """Its state is one line, the cumulative regrets, which is what a minimizer has unless it says otherwise."""

  observe = own_regret_matching


def main(_: list[str]) -> None:
  game = spiel_cfr.compile_game(_GAME.value)
  own, library = spiel_cfr.Solver(game, OwnRegretMatching()), spiel_cfr.CFRSolver(game)
  for name, solver in {"own": own, "library": library}.items():
    solver.prepare()
    start = time.perf_counter()
    solver.run(_ITERATIONS.value)
    microseconds = (time.perf_counter() - start) / _ITERATIONS.value * 1e6
    print(f"{name:8} {microseconds:9.2f} us an iteration, NashConv {solver.nash_conv():.3e}")


if __name__ == "__main__":
  app.run(main)
