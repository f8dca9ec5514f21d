"""Tries to solve all of OpenSpiel's games, and prints the result or the reason of the failure.

    python examples/list_games.py
    python examples/list_games.py --max_nodes=1000000 connect_four "hex(num_cols=3,num_rows=3)"

Each game is compiled with its default parameters and solved by 50 iterations of CFR+. If that fails, the smaller or
other parameters of the table below are tried. Each game runs in a forked process, so that a crash does not end the
program; this does not work on Windows.
"""

import collections
import dataclasses
import math
import multiprocessing
import resource
import time
import warnings
from multiprocessing.connection import Connection

import pyspiel
from absl import app, flags

import spiel_cfr
from spiel_cfr import errors

ITERATIONS = 50

_MAX_NODES = flags.DEFINE_integer("max_nodes", 100_000, "largest number of states of a game")
_SECONDS = flags.DEFINE_float("seconds", 120.0, "time limit of a game, in seconds")

# Parameters to try if the game has no defaults, or if the defaults make it too large or of imperfect recall.
SMALL = {
  "add_noise": "add_noise(epsilon=1.0,game=kuhn_poker(),seed=1)",
  "bargaining": "bargaining(max_turns=2,max_num_instances=2)",
  "battleship": (
    "battleship(board_height=2,board_width=2,num_shots=2,ship_sizes=[1],ship_values=[1.0])"
  ),
  "cached_tree": "cached_tree(game=kuhn_poker())",
  "clobber": "clobber(columns=3,rows=3)",
  "connect_four": "connect_four(columns=3,rows=3,x_in_row=3)",
  "dark_hex": "dark_hex(num_cols=2,num_rows=2)",
  "dots_and_boxes": "dots_and_boxes(num_cols=2,num_rows=1)",
  "go": "go(board_size=2,max_game_length=5)",
  "go_fish": "go_fish(ranks=2,suits=2,initial_cards=1)",
  "gomoku": "gomoku(connect=2,size=2)",
  "goofspiel": "goofspiel(imp_info=true,num_cards=4,points_order=descending)",
  "havannah": "havannah(board_size=2)",
  "hex": "hex(num_cols=2,num_rows=3)",
  "liars_dice": "liars_dice(dice_sides=3)",
  "liars_dice_ir": "liars_dice_ir(dice_sides=2)",
  "misere": "misere(game=kuhn_poker())",
  "mnk": "mnk(k=2,m=3,n=2)",
  "nim": "nim(pile_sizes=1;2;3)",
  "normal_form_extensive_game": "normal_form_extensive_game(game=kuhn_poker())",
  "oh_hell": "oh_hell(num_cards_per_suit=2,num_suits=2,num_tricks_fixed=1)",
  "oshi_zumo": "oshi_zumo(coins=3,size=1,horizon=5)",
  "repeated_leduc_poker": "repeated_leduc_poker(num_hands=1)",
  "restricted_nash_response": "restricted_nash_response(game=leduc_poker())",
  "start_at": "start_at(game=tic_tac_toe(),history=4;0)",
  "tic_tac_toe": "start_at(game=tic_tac_toe(),history=4;0;1;7)",
  "trade_comm": "trade_comm(num_items=2)",
  "turn_based_simultaneous_game": (
    "turn_based_simultaneous_game("
    "game=goofspiel(imp_info=true,num_cards=3,points_order=descending))"
  ),
  "universal_poker": "universal_poker(numRanks=2,numSuits=2,stack=200 200)",
  "y": "y(board_size=3)",
  "zerosum": "zerosum(game=matrix_pd())",
}


