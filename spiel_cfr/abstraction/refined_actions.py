"""Actions that come into a poker game in vector form while it is solved.

Let C(ja) be what action a at infoset j is worth against the policy if its owner plays a best response below, and Z(j)
what j is worth to its owner, who plays the policy. In the whole game an action that was left out is worth

    sum over the infosets j of its public state of max(C(ja) - Z(j), 0).

If none is worth anything, no best response in the whole game gains anything that it can't gain in the smaller one (by
induction from the last infosets up), so the smaller one has solved the whole.
"""

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s, Int64s
from spiel_cfr._numba.steps import StepKernel
from spiel_cfr.evaluation.best_responses import take_best
from spiel_cfr.games.compiled.counterfactual_values import backward_pass, expect, gradients
from spiel_cfr.games.openspiel.game_view import ActionFilter
from spiel_cfr.poker.hand_tree import TERMINALS, first_deal, hand_tree
from spiel_cfr.poker.public_game import PublicGame
from spiel_cfr.poker.public_tree import Kind, PublicNode
from spiel_cfr.policies import forms

# Of the largest payoff: what is worth less is rounding.
_NOTHING = 1e-12
# Of all that can be gained, how much is taken at once: less leads to smaller games in more time.
_SHARE = 0.8
# What stands in the list of a game's nodes where one was left out, so that the others keep their numbers.
_ABSENT = PublicNode(Kind.CHANCE, level=-1, path=())


