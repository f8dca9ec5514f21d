"""Weights, ranges and payoffs times huge and tiny numbers: what comes out scales with them, or is refused by name."""

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np
import pyspiel
import random_games
from poker_games import check_or_pot

import spiel_cfr
from attacks.outcomes import Attack
from attacks.targets import kuhn, solver
from spiel_cfr import correlated, exploitation, poker, policies, search
from spiel_cfr.poker import ranges

_FACTORS = (5e-324, 1e-310, 1e-200, 1e-100, 1e-12, 3.0, 1e12, 1e100, 1e200, 1e300, 1e307, 1e308)
_BOARD = "7s9h9cTc2d"
# The relative distance of a float from the rational that it stands for in a certificate.
_CLOSE = Fraction(1, 1 << 48)


def attacks(rng: np.random.Generator) -> Iterator[Attack]:
  """Yields every quantity with every factor, then with random ones."""
  factors = itertools.chain(_FACTORS, (10.0 ** rng.uniform(-320, 308) for _ in itertools.count()))
  for factor in factors:
    for room, (name, measure, degree) in _MEASURES:
      yield Attack(
        room,
        f"{name} times {factor:.17g}",
        functools.partial(_scales, measure, factor, degree),
      )


def _scales(measure: Callable[[float], Sequence[float]], factor: float, degree: int) -> str:
  """Compares numbers with those of factor 1, times the factor if they are of degree 1."""
  plain = np.array(measure(1.0)) * (factor if degree else 1.0)
  found = np.array(measure(factor))
  # The smallest numbers have no digits left.
  if np.allclose(found, plain, rtol=1e-6, atol=1e-9 * np.abs(plain).max() + 1e-320):
    return ""
  return f"{found.tolist()[:3]}, plain {plain.tolist()[:3]}"


def pennies(factor: float) -> pyspiel.Game:
  """Matching pennies in which one match is worth twice as much, in a unit of payoffs."""
  return pyspiel.load_efg_game(
    f"""EFG 2 R "scaled" {{ "0" "1" }} ""
p "" 1 1 "" {{ "a" "b" }} 0
p "" 2 1 "" {{ "a" "b" }} 0
t "" 1 "" {{ {factor!r} {-factor!r} }}
t "" 2 "" {{ {-factor!r} {factor!r} }}
p "" 2 1 "" {{ "a" "b" }} 0
t "" 3 "" {{ {-factor!r} {factor!r} }}
t "" 4 "" {{ {2 * factor!r} {-2 * factor!r} }}
"""
  )


def _value(factor: float) -> list[float]:
  return [spiel_cfr.solve_lp(pennies(factor)).value]


def _nash_conv(factor: float) -> list[float]:
  game = spiel_cfr.compile_game(pennies(factor))
  return [spiel_cfr.nash_conv(game, policies.to_dict(game, policies.uniform(game)))]


def _certificate(factor: float) -> list[float]:
  game = spiel_cfr.compile_game(pennies(factor))
  low, high = spiel_cfr.certify(game, policies.to_dict(game, policies.uniform(game))).nash_conv
  # Uniform play leaves half of the factor. A float stands for a rational beside it.
  half = Fraction(factor) / 2
  return [factor if low <= half * (1 + _CLOSE) and half * (1 - _CLOSE) <= high else -factor]


def _cfr(factor: float) -> list[float]:
  found = spiel_cfr.CFRPlusSolver(pennies(factor))
  found.run(20)
  return [found.nash_conv()]


def _written_range(factor: float) -> list[float]:
  """Weights of a range have no unit."""
  text = f"AA:{factor!r},KK:{factor / 2!r}"
  return _river(ranges.endgame(text, "QQ,AKs", board=_BOARD, pot=200, stack=200))


def _reaches(factor: float) -> list[float]:
  reaches = np.stack([poker.parse_range("AA,KK:0.5"), poker.parse_range("QQ,AKs")])
  return _river(poker.Endgame(_BOARD, 200, reaches * np.array([[factor], [1.0]]), 300))


def _river(endgame: poker.Endgame) -> list[float]:
  game = poker.compile_public_game(endgame.load(), check_or_pot, partitioned=False)
  found = spiel_cfr.CFRPlusSolver(game)
  found.run(50)
  return [found.nash_conv(), *spiel_cfr.expected_values(game, found)]


