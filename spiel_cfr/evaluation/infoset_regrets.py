"""Regret of a policy at single infosets, given that they are reached: a measure of play off the equilibrium path.

NashConv weights gains by the probability of play, so it does not see mistakes at infosets that the policy never
reaches. The regret here counts them in full. It visits every history in Python, and is for small games.
"""

from typing import NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, concatenated_ranges
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.history_walk import HistoryWalk
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.policies import open_spiel


class InfosetRegret(NamedTuple):
  """The largest regret of any infoset.

  Attributes:
    regret: float. The gain of the infoset's player by its best action, in the game's units, given that the infoset is
      reached.
    infostate: str. The information state string of the infoset.
    action: int. The best action at the infoset.
    unknown: int. The number of infosets without a regret, because chance and the other players never lead there.
  """

  regret: float
  infostate: str
  action: int
  unknown: int

  def __repr__(self) -> str:
    """Returns one line with the regret, the infoset and the action."""
    return f"<InfosetRegret {self.regret:z.6g} at {self.infostate!r} by action {self.action}, {self.unknown:,} unknown>"


def largest_infoset_regret(
  game: AnyGame, policy: open_spiel.AnyPolicy, max_nodes: int = 10_000_000
) -> InfosetRegret:
  """Returns the infoset at which a player gains the most by changing its action there and nowhere else.

  With pi_-p(h) the probability that chance and the others play to history h, and v_p the expected payoff of p from
  there,

      regret(I) = max over a of  sum over h in I of pi_-p(h) (v_p(h a) - v_p(h)) / sum over h in I of pi_-p(h)

  The reach probability of p itself does not matter. If all regrets are 0, no player can gain at any infoset, by any
  number of deviations, given the beliefs that the others' policies imply.

  Args:
    game: a compiled game, or an argument of `compile_game`.
    policy: anything that `policies.from_policy` reads.
    max_nodes: the largest number of histories that the game may have.

  Raises:
    PolicyError: the policy is for another game.
    UnsupportedGameError: no player decides.
    GameTooLargeError: the game has more than `max_nodes` histories.
    ArgumentError: `max_nodes` is not a positive integer.
    GameError: see `compile_game`.
  """
  compiled = compile_game(game)
  max_nodes = arguments.positive_integer(max_nodes, "max_nodes")
  if not compiled.num_infosets:
    raise errors.UnsupportedGameError(f"In {compiled} no player decides: no infoset has a regret.")
  behavioral = open_spiel.from_policy(compiled, policy)
  gains, reaches = _gains_and_reaches(compiled, HistoryWalk(compiled, max_nodes), behavioral)
  counts = np.concatenate(compiled.num_actions)
  starts = np.cumsum(counts) - counts
  reach = reaches[starts]
  is_reached = reach > 0
  best = np.maximum.reduceat(gains, starts)
  regrets = np.where(is_reached, best / np.where(is_reached, reach, 1.0), -np.inf)
  worst = int(regrets.argmax())
  action = int(starts[worst] + gains[starts[worst] : starts[worst] + counts[worst]].argmax())
  return InfosetRegret(
    max(0.0, float(regrets[worst])),
    list(compiled.table_rows)[worst],
    int(np.concatenate(compiled.actions)[action]),
    int((~is_reached).sum()),
  )


def _gains_and_reaches(
  compiled: CompiledGame, walk: HistoryWalk, behavioral: Float64s
) -> tuple[Float64s, Float64s]:
  """Returns two sums over the histories of each action's infoset, both of shape (actions of all infosets,).

  The first sums the gains by the action, weighted by the reach of chance and the other players. The second sums that
  reach. Actions are in the order of discovery.
  """
  probabilities = walk.probabilities(behavioral)
  values = walk.values(probabilities)
  gains, reaches = np.zeros((2, len(compiled.all_action_sequences)))
  for player in range(compiled.num_players):
    histories = np.flatnonzero(walk.mover == player)
    counts = walk.num_children[histories]
    reach = np.repeat(walk.reach(probabilities, player)[histories], counts)
    entry = concatenated_ranges(walk.entry[histories], counts)
    gain = values[walk.children(histories), player] - np.repeat(values[histories, player], counts)
    np.add.at(gains, entry, reach * gain)
    np.add.at(reaches, entry, reach)
  return gains, reaches
