"""Certificates against plain recursion, forgeries against the checker."""

import copy
import hashlib
import json
import pathlib
import random
import re
import subprocess
import sys
from fractions import Fraction

import numpy as np
import poker_games
import pyspiel
import pytest

import spiel_cfr
from spiel_cfr import errors
from spiel_cfr.certificates import fixed_point
from spiel_cfr.games import compile_private_moves_game, compile_vector_game

_EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
sys.path.insert(0, str(_EXAMPLES))
import check_certificate  # noqa: E402

GAMES = [
  "kuhn_poker",
  "kuhn_poker(players=3)",
  "tiny_hanabi",
  pytest.param("tiny_bridge_2p", marks=pytest.mark.slow),
  "liars_dice(dice_sides=3)",
  "goofspiel(num_cards=3,imp_info=True,points_order=random)",
  "first_sealed_auction(max_value=3)",
  "matrix_shapleys_game",
  "blotto(coins=3,fields=2)",
]


def exact_values(game, policy):
  """Returns each player's expected and best response value, in Fractions, by recursion over OpenSpiel's states."""
  policy = [
    {
      name: {
        int(action): Fraction(p) / sum(map(Fraction, own.values())) for action, p in own.items()
      }
      for name, own in table.items()
    }
    for table in policy
  ]

  def moves(state):
    if state.current_player() >= 0:
      return policy[state.current_player()][state.information_state_string()].items()
    return [(a, Fraction(p).limit_denominator(1000)) for a, p in state.chance_outcomes() if p]

  def expected(state):
    if state.is_terminal():
      return [Fraction(each).limit_denominator(1000) for each in state.returns()]
    below = [(p, expected(state.child(action))) for action, p in moves(state)]
    return [sum(p * each[player] for p, each in below) for player in range(game.num_players())]

  def best(player):
    """Best response by infosets: a decision maximizes the sum over all states of its infoset."""
    states = {}

    def collect(state, reach):
      if state.is_terminal():
        return
      is_own = state.current_player() == player
      if is_own:
        states.setdefault(state.information_state_string(), []).append((state, reach))
      for action, p in moves(state):
        collect(state.child(action), reach * (1 if is_own else p))

    choices = {}

    def value(state):
      if state.is_terminal():
        return Fraction(state.returns()[player]).limit_denominator(1000)
      if state.current_player() == player:
        return value(state.child(choice(state.information_state_string())))
      return sum(p * value(state.child(action)) for action, p in moves(state))

    def choice(name):
      if name not in choices:
        legal = states[name][0][0].legal_actions()
        choices[name] = max(
          legal, key=lambda a: sum(reach * value(state.child(a)) for state, reach in states[name])
        )
      return choices[name]

    collect(game.new_initial_state(), Fraction(1))
    return value(game.new_initial_state())

  root = game.new_initial_state()
  return expected(root), [best(player) for player in range(game.num_players())]


def random_policy(compiled, seed, scales):
  """Returns a policy with probabilities of several sizes."""
  generator = np.random.default_rng(seed)
  sums = np.zeros(compiled.end)
  used = compiled.all_action_sequences
  sums[used] = generator.choice(scales, len(used)) * generator.random(len(used))
  return spiel_cfr.policies.to_dict(compiled, spiel_cfr.policies.behavioral_form(compiled, sums))


def contains(interval, number):
  return interval.low <= number <= interval.high


@pytest.mark.parametrize("name", GAMES)
def test_bounds_hold_and_are_narrow(name, tmp_path):
  compiled = spiel_cfr.compile_game(name)
  certificate = spiel_cfr.certify(compiled, random_policy(compiled, 3, [0.0, 1e-9, 1.0]))
  certificate.save(tmp_path / "certificate")
  content = json.loads((tmp_path / "certificate").read_text())
  game = pyspiel.load_game(content["game"])
  expected, best = exact_values(game, content["policy"])
  for player, (low, high) in enumerate(certificate.expected_values):
    assert low <= expected[player] <= high <= low + Fraction(1, 10**23)
  for player, (low, high) in enumerate(certificate.best_response_values):
    assert low <= best[player] <= high <= low + Fraction(1, 10**23)
  assert contains(certificate.nash_conv, sum(best) - sum(expected))
  assert certificate.is_rational
  assert check_certificate.check(content)


def test_equal_floats_are_equal_rationals():
  """Three floats of 1/3 are divided by their sum."""
  compiled = spiel_cfr.compile_game("matrix_rps")
  uniform = spiel_cfr.policies.to_dict(compiled, spiel_cfr.policies.uniform(compiled))
  certificate = spiel_cfr.certify(compiled, uniform)
  assert contains(certificate.nash_conv, 0) and certificate.nash_conv.high < Fraction(1, 10**22)


