"""Computation of the atlas's numbers, and comparison with the old ones; a module of examples/atlas.py."""

from typing import Any

import numpy as np
from correlated_polytope import correlated_polytope

from spiel_cfr import catalogue
from spiel_cfr.atlas.solved_games import SolvedGame, from_json
from spiel_cfr.certificates import certify
from spiel_cfr.cfr.cfr import CFRSolver
from spiel_cfr.correlated import optimal_equilibrium
from spiel_cfr.evaluation import solve_lp
from spiel_cfr.exploitation.guaranteed import GuaranteedStrategies
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.private_moves.private_moves_game import PrivateMovesGame
from spiel_cfr.games.vector.public_tree_game import PublicTreeGame
from spiel_cfr.policies import open_spiel
from spiel_cfr.quantal_response import solve_qre

# The largest number of sequences of a game that a linear program solves, and of one whose equilibria are checked for
# uniqueness.
_PROGRAM, _ALL_EQUILIBRIA = 30_000, 3_000
# The largest number of histories of a game whose optimal correlated equilibrium is computed.
_CORRELATED = 1_500
# The NashConv above which the solution of a small game is replaced by a quantal response equilibrium.
_POOR = 1e-3
# The largest difference of probabilities that count as equal, the smallest of different ones, and the tolerance for the
# value of an optimal strategy.
_SAME, _DIFFERENT, _OPTIMAL = 1e-5, 1e-3, 1e-9
# Pairs of a largest number of sequences, and the number of iterations for such games.
_ITERATIONS = ((200_000, 10_000), (2_000_000, 2_000), (10**12, 300))


def recompute(compiled: CompiledGame) -> dict[str, Any]:
  """Returns the numbers of a game, in the format of the atlas's file."""
  name, policy = _solution(compiled)
  uniform, certificate = certify(compiled, CFRSolver(compiled)), certify(compiled, policy)
  result: dict[str, Any] = {
    "num_infosets": [tree.num_infosets for tree in compiled.treeplexes],
    "num_states": compiled.num_states,
    "num_terminals": compiled.num_terminals,
    "value": None if certificate.value is None else certificate.value.decimals(),
    "uniform_nash_conv": uniform.nash_conv.decimals(),
    "solution": name,
    "solution_nash_conv": certificate.nash_conv.decimals(),
    "is_rational": certificate.is_rational,
  }
  if isinstance(compiled, PublicTreeGame | PrivateMovesGame):
    result["form"] = "vector" if isinstance(compiled, PublicTreeGame) else "private moves"
    result["arithmetic"] = certificate.arithmetic
  if compiled.is_two_player_constant_sum and compiled.end <= _ALL_EQUILIBRIA:
    result["unique"] = [_is_unique(compiled, player) for player in (0, 1)]
  if compiled.num_players == 2 and certificate.value is None and compiled.num_states <= _CORRELATED:
    best = optimal_equilibrium(compiled)
    result["best_efce" if best.is_exact else "efce_bound"] = round(best.value, 9)
  polytope = correlated_polytope(compiled)
  if polytope is not None:
    *sizes, best_welfare = polytope
    result |= {"polytope": sizes, "best_ce": str(best_welfare)}
  return result


def _solution(compiled: CompiledGame) -> tuple[str, open_spiel.AnyPolicy]:
  """Returns the name of the method that solves a game, and its solution."""
  if compiled.is_two_player_constant_sum and compiled.end <= _PROGRAM:
    return "lp", solve_lp(compiled)
  name = "restarted" if compiled.num_players == 2 else "restarted_adaptive"
  count = next(count for most, count in _ITERATIONS if compiled.end <= most)
  if compiled.num_players > 2:
    count = min(count, 2_000)
  solver = catalogue.make(name, compiled, count)
  solver.run(count)
  if solver.nash_conv() > _POOR and compiled.num_states <= _CORRELATED:
    # Regret minimizers need not converge with three players, and do not in the game of nau_2004_4.efg.
    return "quantal response 10^6", solve_qre(compiled, 1e6)
  return f"{name} {count:,}", solver


def _is_unique(compiled: CompiledGame, player: int) -> bool | None:
  """Returns whether all optimal strategies of a player have the same sequence form; None if rounding hides it.

  If two optimal strategies differ, then with probability one those that are best and worst in a random direction do.
  """
  value = solve_lp(compiled).value
  value = value if player == 0 else (compiled.constant_sum or 0.0) - value
  strategies = GuaranteedStrategies(compiled, player)
  guarantee = value - _OPTIMAL * max(map(abs, compiled.payoff_range))
  direction = np.random.default_rng(0).uniform(-1.0, 1.0, compiled.end)
  best, worst = (strategies.best(sign * direction, guarantee) for sign in (1.0, -1.0))
  distance = np.abs(best - worst).max()
  return None if _SAME < distance < _DIFFERENT else bool(distance <= _SAME)


def changes(before: SolvedGame, text: dict[str, Any]) -> list[str]:
  """Returns the contradictions between a game's old and recomputed numbers, one sentence each.

  Sizes and facts must be equal. Bounds on the value and on NashConv of the uniform policy must overlap. NashConv of the
  solution may differ by a factor of 3 and a rounding error.
  """
  after = from_json({"game": before.game} | text)
  exact = (
    "num_infosets",
    "num_states",
    "num_terminals",
    "form",
    "arithmetic",
    "solution",
    "unique",
    "is_rational",
    "polytope",
    "best_ce",
  )
  result = [
    f"{before.game}: {name} was {getattr(before, name)}, is {getattr(after, name)}"
    for name in exact
    if getattr(before, name) != getattr(after, name)
  ]
  for name in ("value", "uniform_nash_conv"):
    old, new = getattr(before, name), getattr(after, name)
    if (old is None) != (new is None):
      result.append(f"{before.game}: only one of the two computations has a {name}")
    elif old is not None and (old.low > new.high or new.low > old.high):
      result.append(f"{before.game}: {name} was in {old}, is in {new}")
  was, now = (float(numbers.solution_nash_conv.high) for numbers in (before, after))
  scale = 1e-9 + float(before.uniform_nash_conv.high) * 1e-6
  if max(was, now) > 3 * min(was, now) + scale:
    result.append(f"{before.game}: NashConv of {before.solution} was {was:zg}, is {now:zg}")
  for name in ("best_efce", "efce_bound"):
    old, new = getattr(before, name), getattr(after, name)
    if (old is None) != (new is None) or abs((old or 0.0) - (new or 0.0)) > 1e-6:
      result.append(f"{before.game}: {name} was {old}, is {new}")
  return result
