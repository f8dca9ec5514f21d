"""A look at one infoset while a Monte Carlo solver runs."""

from typing import NamedTuple


class Snapshot(NamedTuple):
  """What an infoset does at some time.

  Attributes:
    iteration: how many iterations had been done.
    nodes_touched: how many nodes had been visited.
    player: whose infoset it is.
    infostate: its information state string.
    actions: its legal actions.
    current: the current strategy, action by action.
    average: the average strategy.
    regret: cumulative regrets, as the minimizer discounts them.
  """

  iteration: int
  nodes_touched: int
  player: int
  infostate: str
  actions: list[int]
  current: list[float]
  average: list[float]
  regret: list[float]
