"""Games on which `examples/step_rule.py` compares rules, in groups by their use in the design of the rules.

The games of `FRESH` were chosen before restarted CFR was run on any of them. Some of them have relatives that were used
in earlier experiments with restarts of the adaptive rule: blotto with 6 coins on 3 fields, battleship 2x2 with two
shots, goofspiel 4 with random points, oshi-zumo with 4 coins.
"""

from collections.abc import Mapping

_POKER = (
  "universal_poker(numPlayers=2,numRounds=2,firstPlayer=1 1,numHoleCards=1,numBoardCards=0 1,"
)
_LIMIT = "betting=limit,raiseSize=2 4,maxRaises=2 2"
_NO_LIMIT = "betting=nolimit,blind=1 1,bettingAbstraction=fcpa"

# Games on which the constants of restarted CFR were chosen.
TUNED: Mapping[str, str] = {
  "Leduc poker": "leduc_poker",
  "liar's dice, 1 die of 5 sides": "liars_dice(dice_sides=5)",
  "goofspiel 5": "goofspiel(imp_info=True,num_cards=5,points_order=descending)",
  "limit poker, 8 cards": f"{_POKER}{_LIMIT},numSuits=2,numRanks=4,blind=1 2)",
  "liar's dice, 1 die of 6 sides": "liars_dice",
  "battleship 2x3": (
    "battleship(board_height=2,board_width=3,ship_sizes=[2],ship_values=[2],num_shots=2,"
    "allow_repeated_shots=False)"
  ),
}
# Games whose results were known during the design of restarted CFR.
SEEN: Mapping[str, str] = {
  "Kuhn poker": "kuhn_poker",
  "goofspiel 4, ascending": "goofspiel(imp_info=True,num_cards=4,points_order=ascending)",
  "blotto, 10 coins": "blotto(coins=10,fields=3,players=2)",
  "battleship 2x2, two ships": (
    "battleship(board_width=2,board_height=2,ship_sizes=[1;2],ship_values=[1;2],num_shots=3,"
    "allow_repeated_shots=False)"
  ),
  "goofspiel 5, ascending": "goofspiel(imp_info=True,num_cards=5,points_order=ascending)",
  "goofspiel 5, point difference": (
    "goofspiel(imp_info=True,num_cards=5,points_order=descending,returns_type=point_difference)"
  ),
  "no-limit poker, 8 cards": f"{_POKER}{_NO_LIMIT},numSuits=2,numRanks=4,stack=8 8)",
  "Leduc poker, 4 ranks": f"{_POKER}{_LIMIT},numSuits=2,numRanks=4,blind=1 1)",
  "liar's dice, 2 dice of 3 sides": "liars_dice(numdice=2,dice_sides=3)",
  "oshi-zumo, 5 coins": "oshi_zumo(coins=5,size=1,horizon=6)",
}
# Games on which nothing was tuned.
FRESH: Mapping[str, str] = {
  "dark hex 2x2": "dark_hex(board_size=2)",
  "blotto, 6 coins on 4 fields": "blotto(coins=6,fields=4,players=2)",
  "battleship 2x2, four shots": (
    "battleship(board_width=2,board_height=2,ship_sizes=[1],ship_values=[1],num_shots=4,"
    "allow_repeated_shots=False)"
  ),
  "liar's dice, 2 dice of 2 sides": "liars_dice(numdice=2,dice_sides=2)",
  "goofspiel 6, three turns": (
    "goofspiel(imp_info=True,num_cards=6,num_turns=3,points_order=descending)"
  ),
  "goofspiel 4, random order": "goofspiel(imp_info=True,num_cards=4,points_order=random)",
  "no-limit poker, 9 cards of 3 suits": f"{_POKER}{_NO_LIMIT},numSuits=3,numRanks=3,stack=12 12)",
  "liar's dice, 1 die of 5 sides, bids by quantity": (
    "liars_dice(dice_sides=5,bidding_rule=reset-quantity)"
  ),
  "oshi-zumo, 4 coins on 5 fields": "oshi_zumo(coins=4,size=2,horizon=6,alesia=True)",
  "limit poker, 12 cards of 3 suits": f"{_POKER}{_LIMIT},numSuits=3,numRanks=4,blind=1 1)",
}
# Larger games whose results were known during the design.
LARGE: Mapping[str, str] = {
  "no-limit poker, 10 cards": f"{_POKER}{_NO_LIMIT},numSuits=2,numRanks=5,stack=20 20)",
  "limit poker, 20 cards": f"{_POKER}{_LIMIT},numSuits=2,numRanks=10,blind=1 2)",
  "liar's dice, 1 die of 7 sides": "liars_dice(dice_sides=7)",
}
GROUPS: Mapping[str, Mapping[str, str]] = {
  "tuned": TUNED,
  "seen": SEEN,
  "fresh": FRESH,
  "large": LARGE,
}
