"""Compiled games of rivers: the betting after the last public card, in vector form, without states of OpenSpiel."""

import dataclasses
import functools

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Int32s
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.vector.layout import Layout
from spiel_cfr.games.vector.parts import PayoffBuilder
from spiel_cfr.games.vector.public_tree_game import PublicTreeGame
from spiel_cfr.poker.hand_payoff import PokerTerminals
from spiel_cfr.poker.hand_tree import HandTree
from spiel_cfr.poker.public_game import PublicGame


class CompiledRiver(PublicTreeGame):
  """A river as a compiled game. States of OpenSpiel begin at the root of the whole game, so it has none."""

  tree: HandTree
  _skips_forced = False

  def __init__(self, whole: PublicGame, tree: HandTree) -> None:
    """Takes the whole game and the public tree of the river, which may have a choice in front."""
    facts = dataclasses.replace(
      whole.facts,
      payoff_range=(-tree.largest_payoff, tree.largest_payoff),
      num_states=tree.num_nodes + tree.num_terminals,
      num_terminals=tree.num_terminals,
    )
    super().__init__(facts, tree, np.float64, None, None)

  @property
  def view(self) -> GameView:
    """Raises NoStatesError: a river has no states of OpenSpiel."""
    raise errors.NoStatesError(
      "The game of a river has no OpenSpiel states, which sampling solvers need: name a full-width solver."
    )

  def _builder(self, layout: Layout, above: Int32s) -> PayoffBuilder:
    return functools.partial(PokerTerminals, self.tree, layout, above)
