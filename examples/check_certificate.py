"""Checks certificates of spiel_cfr without spiel_cfr: python examples/check_certificate.py FILE ..."""

import hashlib
import json
import pathlib
import sys
from collections import Counter
from fractions import Fraction
from typing import Any

import pyspiel

UNITS = Fraction(1 << 192)  # Values are summed in units of 2^-192, rounded down and rounded up.


def rational(number: float) -> Fraction:
  found = (exact := Fraction(number)).limit_denominator(10**6)
  return found if abs(found - exact) * 2**50 <= abs(exact) else Fraction("no rational")  # An error.


def check(content: Any) -> bool:
  text = json.dumps(dict(content, sha256=""), sort_keys=True, separators=(",", ":"))
  digest, claims = hashlib.sha256(text.encode()).hexdigest(), content["claims"]
  if content["sha256"] != digest or "e" in str(claims).lower():  # 1e999999999 has no end.
    return False
  game, sums = pyspiel.load_game(content["game"]), set()
  players = range(game.num_players())
  infosets: list[dict[str, Any]] = [{} for _ in players]
  worth: list[Any] = [(Counter(), Counter()) for _ in players]  # Bounds by sequence.

  def walk(state: Any, reaches: list[Fraction], last: list[Any]) -> None:
    mover, name = state.current_player(), "chance"
    if state.is_terminal():
      sums.add(sum(payoffs := [rational(each) for each in state.returns()]))
      for player in players:  # The last reach includes all moves; the others exclude the player's.
        for key, reach in (last[player], reaches[player]), ("policy", reaches[-1]):
          worth[player][0][key] += (reach * payoffs[player]).__floor__()
          worth[player][1][key] += (reach * payoffs[player]).__ceil__()
      return
    if state.is_chance_node():
      moves = {action: rational(chance) for action, chance in state.chance_outcomes() if chance}
    else:
      name = state.information_state_string()
      given = content["policy"][mover][name]
      moves = {action: Fraction.from_float(given[str(action)]) for action in state.legal_actions()}
      moves = {action: move / sum(moves.values()) for action, move in moves.items()}
      if infosets[mover].setdefault(name, here := (last[mover], [*moves])) != here:
        raise ValueError(f"A player forgets what it did before {name}.")
    if min(moves.values()) < 0 or sum(moves.values()) != 1:
      raise ValueError(f"No probabilities: {name}.")
    for action, move in moves.items():
      after = [(name, action) if each == mover else last[each] for each in players]
      made = [each if place == mover else each * move for place, each in enumerate(reaches)]
      walk(state.child(action), made, after)

  walk(game.new_initial_state(), [UNITS for _ in (*players, "all")], [None for _ in players])
  for own, names in zip(worth, infosets, strict=True):
    for name, (above, actions) in reversed(names.items()):
      for bounds in own:
        bounds[above] += max(bounds[name, action] for action in actions)
  found: Any = [(a[None] - b["policy"], b[None] - a["policy"]) for a, b in worth]
  found.append(tuple(map(sum, zip(*found, strict=True))))
  if len(claims) > len(found):  # The last claim is the value of the game.
    ((_, first), (_, second)), (constant,) = worth, sums  # One sum of two players, or an error.
    found.append((constant * UNITS - second[None], first[None]))
  pairs = zip([map(Fraction, claim) for claim in claims], found, strict=True)
  return all(low * UNITS <= have[0] and have[1] <= high * UNITS for (low, high), have in pairs)


if __name__ == "__main__":
  print(*(check(json.loads(pathlib.Path(path).read_text())) for path in sys.argv[1:]))
