"""Rake: the part of each pot that the house keeps. It makes poker a general-sum game.

Let s be the chips of each player in a pot of 2 s, and r the rake of that pot. The winner gains s - r, the loser loses
s, and a tie costs each player r / 2. So each player pays r / 2, and both play for a stake of s - r / 2 without rake.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from spiel_cfr import errors
from spiel_cfr._util import arguments
from spiel_cfr.poker.betting_tree import BettingNode, NodeKind, path_after
from spiel_cfr.poker.deal import Deal


@dataclasses.dataclass(frozen=True)
class Rake:
  """Rake of `min(rate * pot, cap)` chips, not rounded.

  The pot is the chips of both players without the uncalled part of a bet. The winner gets the pot without the rake; if
  the pot is split, each player pays half of the rake. A fold before the first public card costs nothing ("no flop, no
  drop"). All other pots are raked.

      poker.Rake(0.05, cap=3)  # 5 percent, at most 3 chips

  Attributes:
    rate: float. The rake as a share of the pot, from 0 to 1.
    cap: float. The largest rake of a pot, in chips.
  """

  rate: float
  cap: float = math.inf

  def __post_init__(self) -> None:
    """Checks both numbers.

    Raises:
      ArgumentError: the rate is not from 0 to 1, or the cap is negative.
    """
    object.__setattr__(self, "rate", arguments.real_number(self.rate, "rate", 0.0, 1.0))
    object.__setattr__(self, "cap", arguments.real_number(self.cap, "cap", 0.0))


def raked(nodes: Sequence[BettingNode], deal: Deal, rake: Rake) -> list[BettingNode]:
  """Returns copies of the nodes of the betting with the rake of each pot.

  Raises:
    UnsupportedGameError: all hands tie, so that no payoff says how large the pots are.
  """
  result, has_showdowns = [], any(node.kind is NodeKind.SHOWDOWN for node in nodes)
  for node in nodes:
    # If every showdown is a tie, `walk_betting_tree` lists showdowns as folds that pay 0.
    if not node.children and not node.payoff and not has_showdowns:
      raise errors.UnsupportedGameError(
        "On this board every showdown is a tie, so that the size of its pots is unknown: compile it without rake."
      )
    no_flop = node.kind is NodeKind.FOLD and not node.level and not deal.board
    chips = 0.0 if no_flop else min(rake.rate * 2 * abs(node.payoff), rake.cap)
    result.append(dataclasses.replace(node, rake=chips))
  return result


@dataclasses.dataclass(frozen=True)
class RakedReturns:
  """Function that returns both players' payoffs after the rake, for `returns` of `GameView`.

  Attributes:
    rakes: dict from paths to floats. The rake, in chips, at each terminal node of the betting.
    num_moves_before: int. `Deal.num_moves_before`.
  """

  rakes: Mapping[tuple[int, ...], float]
  num_moves_before: int

  @classmethod
  def of(cls, nodes: Sequence[BettingNode], deal: Deal) -> "RakedReturns":
    """Returns the function for a game, given its betting."""
    rakes = {node.path: node.rake for node in nodes if not node.children}
    return cls(rakes, deal.num_moves_before)

  def __call__(self, state: Any) -> list[float]:
    """Returns the payoff of each player at a terminal state."""
    rake = self.rakes[path_after(state, self.num_moves_before)]
    gains = state.returns()
    if gains[0] == gains[1]:
      return [gain - rake / 2 for gain in gains]
    return [gain - rake if gain > 0 else gain for gain in gains]