def test_values():
  solution = spiel_cfr.solve_lp("kuhn_poker")
  value = spiel_cfr.certify("kuhn_poker", solution).value
  assert contains(value, Fraction(-1, 18)) and value.high - value.low < 1e-12
  assert spiel_cfr.certify("tiny_hanabi", spiel_cfr.CFRSolver("tiny_hanabi")).value is None
  assert (
    spiel_cfr.certify("kuhn_poker(players=3)", spiel_cfr.CFRSolver("kuhn_poker(players=3)")).value
    is None
  )


def test_numbers_that_are_not_rational_are_bounded():
  assert fixed_point.payoff(1 / 3) == (Fraction(1, 3), Fraction(1, 3))
  low, high = fixed_point.payoff(2**0.5)
  assert low < Fraction(2**0.5) < high and high - low < 1e-13
  assert fixed_point.payoff(-(2**0.5)) == (-high, -low)
  assert fixed_point.chances([1 / 3, 2 / 3]) == [(Fraction(1, 3),) * 2, (Fraction(2, 3),) * 2]
  # These don't sum to 1.
  (low, high), _ = fixed_point.chances([1 / 3, 1 / 3])
  assert low < Fraction(1, 3) < high


def test_decimals_round_outwards():
  third = fixed_point.IntervalArray.around([fixed_point.Interval(Fraction(-1, 3), Fraction(1, 3))])
  (interval,) = third.intervals()
  assert interval.decimals() == [f"-0.{'3' * 23}4", f"0.{'3' * 23}4"]
  assert interval.low < Fraction(-1, 3) and Fraction(1, 3) < interval.high


def test_unsupported_certificates_are_refused(tmp_path):
  compiled = spiel_cfr.compile_game("leduc_poker", action_filter=lambda state, actions: actions[:2])
  certificate = spiel_cfr.certify(compiled, spiel_cfr.CFRSolver(compiled))
  with pytest.raises(errors.UnsupportedGameError, match="action filter"):
    certificate.save(tmp_path / "certificate")
  single = compile_vector_game("kuhn_poker", dtype="float32")
  with pytest.raises(errors.UnsupportedGameError, match="float32"):
    spiel_cfr.certify(single, spiel_cfr.CFRSolver(single), max_nodes=10)


def signed(content):
  text = json.dumps(content | {"sha256": ""}, sort_keys=True, separators=(",", ":"))
  return content | {"sha256": hashlib.sha256(text.encode()).hexdigest()}


def forged(content, draw):
  """Returns a forged certificate: false claims, with or without a new signature, or a text cut or changed."""
  content = copy.deepcopy(content)
  claim = draw.randrange(len(content["claims"]))
  low, high = map(Fraction, content["claims"][claim])
  kind = draw.randrange(6)
  if kind == 0:  # Narrower, by a step or by a lot.
    step = draw.choice(
      [Fraction(1, 10**23), (high - low) / 2 + Fraction(1, 10**15), Fraction(1, 7)]
    )
    moved = (low + step, high + step) if draw.random() < 0.5 else (low - step, high - step)
    content["claims"][claim] = list(map(str, moved))
  elif kind == 1:  # Another policy.
    table = draw.choice(content["policy"])
    own = table[draw.choice(sorted(table))]
    action = draw.choice(sorted(own))
    own[action] = draw.choice([own[action] + 0.125, -1.0, 0.0 if own[action] else 1.0])
  elif kind == 2:  # An action or an infoset less.
    table = draw.choice(content["policy"])
    name = draw.choice(sorted(table))
    table[name].popitem() if draw.random() < 0.5 else table.pop(name)
  elif kind == 3:  # Another game.
    content["game"] = draw.choice(
      ["kuhn_poker(players=3)", "leduc_poker", "liars_dice(dice_sides=2)"]
    )
  elif kind == 4:  # Claims swapped or left out.
    content["claims"].reverse() if draw.random() < 0.5 else content["claims"].pop(0)
  else:  # Any byte.
    text = json.dumps(content)
    place = draw.randrange(len(text))
    return text[:place] + chr(draw.randrange(32, 127)) + text[place + 1 :]
  return json.dumps(signed(content) if draw.random() < 0.8 else content)


def refuse_forgeries(count, tmp_path, seed):
  # Both players have something to gain, and not the same.
  policy = random_policy(spiel_cfr.compile_game("kuhn_poker"), 1, [1.0])
  spiel_cfr.certify("kuhn_poker", policy).save(tmp_path / "certificate")
  content = json.loads((tmp_path / "certificate").read_text())
  truth, draw = check_certificate.check(content), random.Random(seed)
  assert truth
  refused = 0
  for _ in range(count):
    text = forged(content, draw)
    try:
      claimed = json.loads(text)
      if claimed == content:
        continue
      holds = check_certificate.check(claimed)
    except Exception:  # Whatever is wrong with a forgery, it is not a certificate.
      holds = False
    assert not holds, text
    refused += 1
  assert refused > 0.8 * count


