r"""Compares our own solvers with the best variants of CFR on ten games.

    python examples/step_rule.py --iterations=1000

prints the exploitability of each as a Markdown table, and whether one of ours, --ours, is at or below all that are not.
Values below 1e-12 of the payoff range are rounding, and count as equal. Evaluations are not counted as iterations; the
last column is the time that ours took, over that of DCFR. With --handicap=4 the others do four times as many.

None of the constants of "rule" were chosen on these games. Of those of "restarted", two were chosen with both
poker games of 8 cards among others: that a trial checks the tapered average alone, and what a check costs.
"""

import time

from absl import app, flags
from results import chosen

import spiel_cfr
from spiel_cfr import catalogue

_UNIVERSAL_POKER = (
  "universal_poker(numPlayers=2,numRounds=2,firstPlayer=1 1,numSuits=2,numRanks=4,numHoleCards=1,"
  "numBoardCards=0 1,"
)
GAMES = {
  "liar's dice, 2 dice of 3 sides": "liars_dice(numdice=2,dice_sides=3)",
  "liar's dice, 1 die of 3 sides": "liars_dice(dice_sides=3)",
  "goofspiel 4, ascending": "goofspiel(imp_info=True,num_cards=4,points_order=ascending)",
  "goofspiel 5, ascending": "goofspiel(imp_info=True,num_cards=5,points_order=ascending)",
  "goofspiel 5, point difference": (
    "goofspiel(imp_info=True,num_cards=5,points_order=descending,returns_type=point_difference)"
  ),
  "oshi-zumo, 5 coins": "oshi_zumo(coins=5,size=1,horizon=6)",
  "blotto, 10 coins": "blotto(coins=10,fields=3,players=2)",
  "limit poker, 8 cards": (
    f"{_UNIVERSAL_POKER}betting=limit,blind=1 2,raiseSize=2 4,maxRaises=2 2)"
  ),
  "no-limit poker, 8 cards": (
    f"{_UNIVERSAL_POKER}betting=nolimit,blind=1 1,stack=8 8,bettingAbstraction=fcpa)"
  ),
  "battleship 2x2, two ships": (
    "battleship(board_width=2,board_height=2,ship_sizes=[1;2],ship_values=[1;2],num_shots=3,"
    "allow_repeated_shots=False)"
  ),
}
_ITERATIONS = flags.DEFINE_integer("iterations", 1000, "how many", lower_bound=1)
_HANDICAP = flags.DEFINE_integer(
  "handicap", 1, "the others get this many times the iterations", lower_bound=1
)
_GAME_NUMBERS = flags.DEFINE_list("game_numbers", [], "which of the ten, from 0; all by default")


# The columns of the table, and their names in the catalogue.
COLUMNS = {
  "CFR+": "cfr+",
  "DCFR": "dcfr",
  "PCFR+": "pcfr+",
  "PDCFR+": "pdcfr+",
  "SAPCFR+": "sapcfr+",
  "HS-DCFR": "hsdcfr",
  "rule": "adaptive",
  "rule, certified": "adaptive_certified",
  "rule, restarted": "restarted_adaptive",
  "DCFR, restarted": "restarted_dcfr",
  "restarted": "restarted",
}
# Those that are ours.
OURS = [column for column in COLUMNS if column.startswith("rule") or column.endswith("restarted")]
_OURS = flags.DEFINE_enum("ours", "restarted", OURS, "which of ours has to be best")


def main(_: list[str]) -> None:
  names = chosen(GAMES, _GAME_NUMBERS.value) or list(GAMES)
  print(f"| game | {' | '.join(COLUMNS)} | best | time |")
  print("| --- " * (len(COLUMNS) + 3) + "|")
  wins = 0
  for name in names:
    game = spiel_cfr.compile_game(GAMES[name])
    low, high = game.payoff_range
    values, seconds = [], []
    for column, solver_name in COLUMNS.items():
      solver = catalogue.make(solver_name, game, _ITERATIONS.value * _HANDICAP.value)
      handicap = 1 if column in OURS else _HANDICAP.value
      solver.prepare()
      start = time.perf_counter()
      solver.run(handicap * _ITERATIONS.value)
      seconds.append(time.perf_counter() - start)
      values.append(solver.exploitability())
    columns = list(COLUMNS)
    ours = values[columns.index(_OURS.value)]
    others = [value for column, value in zip(columns, values, strict=True) if column not in OURS]
    best = max(min(others), 1e-12 * (high - low)) >= ours
    wins += best
    cells = " | ".join(f"{value:.1e}" for value in values)
    ratio = seconds[columns.index(_OURS.value)] / seconds[columns.index("DCFR")]
    print(f"| {name} | {cells} | {'yes' if best else 'no'} | {ratio:.1f} |", flush=True)
  print(f"\nat or below all others: {wins} of {len(names)}")


if __name__ == "__main__":
  app.run(main)
