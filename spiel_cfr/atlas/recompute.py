"""Computation of the atlas's numbers."""

from typing import Any

import numpy as np

from spiel_cfr import catalogue
from spiel_cfr._util.doors import typed
from spiel_cfr.atlas.entries import Entry, read_entry
from spiel_cfr.certificates import Certificate, certify
from spiel_cfr.cfr.cfr import CFRSolver
from spiel_cfr.correlated import optimal_equilibrium
from spiel_cfr.evaluation import solve_lp
from spiel_cfr.exploitation.guaranteed import GuaranteedStrategies
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import compile_game

# The largest games, in sequences, that a linear program solves, and that are checked for unique equilibria.
_PROGRAM, _ALL_EQUILIBRIA = 30_000, 200
# The largest games, in histories, whose optimal correlated equilibrium is computed.
_CORRELATED = 1_500
# The tolerance for equal probabilities, and for the value of an optimal strategy.
_SAME, _OPTIMAL = 1e-5, 1e-9


@typed
def recompute(game: str) -> dict[str, Any]:
  """Returns the numbers of a game, in the format of the atlas's file.

  Raises:
    GameError: see `compile_game`.
  """
  compiled = compile_game(game, vector_form=False, progress=False)
  uniform = certify(compiled, CFRSolver(compiled))
  solution, found = _solved(compiled)
  result: dict[str, Any] = {
    "num_infosets": [tree.num_infosets for tree in compiled.treeplexes],
    "num_states": compiled.num_states,
    "num_terminals": compiled.num_terminals,
    "value": None if found.value is None else found.value.decimals(),
    "uniform_nash_conv": uniform.nash_conv.decimals(),
    "solution": solution,
    "solution_nash_conv": found.nash_conv.decimals(),
    "is_rational": found.is_rational,
  }
  if compiled.is_two_player_constant_sum and compiled.end <= _ALL_EQUILIBRIA:
    result["unique"] = [_is_unique(compiled, player) for player in (0, 1)]
  if compiled.num_players == 2 and found.value is None and compiled.num_states <= _CORRELATED:
    best = optimal_equilibrium(compiled)
    if best.is_exact:
      result["best_efce"] = round(best.value, 9)
  return result


def _solved(compiled: CompiledGame) -> tuple[str, Certificate]:
  """Returns the name of the method that solves a game, and the certificate of its solution."""
  if compiled.is_two_player_constant_sum and compiled.end <= _PROGRAM:
    return "lp", certify(compiled, solve_lp(compiled))
  two_players = compiled.num_players == 2
  name, count = ("restarted", 10_000) if two_players else ("restarted_adaptive", 2_000)
  solver = catalogue.make(name, compiled, count)
  solver.run(count)
  return f"{name} {count:,}", certify(compiled, solver)


def _is_unique(compiled: CompiledGame, player: int) -> bool:
  """Returns True if all optimal strategies of a player have the same sequence form."""
  value = solve_lp(compiled).value
  value = value if player == 0 else (compiled.constant_sum or 0.0) - value
  strategies, gradient = GuaranteedStrategies(compiled, player), np.zeros(compiled.end)
  guarantee = value - _OPTIMAL * max(map(abs, compiled.payoff_range))
  first = sum(map(len, compiled.actions[:player]))
  entries = slice(first, first + len(compiled.actions[player]))
  for sequence in compiled.all_action_sequences[entries].tolist():
    # The largest and the smallest probability of the sequence.
    extremes = []
    for sign in (1.0, -1.0):
      gradient[sequence] = sign
      extremes.append(strategies.best(gradient, guarantee)[sequence])
    gradient[sequence] = 0.0
    if extremes[0] - extremes[1] > _SAME:
      return False
  return True


@typed
def changes(before: Entry, text: dict[str, Any]) -> list[str]:
  """Returns the contradictions between an entry and recomputed numbers, one sentence each.

  Sizes and uniform NashConv must be equal. Bounds on the value must overlap. NashConv of the solution may differ by
  rounding.
  """
  after = read_entry({"game": before.game} | text)
  exact = (
    "num_infosets",
    "num_states",
    "num_terminals",
    "uniform_nash_conv",
    "unique",
    "is_rational",
  )
  result = [
    f"{before.game}: {name} was {getattr(before, name)}, is {getattr(after, name)}"
    for name in exact
    if getattr(before, name) != getattr(after, name)
  ]
  if before.value is not None and after.value is not None:
    low, high = max(before.value.low, after.value.low), min(before.value.high, after.value.high)
    if low > high:
      result.append(f"{before.game}: the value was in {before.value}, is in {after.value}")
  elif before.value != after.value:
    result.append(f"{before.game}: only one of the two computations has a value")
  was, now = (float(each.solution_nash_conv.high) for each in (before, after))
  scale = 1e-9 + float(before.uniform_nash_conv.high) * 1e-6
  if max(was, now) > 3 * min(was, now) + scale:
    result.append(f"{before.game}: NashConv of {before.solution} was {was:zg}, is {now:zg}")
  if abs((before.best_efce or 0.0) - (after.best_efce or 0.0)) > 1e-6:
    result.append(f"{before.game}: the best EFCE was {before.best_efce}, is {after.best_efce}")
  return result
