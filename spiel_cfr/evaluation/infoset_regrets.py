"""What a player would gain at one infoset, given that it is there: whether a policy makes sense off its path too.

NashConv asks what players gain from the root, and so does not see mistakes where nobody goes. Here every history of the
game is looked at: it is for small games, and needs no compiled code.
"""

from typing import NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import Float64s, spread
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.history_walk import HistoryWalk
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.policies import open_spiel


class InfosetRegret(NamedTuple):
  """The largest regret of any infoset.

  Attributes:
    regret: what its owner would gain by its best action, in the game's units, given that the infoset is reached.
    infostate: the infoset.
    action: the best action there.
    unknown: at how many infosets nothing can be said, because chance and the others never lead there.
  """

  regret: float
  infostate: str
  action: int
  unknown: int

  def __repr__(self) -> str:
    """Returns one line: how much would be gained where."""
    return f"<InfosetRegret {self.regret:z.6g} at {self.infostate!r} by action {self.action}, {self.unknown:,} unknown>"


def largest_infoset_regret(
  game: AnyGame, policies: open_spiel.AnyPolicy, max_nodes: int = 10_000_000
) -> InfosetRegret:
  """Returns at which infoset a player would gain the most by another action, all else as the policy has it.

  With pi_-p(h) the probability that chance and the others play to history h, and v_p what player p expects from there,

      regret(I) = max over a of  sum over h in I of pi_-p(h) (v_p(h a) - v_p(h)) / sum over h in I of pi_-p(h)

  whether or not p itself plays to I. If it is 0 everywhere, nobody can gain anywhere (one deviation suffices), given
  what the others' policies say of where in an infoset one is.

  Args:
    game: a compiled game, or what `compile_game` takes.
    policies: anything that `policies.from_policy` reads.
    max_nodes: how many histories the game may have.

  Raises:
    PolicyError: the policy is not one for this game.
    GameTooLargeError: the game has more histories.
    ArgumentError: `max_nodes` is not a positive integer.
    GameError: see `compile_game`.
  """
  compiled = compile_game(game)
  max_nodes = arguments.positive_integer(max_nodes, "max_nodes")
  behavioral = open_spiel.from_policy(compiled, policies)
  gains, masses = _gains(compiled, HistoryWalk(compiled, max_nodes), behavioral)
  counts = np.concatenate(compiled.num_actions)
  starts = np.cumsum(counts) - counts
  known = masses[starts] > 0
  best = np.maximum.reduceat(gains, starts)
  regrets = np.where(known, best / np.where(known, masses[starts], 1.0), -np.inf)
  worst = int(regrets.argmax())
  action = int(starts[worst] + gains[starts[worst] : starts[worst] + counts[worst]].argmax())
  return InfosetRegret(
    max(0.0, float(regrets[worst])),
    list(compiled.rows)[worst],
    int(np.concatenate(compiled.actions)[action]),
    int((~known).sum()),
  )


def _gains(
  compiled: CompiledGame, walk: HistoryWalk, behavioral: Float64s
) -> tuple[Float64s, Float64s]:
  """Sums, over the histories of each action's infoset, what it gains and what others' reach is; shape (actions,)."""
  probabilities = walk.probabilities(behavioral)
  values = walk.values(probabilities)
  gains, masses = np.zeros((2, len(compiled.all_action_sequences)))
  for player in range(compiled.num_players):
    own = np.flatnonzero(walk.mover == player)
    counts = walk.num_children[own]
    reach = np.repeat(walk.reach(probabilities, player)[own], counts)
    entry = spread(walk.entry[own], counts)
    better = values[walk.children(own), player] - np.repeat(values[own, player], counts)
    np.add.at(gains, entry, reach * better)
    np.add.at(masses, entry, reach)
  return gains, masses
