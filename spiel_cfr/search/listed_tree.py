"""The tree of public states for games whose histories are listed."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.openspiel import answers
from spiel_cfr.games.openspiel.history_list import TERMINAL
from spiel_cfr.policies import open_spiel
from spiel_cfr.search import listed_cut_out
from spiel_cfr.search.cut_outs import CutOut, Start
from spiel_cfr.search.forest_tree import ForestTree
from spiel_cfr.search.gadgets import Gadget
from spiel_cfr.search.history_tree import HistoryTree
from spiel_cfr.search.listed_rows import ListedRows
from spiel_cfr.search.search_tree import PublicState


class ListedTree(ForestTree):
  """All public states of a game whose histories are listed; `public_states` makes one.

  Attributes:
    histories: the histories as arrays.
    listed: `ListedRows`. The public states of the histories, and both players' private states.
  """

  picks = True

  def __init__(self, game: CompiledGame | None, histories: HistoryTree) -> None:
    """Finds the public states of histories."""
    self.histories, self.listed = histories, ListedRows(histories)
    self._game = game
    self.above, self.forests = self.listed.above, self.listed.forests
    self.first_reach, self.first_length = self.listed.first_reach, int(histories.length[0])
    self.largest_payoff = float(np.abs(histories.payoff).max())

  @property
  def game(self) -> CompiledGame:  # type: ignore[override]
    """The compiled game; raises UnsupportedGameError in a tree of a part of the game."""
    if self._game is None:
      raise errors.UnsupportedGameError(
        "This public state belongs to a part of the game that a bot or self_play has walked, without a compiled game. "
        "Use search.public_states(game) for public states with values, beliefs and subgames."
      )
    return self._game

  def rows(self, number: int, player: int) -> Int64s:
    return self.listed.rows(number, player)

  def counterfactual_reach_of_rows(self, player: int, reach: Float64s) -> Float64s:
    weights = self.histories.chance * reach[self.listed.row_of[1 - player]]
    count = len(self.forests[player].above)
    return np.bincount(self.listed.row_of[player], weights, count).astype(np.float64)

  def ends(self, player: int, reach: Float64s) -> Float64s:
    rows, payoffs, _ = self.listed.ends
    values = (1 - 2 * player) * payoffs * reach[rows[1 - player]]
    return np.bincount(rows[player], values, len(self.forests[player].above)).astype(np.float64)

  def end_pairs(self, numbers: Int64s) -> tuple[Int64s, Int64s, Float64s]:
    return self.listed.ends_at(numbers)

  def movers(self) -> tuple[Int64s, Int64s]:
    return self.listed.movers

  def length(self, number: int) -> int:
    return int(self.histories.length[self.listed.histories_of[number][0]])

  def names(self, number: int, player: int) -> list[str]:
    if max(self.players(number)) < 0:
      return []
    return [self.listed.private_name(player, row) for row in self.rows(number, player).tolist()]

  def states(self, number: int) -> Iterator[Any]:
    yield from map(self.histories.state, self.listed.histories_of[number].tolist())

  def pairs(self, number: int) -> tuple[Int64s, Int64s, Float64s]:
    chance = self.histories.chance[self.listed.histories_of[number]]
    return *self.listed.places(number), chance

  def counterfactual_reach(self, number: int, player: int, weights: Float64s) -> Float64s:
    *places, chance = self.pairs(number)
    return np.bincount(places[player], chance * weights[places[1 - player]]).astype(np.float64)

  def described(self, number: int) -> str:
    counts = " x ".join(str(len(self.names(number, player))) for player in (0, 1))
    nodes = self.listed.histories_of[number]
    history = " ".join(map(str, self.histories.history(int(nodes[0]))))
    return f"{len(nodes):,} histories such as [{history}], {counts} private states"

  def public_state_of(self, state: Any) -> PublicState:
    """Returns the public state of a state of OpenSpiel.

    Raises:
      ArgumentError: the state is terminal, or does not belong to this game.
    """
    histories = self.histories
    own = self.game.view.own_state(state, max(0, answers.current_player(state)))
    history = own.history()
    path = histories.path(history)
    if not path or histories.length[path[-1]] < len(history):
      raise errors.ArgumentError(f"The history [{state.history_str()}] is none of {self.game}.")
    if histories.mover[path[-1]] == TERMINAL:
      raise errors.ArgumentError(f"The history [{state.history_str()}] has ended.")
    return PublicState(self, int(self.listed.state_of[path[-1]]))

  def entries(self, policy: open_spiel.AnyPolicy) -> Float64s:
    return self.game.to_actions(open_spiel.from_policy(self.game, policy))

  def behavioral_form(self, entries: Float64s) -> Float64s:
    return self.game.from_actions(entries)

  def cut_out(self, starts: Sequence[Start], gadget: Gadget, *, program: bool = False) -> CutOut:
    return listed_cut_out.cut_out(self.listed, starts, gadget, program=program)

  def __repr__(self) -> str:
    sizes = np.array([len(own) for own in self.listed.histories_of])
    alone = " (common knowledge splits nothing)" if len(self) == len(self.histories.levels) else ""
    return (
      f"<ListedTree of {self.histories.view.game}: {len(self):,} public states{alone}, the largest of "
      f"{int(sizes.max()):,} histories>"
    )
