r"""Solves Kuhn poker, shows its equilibrium infoset by infoset, and checks what theory says of it.

    python examples/kuhn_poker.py

Kuhn (1950) found all equilibria. With a free number alpha from 0 to 1/3, the first player bets a jack with probability
alpha and a king with 3 alpha, never bets a queen first, and calls a bet with the queen with alpha + 1/3. The second
player's equilibrium strategy is unique: it bets a jack after a check with 1/3, never bets a queen, always bets a king;
facing a bet it folds the jack, calls with the queen with 1/3 and with the king always. The first player loses 1/18.
"""

import sys

from absl import app, flags

import spiel_cfr

_ITERATIONS = flags.DEFINE_integer("iterations", 100_000, "how many iterations", lower_bound=1)
_TOLERANCE = flags.DEFINE_float(
  "tolerance", 1e-3, "how far a probability may be from theory's", 0.0
)

_CARDS = {"0": "jack", "1": "queen", "2": "king"}
_SITUATIONS = {
  "": ("first to act", "bets"),
  "p": ("after a check", "bets"),
  "b": ("facing a bet", "calls"),
  "pb": ("checked, facing a bet", "calls"),
}


def main(arguments: list[str]) -> None:
  if len(arguments) > 1:
    raise app.UsageError(f"unknown arguments: {arguments[1:]}")
  solver = spiel_cfr.CFRPlusSolver("kuhn_poker")
  solver.run(_ITERATIONS.value)
  # In each infoset, the probability of action 1: to bet, or to call.
  active = {infostate: entry[1] for infostate, entry in solver.average_policy_dict().items()}
  values = spiel_cfr.expected_values(solver.compiled_game, solver.average_policy())
  print(
    f"Kuhn poker after {solver.iteration:,} iterations of CFR+: exploitability "
    f"{solver.exploitability():z.1e}\n"
  )
  for infostate in sorted(active, key=lambda key: (len(key) % 2 == 0, key[1:], key[0])):
    card, history = infostate[0], infostate[1:]
    player = 2 if len(history) == 1 else 1
    where, does = _SITUATIONS[history]
    print(f"  player {player}, {_CARDS[card]:5}, {where:21}  {does:5} {active[infostate]:z.4f}")

  alpha = active["0"]
  print(f"\nalpha, the free choice of the first player, is {alpha:z.4f} here. Theory says:")
  claims = [
    ("the first player loses 1/18 a game", values[0], -1 / 18),
    ("it bets a jack with alpha, from 0 to 1/3", alpha, min(max(alpha, 0), 1 / 3)),
    ("it never bets a queen first", active["1"], 0),
    ("it bets a king three times as often as a jack", active["2"], 3 * alpha),
    ("it folds a jack to a bet", active["0pb"], 0),
    ("it calls a bet with a queen with alpha + 1/3", active["1pb"], alpha + 1 / 3),
    ("it always calls a bet with a king", active["2pb"], 1),
    ("the second player bets a jack after a check with 1/3", active["0p"], 1 / 3),
    ("it never bets a queen after a check", active["1p"], 0),
    ("it always bets a king after a check", active["2p"], 1),
    ("it folds a jack to a bet", active["0b"], 0),
    ("it calls a bet with a queen with 1/3", active["1b"], 1 / 3),
    ("it always calls a bet with a king", active["2b"], 1),
  ]
  holds = [abs(found - expected) <= _TOLERANCE.value for _, found, expected in claims]
  for (claim, found, expected), good in zip(claims, holds, strict=True):
    print(f"  {'ok   ' if good else 'WRONG'} {claim:53} {found:z8.4f}  (theory {expected:z.4f})")
  if not all(holds):
    sys.exit("Not an equilibrium to this tolerance: run more iterations.")


if __name__ == "__main__":
  app.run(main)