@dataclasses.dataclass(frozen=True)
class Outcome:
  """Outcome of a game.

  Attributes:
    game: str. The game's string.
    error: str. The name of the exception; empty if the game was solved.
    text: str. The message of the exception, or the size of the game.
    two_player_constant_sum: bool. True if NashConv must decrease.
    nash_convs: three floats. NashConv of the uniform policy; and of the final average, by us and by OpenSpiel,
      NaN if OpenSpiel would have to list the histories of private moves form.
    seconds: float. Wall-clock time.
    megabytes: float. Peak memory of the process before OpenSpiel's evaluation.
  """

  game: str
  error: str = ""
  text: str = ""
  two_player_constant_sum: bool = False
  nash_convs: tuple[float, float, float] = (math.nan, math.nan, math.nan)
  seconds: float = math.nan
  megabytes: float = math.nan

  def __str__(self) -> str:
    """Returns one line."""
    if self.error:
      return f"{self.game}: {self.error}"
    before, after, _ = self.nash_convs
    return f"{self.game}: solved, {self.text}, NashConv {before:z.3g} -> {after:z.3g}"


def solve(game: str, max_nodes: int) -> Outcome:
  """Compiles a game, runs 50 iterations of CFR+, and evaluates the result with OpenSpiel."""
  try:
    compiled = spiel_cfr.compile_game(game, max_nodes=max_nodes, progress=False)
    solver = spiel_cfr.CFRPlusSolver(compiled)
    before = solver.nash_conv()
    solver.run(ITERATIONS)
    megabytes = _peak_megabytes()
    # OpenSpiel would list all histories, which are too many in private moves form.
    is_listed = not isinstance(compiled, spiel_cfr.games.PrivateMovesGame)
    theirs = math.nan
    if is_listed:
      theirs = pyspiel.nash_conv(solver.game, solver.tabular_average_policy())
  except errors.SpielCFRError as error:
    return Outcome(game, error=type(error).__name__, text=str(error), megabytes=_peak_megabytes())
  return Outcome(
    game,
    text=f"{compiled.num_states:,} states, {compiled.num_infosets:,} infosets",
    two_player_constant_sum=compiled.is_two_player_constant_sum,
    nash_convs=(before, solver.nash_conv(), theirs),
    megabytes=megabytes,
  )


def _peak_megabytes() -> float:
  """Returns the peak memory of this process, in megabytes."""
  return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def solve_in_child(game: str, max_nodes: int, seconds: float) -> Outcome:
  """Runs `solve` in a forked process. The outcome's `error` may also be "crash" or "timeout"."""

  def child(connection: Connection) -> None:
    start = time.perf_counter()
    outcome = solve(game, max_nodes)
    connection.send(dataclasses.replace(outcome, seconds=time.perf_counter() - start))

  spiel_cfr.CFRPlusSolver("kuhn_poker").prepare()  # Loads the kernels once, not in every child.
  context = multiprocessing.get_context("fork")
  ours, theirs = context.Pipe(duplex=False)
  process = context.Process(target=child, args=(theirs,))
  with warnings.catch_warnings():
    # Python warns of forks while threads run, such as JAX's; the child needs none of them.
    warnings.simplefilter("ignore")
    process.start()
  theirs.close()
  try:
    return ours.recv() if ours.poll(seconds) else Outcome(game, error="timeout")
  except EOFError:
    return Outcome(game, error="crash")
  finally:
    process.kill()
    process.join()
    ours.close()


def main(arguments: list[str]) -> None:
  counts: collections.Counter[str] = collections.Counter()
  for name in arguments[1:] or sorted(pyspiel.registered_names()):
    outcome = solve_in_child(name, _MAX_NODES.value, _SECONDS.value)
    print(outcome, flush=True)
    result = outcome.error or "solved"
    if outcome.error and name in SMALL:
      outcome = solve_in_child(SMALL[name], _MAX_NODES.value, _SECONDS.value)
      print(f"  {outcome}", flush=True)
      if not outcome.error:
        result = "solved with other parameters"
    counts[result] += 1
  print(f"\n{counts.total()} games at --max_nodes={_MAX_NODES.value:,}:")
  for result, count in counts.most_common():
    print(f"{count:4} {result}")


if __name__ == "__main__":
  app.run(main)