class RefinedActions:
  """A game without some actions, how its policies are played in the whole one, and what it lacks.

  An action comes at a public state for all hands, so that whoever holds other cards does not see what is missing. While
  it is not there, others answer it as they answer the kept action with the nearest number.

  Attributes:
    whole: the whole game.
    small: the game without some actions, whose public nodes have the numbers of the whole one's.
  """

  def __init__(self, whole: PublicGame, kept: Sequence[Sequence[int]]) -> None:
    """Keeps some of the children of each of `tree.nodes`, by their places, ascending."""
    self.whole, self.small, self._kept = whole, whole, kept
    tree, like = whole.tree, _played_like(whole.tree.nodes, kept)
    nodes = [
      dataclasses.replace(
        node,
        actions=tuple(node.actions[place] for place in places if node.actions),
        children=[node.children[place] for place in places],
        last=tuple(own and (own[0], kept[own[0]].index(own[1])) for own in node.last),
      )
      if like.get(index) == index
      else _ABSENT
      for index, (node, places) in enumerate(zip(tree.nodes, kept, strict=True))
    ]
    if _ABSENT in nodes:
      levels = {node.level for node in nodes}
      boards = [board for board in tree.boards if board.level in levels]
      small = hand_tree(tree.deal, nodes, boards)
      self.small = PublicGame(whole.view, small, whole.dtype, whole.num_threads)
    pairs = []
    # What is the same in both games comes first.
    for index, other in sorted(like.items(), key=lambda pair: pair[0] != pair[1]):
      node = tree.nodes[index]
      if node.kind is Kind.DECISION:
        answers = [_nearest(action, node.actions) for action in nodes[other].actions]
        there = _sequences(whole, index)[answers]
        pairs.append((_sequences(self.small, other).ravel(), there.ravel()))
    self._here, self._there = np.hstack(pairs)

  @classmethod
  def filtered(cls, whole: PublicGame, action_filter: ActionFilter) -> "RefinedActions":
    """Keeps what a filter keeps; raises ArgumentError if that is nothing at some public state."""
    tree, kept = whole.tree, []
    levels = [board.level for board in tree.boards]
    for index, node in enumerate(tree.nodes):
      kept.append(list(range(len(node.children))))
      if node.kind is Kind.DECISION:
        number = levels.index(node.level)
        board = tree.boards[number]
        state = whole.view.new_initial_state()
        deal = first_deal(tree.deal, board, node.player, int(board.hands[node.player][0]))
        for action in (*deal, *tree.actions_above(int(tree.number[number, index]))):
          state.apply_action(action)
        found = list(action_filter(state, list(node.actions)))
        kept[-1] = [place for place, action in enumerate(node.actions) if action in found]
        if not kept[-1]:
          raise errors.ArgumentError(
            f"After the history [{state.history_str()}] the action filter keeps {found}, none of the game's "
            f"{list(node.actions)}."
          )
    return cls(whole, kept)

  def to_whole(self, sequence_form: Float64s) -> Float64s:
    """Returns a sequence form, or a sum of them, of the smaller game as behavioural form of the whole game."""
    own = forms.behavioral_form(self.small, sequence_form)
    sums = np.zeros(self.whole.end)
    np.add.at(sums, self._there, own[self._here])
    return forms.behavioral_form(self.whole, sums)

  def to_small(self, probabilities: Float64s) -> Float64s:
    """Returns behavioural form of the whole game as that of the smaller one."""
    sums = np.zeros(self.small.end)
    # Backwards: the last to be written, what is the same in both games, stays.
    sums[self._here[::-1]] = probabilities[self._there[::-1]]
    return forms.behavioral_form(self.small, sums)

  def refined(self, probabilities: Float64s) -> "RefinedActions | None":
    """Adds the actions from which best responses in the whole game gain most."""
    tree = self.whole.tree
    best = self._action_values(take_best, probabilities)
    played = probabilities * self._action_values(expect, probabilities)
    size = self._sizes()
    missing, worth, cost = [], [], []
    for index, node in enumerate(self.small.tree.nodes):
      if node.kind is Kind.DECISION:
        rows, children = _sequences(self.whole, index), tree.nodes[index].children
        for place in sorted({*range(len(children))} - {*self._kept[index]}):
          missing.append((index, place))
          worth.append(np.maximum(best[rows[place]] - played[rows].sum(axis=0), 0.0).sum())
          cost.append(size[children[place]])
    kept = [list(places) for places in self._kept]
    chosen = self._chosen(np.array(worth), np.array(cost))
    for index, place in itertools.compress(missing, chosen):
      kept[index] = sorted([*kept[index], place])
    return RefinedActions(self.whole, kept) if chosen.any() else None

  def _action_values(self, kernel: StepKernel, probabilities: Float64s) -> Float64s:
    """Returns what each sequence of the whole game is worth with what a kernel plays below; shape (sequences,)."""
    result = gradients(self.whole, forms.sequence_form(self.whole, probabilities))
    backward_pass(self.whole, kernel, result, strategy=probabilities)
    return result

  def _chosen(self, worth: Float64s, cost: Float64s) -> Bools:
    """Chooses those that are worth most for each number that they add, until they make up most of what all are."""
    result = worth > _NOTHING * max(map(abs, self.whole.payoff_range))
    order = np.argsort(-worth / np.maximum(cost, 1.0), kind="stable")
    order = order[result[order]]
    before = np.cumsum(worth[order]) - worth[order]
    result[order] = before < _SHARE * worth[order].sum()
    return result

  def _sizes(self) -> Float64s:
    """Counts pairs of a hand and a terminal at each node and below it, of what is kept there; shape (nodes,)."""
    tree = self.whole.tree
    hands = np.bincount(
      [board.level for board in tree.boards],
      [sum(map(len, board.hands)) for board in tree.boards],
    )
    result = np.zeros(len(tree.nodes))
    for index, node in reversed(list(enumerate(tree.nodes))):
      result[index] = hands[node.level] if node.kind in TERMINALS else 0.0
      result[index] += sum(result[node.children[place]] for place in self._kept[index])
    return result


def _sequences(game: PublicGame, node: int) -> Int64s:
  """Returns the sequences of a decision on all boards, shape (actions, hands)."""
  places = game.tree.number[:, node]
  return np.hstack([game.layout.sequences(place) for place in places[places >= 0].tolist()])


def _played_like(nodes: Sequence[PublicNode], kept: Sequence[Sequence[int]]) -> dict[int, int]:
  """Returns as which node that is there each one is played, by number: those that are there as themselves.

  Below a missing action all go on as below the nearest that is kept, as long as it is the same player's turn.
  """
  result = {0: 0}
  for index, node in enumerate(nodes):
    if index not in result:
      continue
    other, places = nodes[result[index]], kept[result[index]]
    if (other.kind, other.player) != (node.kind, node.player):
      del result[index]
      continue
    actions = [other.actions[place] for place in places if other.actions]
    for place, child in enumerate(node.children):
      nearest = _nearest(node.actions[place], actions) if actions else place
      result[child] = other.children[places[nearest]]
  return result


def _nearest(action: int, actions: Sequence[int]) -> int:
  """Returns the place of the action with the nearest number."""
  return min(range(len(actions)), key=lambda place: (abs(actions[place] - action), actions[place]))