def test_forgeries_are_refused(tmp_path):
  refuse_forgeries(300, tmp_path, 1)


@pytest.mark.slow
def test_many_forgeries_are_refused(tmp_path):
  refuse_forgeries(10_000, tmp_path, 2)


@pytest.mark.parametrize(
  "name", ["leduc_poker", pytest.param("liars_dice", marks=pytest.mark.slow)]
)
def test_certificates_of_larger_games_are_checked(name, tmp_path):
  solver = spiel_cfr.CFRPlusSolver(name)
  solver.run(100)
  certificate = spiel_cfr.certify(solver.compiled_game, solver)
  assert float(certificate.nash_conv.low) == pytest.approx(solver.nash_conv(), abs=1e-12)
  certificate.save(tmp_path / "certificate")
  assert check_certificate.check(json.loads((tmp_path / "certificate").read_text()))


def test_checker_is_short_and_stands_alone(tmp_path):
  source = (_EXAMPLES / "check_certificate.py").read_text()
  assert len(source.splitlines()) <= 60
  assert set(re.findall(r"^(?:import|from) (\w+)", source, re.MULTILINE)) == {
    *("collections", "fractions", "hashlib", "json", "typing"),  # Python's own.
    "pyspiel",
  }
  spiel_cfr.certify("kuhn_poker", spiel_cfr.CFRSolver("kuhn_poker")).save(tmp_path / "certificate")
  command = [sys.executable, _EXAMPLES / "check_certificate.py"]
  text = (tmp_path / "certificate").read_text()
  for given, answer in (text, "True\n"), (text.replace("kuhn", "Kuhn"), "False\n"):
    found = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    assert found.stdout == answer


@pytest.mark.parametrize(
  ("name", "options"),
  [
    pytest.param("leduc_poker", {"vector_form": True}, id="vectors"),
    pytest.param("liars_dice(numdice=2,dice_sides=2)", {"vector_form": True}, id="dice in vectors"),
    pytest.param("kuhn_poker", {"vector_form": True}, id="few vectors"),
    pytest.param("leduc_poker", {"vector_form": False}, id="patterns"),
    pytest.param("kuhn_poker(players=3)", {}, id="rows of three players"),
    pytest.param("first_sealed_auction(max_value=3)", {}, id="general sum"),
    pytest.param("goofspiel(num_cards=3,imp_info=True,points_order=random)", {}, id="chance"),
  ],
)
def test_float_bounds_contain_integer_bounds(name, options):
  check_float_bounds(spiel_cfr.compile_game(name, **options))


@pytest.mark.quick("dark_hex*")
@pytest.mark.parametrize("name", ["dark_hex(num_rows=2,num_cols=2)", "leduc_poker"])
def test_float_bounds_of_private_moves(name):
  check_float_bounds(compile_private_moves_game(name, infostate="history"))


def check_float_bounds(compiled):
  policy = random_policy(compiled, 7, [0.0, 1e-3, 1.0])
  exact = spiel_cfr.certify(compiled, policy)
  rough = spiel_cfr.certify(compiled, policy, max_nodes=10)
  assert (exact.arithmetic, rough.arithmetic) == ("integers", "floats")
  pairs = [
    *zip(exact.expected_values, rough.expected_values, strict=True),
    *zip(exact.best_response_values, rough.best_response_values, strict=True),
    (exact.nash_conv, rough.nash_conv),
  ]
  assert (exact.value is None) == (rough.value is None)
  if exact.value is not None:
    pairs.append((exact.value, rough.value))
  largest = max(map(abs, compiled.payoff_range))
  for narrow, wide in pairs:
    assert wide.low < narrow.low and narrow.high < wide.high
    assert wide.high - wide.low < narrow.high - narrow.low + 1e-8 * largest


def test_float_bounds_of_a_river_contain_integer_bounds():
  endgame = poker_games.random_endgame(3, 8).load()
  vectors = spiel_cfr.poker.compile_public_game(endgame, poker_games.check_or_pot)
  listed = spiel_cfr.compile_game(
    endgame, action_filter=poker_games.check_or_pot, vector_form=False
  )
  solver = spiel_cfr.CFRPlusSolver(vectors)
  solver.run(30)
  rough = spiel_cfr.certify(vectors, solver, max_nodes=10)
  exact = spiel_cfr.certify(listed, solver.average_policy())
  # Reaches of hands are not rationals with small denominators: integers bound them by intervals.
  assert not exact.is_rational and exact.arithmetic == "integers"
  for narrow, wide in zip(exact.best_response_values, rough.best_response_values, strict=True):
    assert wide.low < narrow.low and narrow.high < wide.high < narrow.high + Fraction(1, 10**6)
