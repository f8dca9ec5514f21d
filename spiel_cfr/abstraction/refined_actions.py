"""Actions that come into a poker game in vector form while it is solved.

An action comes at a public state for all hands, so that whoever holds other cards does not see what is missing. While
it is not there, others answer it as they answer the kept action with the nearest number.
"""

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s
from spiel_cfr.abstraction.fewer_actions import layout_with_actions
from spiel_cfr.abstraction.refinement import Refinement
from spiel_cfr.evaluation.counterfactual_values import backward_pass, expect
from spiel_cfr.games.openspiel.game_view import ActionFilter
from spiel_cfr.poker.hand_infosets import first_deal
from spiel_cfr.poker.hand_layout import TERMINALS
from spiel_cfr.poker.public_game import PublicGame
from spiel_cfr.poker.public_tree import Kind
from spiel_cfr.policies import forms


class RefinedActions(Refinement):
  """A game without some actions."""

  def __init__(self, game: PublicGame, action_filter: ActionFilter) -> None:
    """Leaves out what the filter leaves out.

    Raises:
      ArgumentError: the filter keeps no action of the game at some public state.
    """
    self.whole = game
    layout = game.layout
    self._boards: dict[int, list[int]] = {}
    for number, board in enumerate(layout.boards):
      self._boards.setdefault(board.level, []).append(number)
    # Of every decision by its number in `layout.nodes`, which actions are there.
    self._kept = {
      index: self._filtered(index, action_filter)
      for index, node in enumerate(layout.nodes)
      if node.kind is Kind.DECISION
    }
    self._build()

  def _filtered(self, index: int, action_filter: ActionFilter) -> Bools:
    layout = self.whole.layout
    node = layout.nodes[index]
    first = self._boards[node.level][0]
    board = layout.boards[first]
    state = self.whole.view.new_initial_state()
    deal = first_deal(layout, node.player, board, int(board.hands[node.player][0]))
    for action in (*deal, *layout.public_actions(first, index)):
      state.apply_action(action)
    found = list(action_filter(state, state.legal_actions()))
    kept = np.isin(node.actions, found)
    if not kept.any():
      raise errors.ArgumentError(
        f"After the history [{state.history_str()}] the action filter keeps {found}, none of the game's "
        f"{list(node.actions)}."
      )
    return kept

  def _build(self) -> None:
    if all(kept.all() for kept in self._kept.values()):
      self.small = self.whole
    else:
      places = {index: np.flatnonzero(kept).tolist() for index, kept in self._kept.items()}
      layout, self._nodes, numbers = layout_with_actions(self.whole.layout, places)
      self.small = self.whole.with_layout(layout)
      # The places of the smaller game's sequences in the whole one, board by board.
      self._here, self._there = [], []
      for number, old in enumerate(numbers):
        for index, origin in enumerate(self._nodes):
          node = layout.nodes[index]
          if node.kind is Kind.DECISION and node.level == layout.boards[number].level:
            self._here.append(layout.sequences(number, index).ravel())
            self._there.append(self.whole.layout.sequences(old, origin)[places[origin]].ravel())

  def to_whole(self, sequence_form: Float64s) -> Float64s:
    """Returns behavioural form in which nobody plays what is missing; others answer it as the nearest action."""
    own = forms.behavioral_form(self.small, sequence_form)
    if self.small is self.whole:
      return own
    result = np.zeros(self.whole.end)
    for here, there in zip(self._here, self._there, strict=True):
      result[there] = own[here]
    layout = self.whole.layout
    for index, taken_for in self._taken_for().items():
      node, kept = layout.nodes[index], layout.nodes[taken_for]
      answers = [_nearest(action, node.actions) for action in kept.actions]
      for number in self._boards[node.level]:
        rows = layout.sequences(number, index)[answers]
        np.add.at(result, rows, result[layout.sequences(number, taken_for)])
    return forms.behavioral_form(self.whole, result)

  def _taken_for(self) -> dict[int, int]:
    """Returns the decisions to which only missing actions lead, and which one of the same player each is taken for."""
    nodes, here, result = self.whole.layout.nodes, set(self._nodes), {}
    image: dict[int, int | None] = {0: 0}
    for index, node in enumerate(nodes):
      found = image[index]
      if found is not None and (nodes[found].kind, nodes[found].player) != (node.kind, node.player):
        found = None
      if found is not None and node.kind is Kind.DECISION and index not in here:
        result[index] = found
      for place, child in enumerate(node.children):
        if found is None:
          image[child] = None
        elif node.kind is Kind.CHANCE:
          image[child] = nodes[found].children[0]
        else:
          kept = np.flatnonzero(self._kept[found])
          actions = [nodes[found].actions[each] for each in kept]
          image[child] = nodes[found].children[kept[_nearest(node.actions[place], actions)]]
    return result

  def to_small(self, probabilities: Float64s) -> Float64s:
    """Returns what is played among the actions that are there."""
    if self.small is self.whole:
      return probabilities
    entries = np.zeros(self.small.end)
    for here, there in zip(self._here, self._there, strict=True):
      entries[here] = probabilities[there]
    return forms.behavioral_form(self.small, entries)

  def refine(self, probabilities: Float64s) -> bool:
    """Adds the actions from which best responses in the whole game gain most."""
    if self.small is self.whole:
      return False
    layout = self.whole.layout
    gradient, best = self._gradient_and_best(probabilities)
    backward_pass(self.whole, expect, gradient, strategy=probabilities)
    missing = [
      (index, int(place))
      for index in self._nodes
      if index in self._kept
      for place in np.flatnonzero(~self._kept[index])
    ]
    worth = np.zeros(len(missing))
    for unit, (index, place) in enumerate(missing):
      for number in self._boards[layout.nodes[index].level]:
        rows = layout.sequences(number, index)
        value = (probabilities[rows] * gradient[rows]).sum(axis=0)
        worth[unit] += np.maximum(best[rows[place]] - value, 0.0).sum()
    cost = [self._terminals(layout.nodes[index].children[place]) for index, place in missing]
    chosen = self._chosen(worth, np.array(cost))
    for unit in chosen.tolist():
      index, place = missing[unit]
      self._kept[index][place] = True
    if len(chosen):
      self._build()
    return bool(len(chosen))

  def _terminals(self, root: int) -> float:
    """Counts pairs of a hand and a terminal that an action would bring, given those below it that are kept."""
    layout, result, stack = self.whole.layout, 0, [root]
    while stack:
      index = stack.pop()
      node = layout.nodes[index]
      if node.kind in TERMINALS:
        boards = self._boards[node.level]
        result += sum(len(hands) for number in boards for hands in layout.boards[number].hands)
      kept = self._kept.get(index, np.ones(len(node.children), bool))
      stack += [node.children[place] for place in np.flatnonzero(kept)]
    return float(result)


def _nearest(action: int, actions: list[int] | tuple[int, ...]) -> int:
  """Returns the place of the action with the nearest number."""
  return min(range(len(actions)), key=lambda place: (abs(actions[place] - action), actions[place]))
