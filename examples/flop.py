r"""Solves hold'em from the flop, the turn or the river on, with ranges and bet sizes in common notation.

    python examples/flop.py --board=Td9d6h --oop="66+,A8s+" --ip="QQ-22" --pot=200 --stack=900 --bets="50%,a" --raises=a

prints an estimate of the memory, then the exploitability during the run, and at the end both players' strategies at
their first decisions, by class of hands. Ctrl-C ends the run with the strategies so far. With --checkpoint, the same
command continues later.
"""

from results import start

import pathlib
import time
from typing import Any

import numpy as np
from absl import flags

import spiel_cfr
from spiel_cfr import poker
from spiel_cfr.evaluation.evaluate import evaluate
from spiel_cfr.poker import cards, ranges
from spiel_cfr.poker.betting_tree import Kind
from spiel_cfr.policies import forms

_BOARD = flags.DEFINE_string("board", "Td9d6h", "three to five public cards")
_OOP = flags.DEFINE_string("oop", "66+,A8s+", "range of the player who acts first on each street")
_IP = flags.DEFINE_string("ip", "QQ-22", "range of the other player")
_POT = flags.DEFINE_integer("pot", 200, "chips in the pot", lower_bound=2)
_STACK = flags.DEFINE_integer("stack", 900, "chips that each player has behind", lower_bound=1)
_BETS = flags.DEFINE_string("bets", "50%,a", "sizes of first bets on a street, see poker.bet_sizes")
_RAISES = flags.DEFINE_string("raises", "a", "sizes of raises")
_DONK = flags.DEFINE_string("donk", None, "sizes of donk bets; by default those of other bets")
_ADD_ALL_IN = flags.DEFINE_float(
  "add_all_in", 0.0, "also offer all-in where it is at most X times the pot", 0.0
)
_FORCE_ALL_IN = flags.DEFINE_float(
  "force_all_in",
  0.0,
  "replace a bet by all-in if the stack left behind is at most X times the pot after a call",
  0.0,
)
_MERGE = flags.DEFINE_float("merge", 0.0, "merging threshold (0.1 is typical)", 0.0)
_TARGET = flags.DEFINE_float("target", 0.5, "exploitability to reach, in percent of the pot", 0.0)
_ITERATIONS = flags.DEFINE_integer(
  "iterations", 1000, "maximum number of iterations", lower_bound=1
)
_THREADS = flags.DEFINE_integer("threads", 1, "threads that share the subtrees", lower_bound=1)
_MERGE_SUITS = flags.DEFINE_bool("merge_suits", True, "merge equivalent suits")
_CHECKPOINT = flags.DEFINE_string("checkpoint", None, "file of the solver's state, to resume from")

# Iterations between two evaluations, each of which takes as long as two iterations.
_EVERY = 20


def solve_flop() -> None:
  endgame = ranges.endgame(
    _OOP.value, _IP.value, board=_BOARD.value, pot=_POT.value, stack=_STACK.value
  )
  sizes = poker.bet_sizes(
    _BETS.value,
    _RAISES.value,
    donk=_DONK.value,
    add_all_in=_ADD_ALL_IN.value,
    force_all_in=_FORCE_ALL_IN.value,
    merge=_MERGE.value,
  )
  options: dict[str, Any] = {"dtype": "float32", "merge_suits": _MERGE_SUITS.value}
  print(poker.estimate(endgame, sizes, **options), flush=True)
  if _THREADS.value > 1:
    options |= {"partitioned": True, "num_threads": _THREADS.value}
  began = time.perf_counter()
  game = poker.compile_public_game(endgame, sizes, **options)
  print(f"compiled in {time.perf_counter() - began:z.1f} s", flush=True)
  solver = spiel_cfr.DCFRSolver(game)
  if _CHECKPOINT.value and pathlib.Path(_CHECKPOINT.value).exists():
    solver.restore(_CHECKPOINT.value)
    print(f"resumed after {solver.iteration} iterations")
  try:
    iterate(solver)
  except KeyboardInterrupt:
    print(f"\nstopped after {solver.iteration} iterations", flush=True)
  if _CHECKPOINT.value:
    solver.save(_CHECKPOINT.value)
    print(f"saved to {_CHECKPOINT.value}")
  if solver.iteration:
    report(solver)


def iterate(solver: Any) -> None:
  """Iterates until the target is reached, and prints exploitability."""
  spent = 0.0
  while solver.iteration < _ITERATIONS.value:
    began = time.perf_counter()
    solver.run(min(_EVERY, _ITERATIONS.value - solver.iteration))
    spent += time.perf_counter() - began
    share = 100 * solver.exploitability() / _POT.value
    print(
      f"{solver.iteration:6} iterations, {spent:z7.1f} s: exploitability {share:z.3f} % of the pot",
      flush=True,
    )
    if share <= _TARGET.value:
      return


def report(solver: Any) -> None:
  """Prints the players' EV, and their strategies at their first decisions."""
  game = solver.compiled_game
  tree, deal = game.tree, game.tree.deal
  sums = solver.average_sequence_form()
  oop, ip = evaluate(game, sums).expected_values + _POT.value / 2
  print(f"EV: OOP {oop:z.2f}, IP {ip:z.2f} chips of a pot of {_POT.value}")
  played = forms.behavioral_form(game, sums)
  # The first decision, and the decision after a check.
  first = tree.nodes[0]
  nodes = [
    0,
    *(child for action, child in zip(first.actions, first.children, strict=True) if action == 1),
  ]
  for name, number in zip(("OOP", "IP after a check"), nodes, strict=True):
    node = tree.nodes[number]
    if node.kind is not Kind.DECISION:
      continue
    board = tree.boards[0]
    hands, reaches = deal.hands[board.hands[node.player]], board.reaches[node.player]
    chances = played[game.layout.sequences(tree.node_at(0, number))]
    actions = [word(action) for action in node.actions]
    print(f"\n{name:18}" + "".join(f"{action:>10}" for action in actions))
    classes = np.array([hand_class(hand) for hand in hands.tolist()])
    for label in [None, *dict.fromkeys(sorted(classes, key=strength, reverse=True))]:
      part = np.full(len(hands), True) if label is None else classes == label
      mean = chances[:, part] @ reaches[part] / reaches[part].sum()
      print(f"{label or 'all hands':18}" + "".join(f"{100 * chance:z9.1f}%" for chance in mean))


def word(action: int) -> str:
  """Returns the name of an action, with the chips that a bet puts in on the first street."""
  chips = action - _POT.value // 2
  return {0: "fold", 1: "check"}.get(action, "all-in" if chips == _STACK.value else f"bet {chips}")


def hand_class(hand: list[int]) -> str:
  """Returns the class of two cards, such as AKs."""
  low, high = sorted(hand)
  suited = "" if low // 4 == high // 4 else "s" if low % 4 == high % 4 else "o"
  return cards.RANKS[high // 4] + cards.RANKS[low // 4] + suited


def strength(label: str) -> tuple[bool, int, int, bool]:
  """Returns a key that orders classes of hands: pairs first, then by rank."""
  high, low = (cards.RANKS.index(rank) for rank in label[:2])
  return high == low, high, low, label.endswith("s")


if __name__ == "__main__":
  start(solve_flop)
