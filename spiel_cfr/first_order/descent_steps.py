"""What iterations of first-order methods are made of, inside compiled code: gradients, sweeps and proximal steps."""

from typing import NamedTuple

import numpy as np
from numba import types

from spiel_cfr._numba.arrays import COUNT_TABLE, FLOAT_TABLE, FLOATS, Float64s, Uint64s, tuple_type
from spiel_cfr._numba.kernels import Kernel, inlined
from spiel_cfr.first_order.distances import SCALE, SOURCE, TARGET
from spiel_cfr.games.payoffs.payoff import PayoffArrays, gradient_signature, payoff_arrays_type
from spiel_cfr.games.sequence_form.blocks import block_signature
from spiel_cfr.games.sequence_form.tree_passes import (
  TREE,
  Scratch,
  Tree,
  scratch_type,
  reach_pass,
  backward_pass,
)

# Entries of the count of what has been done.
ITERATIONS, GRADIENTS = 0, 1
# Lines of `Work.centers`: the uniform strategy, then what a method keeps there.
UNIFORM, FIRST, SECOND = range(3)


class Problem(NamedTuple):
  """What compiled iterations are about, and never write to.

  Attributes:
    gradient: the payoff's kernel.
    payoff: its arrays.
    observe: the block kernel of a sweep from the leaves up.
    players: see `CompiledGame.players`.
    tree: of all players.
    weights: see `distances.Distance`.
    diameters: likewise.
  """

  gradient: Kernel
  payoff: PayoffArrays
  observe: Kernel
  players: Uint64s
  tree: Tree
  weights: Float64s
  diameters: Float64s


class Work(NamedTuple):
  """What compiled iterations work on.

  Attributes:
    utility: of each sequence, shape (sequences,).
    strategy: in behavioural form, shape (sequences,).
    centers: the `state` of `Problem.observe`, shape (3, sequences): strategies as proximal steps read and write them.
    numbers: its parameters, shape (3,).
    scratch: that of block kernels.
  """

  utility: Float64s
  strategy: Float64s
  centers: Float64s
  numbers: Float64s
  scratch: Scratch


PROBLEM = tuple_type(
  Problem,
  types.FunctionType(gradient_signature(types.float64)),
  payoff_arrays_type(types.float64),
  types.FunctionType(block_signature(types.float64)),
  COUNT_TABLE,
  TREE,
  FLOAT_TABLE,
  FLOATS,
)
WORK = tuple_type(Work, FLOATS, FLOATS, FLOAT_TABLE, FLOATS, scratch_type(types.float64))


@inlined
def differentiate(
  problem: Problem, work: Work, player: int, sequence_form: Float64s, done: Uint64s
) -> None:
  """Writes a player's gradient at the others' strategies into `work.utility`, and counts it."""
  gradient = problem.gradient
  gradient(player, problem.payoff, sequence_form, work.utility)
  done[GRADIENTS] += np.uint64(1)


@inlined
def sweep(problem: Problem, work: Work, player: int, utility: Float64s, result: Float64s) -> float:
  """Runs `Problem.observe` over a player's infosets; result becomes what they then play, in sequence form.

  `utility` is overwritten.

  Returns:
    What the player's root is worth.
  """
  players = problem.players
  begin, end, root = players[player, 0], players[player, 1], players[player, 2]
  backward_pass(
    problem.observe,
    begin,
    end,
    problem.tree,
    work.strategy,
    utility,
    work.centers,
    problem.weights,
    work.numbers,
    work.scratch,
  )
  reach_pass(begin, end, problem.tree, work.strategy, result, work.scratch)
  return float(utility[root])


@inlined
def step(
  problem: Problem,
  work: Work,
  player: int,
  source: int,
  target: int,
  scale: float,
  utility: Float64s,
  result: Float64s,
) -> float:
  """A proximal step of a player: result = argmax of <utility, x> - scale D(x, centers[source]).

  `centers[target]` becomes the same; `utility` is overwritten.

  Returns:
    The maximum.
  """
  work.numbers[SCALE], work.numbers[SOURCE], work.numbers[TARGET] = scale, source, target
  value: float = sweep(problem, work, player, utility, result)
  return value


@inlined
def mix(
  problem: Problem, player: int, first: Float64s, second: Float64s, share: float, result: Float64s
) -> None:
  """Result = (1 - share) first + share second, at a player's sequences."""
  for i in range(problem.players[player, 2], problem.players[player, 3]):
    result[i] = (1.0 - share) * first[i] + share * second[i]


@inlined
def assign(problem: Problem, player: int, source: Float64s, result: Float64s) -> None:
  """Result = source, at a player's sequences."""
  for i in range(problem.players[player, 2], problem.players[player, 3]):
    result[i] = source[i]


@inlined
def add(problem: Problem, player: int, weight: float, addend: Float64s, result: Float64s) -> None:
  """Result += weight * addend, at a player's sequences."""
  for i in range(problem.players[player, 2], problem.players[player, 3]):
    result[i] += weight * addend[i]
