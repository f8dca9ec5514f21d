"""Checks a certificate of spiel_cfr with OpenSpiel and fractions: python examples/check_certificate.py < FILE."""

import hashlib
import json
from collections import Counter
from fractions import Fraction
from typing import Any

import pyspiel


def rational(number: float) -> Fraction:
  near = (exact := Fraction(number)).limit_denominator(10**6)
  return near if abs(near - exact) * 2**50 <= abs(exact) else Fraction("no rational")  # An error.


def check(content: Any) -> bool:
  text = json.dumps(content | {"sha256": ""}, sort_keys=True, separators=(",", ":"))
  digest, claims = hashlib.sha256(text.encode()).hexdigest(), content["claims"]
  if content["sha256"] != digest or "e" in str(claims).lower():  # 1e999999999 has no end.
    return False
  game, units = pyspiel.load_game(content["game"]), Fraction(2**192)
  players, infosets, sums = range(game.num_players()), dict[Any, Any](), set[Any]()
  worth = Counter[Any]()  # Values in units of 2^-192, rounded down, in all by less than 2^64.
  stack: Any = [(game.new_initial_state(), [units] * (len(players) + 1), [*players])]
  while stack:
    state, reaches, last = stack.pop()
    if state.is_terminal():
      sums.add(sum(payoffs := [rational(value) for value in state.returns()]))
      for player, payoff in enumerate(payoffs):
        worth[last[player]] += reaches[player] * payoff // 1  # Without the player's own moves.
        worth["policy", player] += reaches[-1] * payoff // 1  # With all moves.
      continue
    mover = state.current_player()
    if state.is_chance_node():
      moves = {action: rational(chance) for action, chance in state.chance_outcomes() if chance}
    else:
      infoset = mover, state.information_state_string()
      given = content["policy"][mover][infoset[1]]
      moves = {action: Fraction.from_float(given[str(action)]) for action in state.legal_actions()}
      moves = {action: move / sum(moves.values()) for action, move in moves.items()}
      infosets.setdefault(infoset, set()).add((last[mover], tuple(moves)))
    if min(moves.values()) < 0 or sum(moves.values()) != 1:
      raise ValueError(f"There are no probabilities after {state.history()}.")
    for action, move in moves.items():
      products = [reach * (1 if i == mover else move) for i, reach in enumerate(reaches)]
      after = [(infoset, action) if player == mover else last[player] for player in players]
      stack.append((state.child(action), products, after))
  for infoset, ((above, actions),) in reversed(infosets.items()):  # Perfect recall, or an error.
    worth[above] += max(worth[infoset, action] for action in actions)
  gains = [worth[player] - worth["policy", player] for player in players]
  bounds = [(gain, gain) for gain in (*gains, sum(gains))]
  if len(players) == 2 and len(sums) == 1:  # The last claim is the value of the game.
    bounds.append((sums.pop() * units - worth[1], worth[0]))
  pairs = zip([map(Fraction, claim) for claim in claims], bounds, strict=True)
  return all(a * units <= b - 2**64 and c + 2**64 <= d * units for (a, d), (b, c) in pairs)


if __name__ == "__main__":
  print(check(json.loads(input())))