def _mixture(factor: float) -> list[float]:
  pair = [solver(), spiel_cfr.CFRSolver(kuhn())]
  return [correlated.MixturePolicy(kuhn(), pair, [factor, factor]).gap().gap]


def _play(factor: float) -> list[float]:
  play = correlated.EmpiricalPlay(kuhn())
  for policy in (solver(), spiel_cfr.CFRSolver(kuhn())):
    play.add(policy, factor)
  return [play.gap().gap]


def _subgame(factor: float) -> list[float]:
  state = search.public_states(kuhn()).natural_cut()[0]
  ranges_of = [factor * np.array([0.25, 0.5, 1.0]), np.arange(3.0, 0.0, -1.0)]
  # The range of one player scales the values of the other.
  return search.Subgame(state, ranges_of).solve().values[1].tolist()


def _hedge(factor: float) -> list[float]:
  found = spiel_cfr.cfr.HedgeCFRSolver(pennies(factor))
  found.run(20)
  return [found.nash_conv()]


def _random(factor: float) -> list[float]:
  """Certainly bounds NashConv of uniform play of a random game, whose payoffs are as they are."""
  game = spiel_cfr.compile_game(random_games.random_game(3, max_histories=60))
  sums = factor * policies.sequence_form(game, policies.uniform(game))
  return [spiel_cfr.nash_conv(game, policies.to_dict(game, policies.behavioral_form(game, sums)))]


def _exploited(factor: float) -> list[float]:
  game = spiel_cfr.compile_game(pennies(factor))
  model = policies.to_dict(game, policies.uniform(game))
  return [spiel_cfr.exploit(game, model, 0, trust=1.0, progress=False).against_model]


def _committed(factor: float) -> list[float]:
  return exploitation.commit(pennies(factor)).expected_values.tolist()


def _answered(factor: float) -> list[float]:
  game = spiel_cfr.compile_game(pennies(factor))
  counts = np.arange(1.0, 1 + len(game.all_action_sequences))
  response = exploitation.data_biased_response(game, counts, 0, iterations=100)
  return [response.against_model, response.guarantee]


def _safe(factor: float) -> list[float]:
  player = exploitation.SafeExploiter(pennies(factor), 0)
  player.observe([0, 0])
  return [player.value, player.budget]


def _bets(factor: float) -> list[float]:
  """Numbers of actions of a river whose bets are that many percent of the pot, all-in where that is more."""
  text = f"{factor:f}%" if factor > 1.0 else "3%"
  endgame = ranges.endgame("AA,KK", "QQ,AKs", board=_BOARD, pot=200, stack=200)
  game = poker.compile_public_game(endgame, poker.bet_sizes(text, text), partitioned=False)
  return [float(game.end > 0)]


# Room, and name, numbers for a factor, and the power of the factor that they have.
_MEASURES: list[tuple[str, tuple[str, Callable[[float], Sequence[float]], int]]] = [
  ("evaluation", ("payoffs, value by a linear program,", _value, 1)),
  ("evaluation", ("payoffs, NashConv of uniform play,", _nash_conv, 1)),
  ("certificates", ("payoffs, a certificate of uniform play,", _certificate, 1)),
  ("cfr", ("payoffs, CFR+,", _cfr, 1)),
  ("cfr", ("payoffs, Hedge,", _hedge, 1)),
  ("poker", ("weights of a written range", _written_range, 0)),
  ("poker", ("reaches of an endgame", _reaches, 0)),
  ("poker", ("bets of a river", _bets, 0)),
  ("correlated", ("weights of a mixture", _mixture, 0)),
  ("correlated", ("weights of play", _play, 0)),
  ("search", ("the range of a subgame", _subgame, 1)),
  ("policies", ("sums of sequences", _random, 0)),
  ("exploitation", ("payoffs, an exploiter,", _exploited, 1)),
  ("exploitation", ("payoffs, a commitment,", _committed, 1)),
  ("exploitation", ("payoffs, an answer to counts,", _answered, 1)),
  ("exploitation", ("payoffs, a safe exploiter,", _safe, 1)),
]
