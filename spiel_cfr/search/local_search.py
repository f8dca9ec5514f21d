"""Continual re-solving below one public state, for one player: each decision starts from the latest solution."""

import itertools
import time
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s
from spiel_cfr.bots import PolicyReader, distribution
from spiel_cfr.policies import CompiledTabularPolicy
from spiel_cfr.search.forest_tree import ForestBlueprint, Play
from spiel_cfr.search.gadgets import GADGETS, Gadget
from spiel_cfr.search.history_tree import HistoryTree
from spiel_cfr.search.listed_tree import ListedTree
from spiel_cfr.search.private_forest import NONE
from spiel_cfr.search.search_step import search_step
from spiel_cfr.search.subgame_solver import SubgameSolver

# (number of sequences of the linear program, deadline) -> the gadget and the solver of a subgame.
Choose: TypeAlias = Callable[[int, float], tuple[Gadget, SubgameSolver]]


class LocalSearch:
  """The subgame below a public state, and the solutions found in it; each is found once."""

  def __init__(self, histories: HistoryTree, blueprint: PolicyReader, searcher: int) -> None:
    """Reads the blueprint.

    Args:
      histories: the histories of the subgame.
      blueprint: the blueprint.
      searcher: the player who searches.

    Raises:
      PolicyError: the blueprint has no probabilities at an infoset of the searcher, to which the searcher plays
        whatever the opponent does.
    """
    self._tree, self._searcher = ListedTree(None, histories), searcher
    self._decides = set(self._tree.deciding(searcher).tolist())
    entries, unknown = read_blueprint(histories, blueprint)
    start = time.perf_counter()
    barred = _barred(self._tree, entries, unknown, searcher)
    play = Play(self._tree.reach(entries), barred=barred)
    # By the index of a public state: the policy after that state was re-solved. `NONE` has the first blueprint.
    self._solved = {NONE: ForestBlueprint(self._tree, entries, searcher, play)}
    _ = self._solved[NONE].counterfactual_values
    self._reserve = 2 * (time.perf_counter() - start)

  @property
  def size(self) -> int:
    """The approximate count of numbers that the object keeps."""
    histories = self._tree.histories
    # Both players' ranges, and the opponent's values, gifts and probabilities.
    rows = 3 * sum(len(forest.above) for forest in self._tree.forests)
    return 12 * len(histories.parent) + len(self._solved) * (2 * histories.num_entries + rows)

  def policy(self, history: list[int], choose: Choose, deadline: float) -> list[tuple[int, float]]:
    """Returns the strategy at a decision of the searcher, after re-solving its earlier decisions on the path.

    Args:
      history: the moves that lead to the decision.
      choose: chooses the gadget and the solver of a subgame. If the blueprint has no answer to an action of the
        opponent, "follow" replaces the chosen gadget.
      deadline: the time, by `time.perf_counter`, by which all these decisions should be re-solved.
    """
    histories, last = self._tree.histories, NONE
    path = histories.path(history)
    indices = [int(self._tree.state_of[node]) for node in path]
    pending = [each for each in indices if each in self._decides and each not in self._solved]
    for index in indices:
      if index in pending:
        before, now = self._solved[last], time.perf_counter()
        until = now + (deadline - now) / (len(pending) - pending.index(index)) - self._reserve
        gadget, solver = choose(self._num_sequences(index), until)
        if before.is_open(index):
          gadget = GADGETS["follow"]
        after, step = search_step(before, [self._tree[index]], gadget, solver)
        # Earlier gifts were measured against values of an earlier policy, so they do not count.
        self._solved[index] = after.with_gifts_from(step.length)
      if index in self._solved:
        last = index
    span = _entries_of(histories, int(histories.infoset[path[-1]]))
    legal = np.concatenate(histories.actions)[span]
    return list(zip(legal.tolist(), self._solved[last].entries[span].tolist(), strict=True))

  def _num_sequences(self, number: int) -> int:
    """Returns the number of sequences in the linear program of a subgame, the gadget's included."""
    tree, result = self._tree, 0
    for player, forest in enumerate(tree.forests):
      inside = forest.tops(tree.rows(number, player)) != NONE
      result += int(np.count_nonzero(inside[forest.deciding[forest.infosets.entries]]))
    return result + tree.num_private_states(number)[1 - self._searcher]


def read_blueprint(histories: HistoryTree, blueprint: PolicyReader) -> tuple[Float64s, Bools]:
  """Returns a policy as probabilities of entries, and whether each infoset is unknown to the policy.

  Unknown infosets have uniform probabilities.
  """
  legal, above = np.concatenate(histories.actions), histories.infoset_of_entry
  entries, unknown = 1 / histories.num_actions[above], np.zeros(len(histories.owner), bool)
  policy = blueprint.policy
  if isinstance(policy, CompiledTabularPolicy) and not policy.compiled_game.view.has_own_names:
    names = itertools.chain(*histories.names)
    rows = np.array([policy.state_lookup.get(name, NONE) for name in names])
    unknown = rows == NONE
    table: Float64s = policy.action_probability_array
    # The table may belong to a game with fewer actions.
    most = table.shape[1] - 1
    chances = np.where(legal > most, 0.0, table[rows[above], np.minimum(legal, most)])
    entries = np.where(unknown[above], entries, chances)
  else:
    nodes = np.flatnonzero(histories.mover >= 0)
    infosets, firsts = np.unique(histories.infoset[nodes], return_index=True)
    for infoset, node in zip(infosets.tolist(), nodes[firsts].tolist(), strict=True):
      strategy = blueprint.look_up(histories.state(node), int(histories.owner[infoset]))
      unknown[infoset] = strategy is None
      if strategy is not None:
        span = _entries_of(histories, infoset)
        entries[span] = [strategy.get(action, 0.0) for action in legal[span].tolist()]
  off = np.abs(np.add.reduceat(entries, histories.first_entry) - 1)
  bad = ~(off < 1e-9) | (np.minimum.reduceat(entries, histories.first_entry) < 0)
  for infoset in np.flatnonzero(bad).tolist():
    span = _entries_of(histories, infoset)
    strategy = dict(zip(legal[span].tolist(), entries[span].tolist(), strict=True))
    distribution(
      strategy, list(strategy), f"At infostate {histories.infostate(infoset)!r} the blueprint"
    )
  return entries, unknown


def _entries_of(histories: HistoryTree, infoset: int) -> slice:
  begin = int(histories.first_entry[infoset])
  return slice(begin, begin + int(histories.num_actions[infoset]))


def _barred(tree: ListedTree, entries: Float64s, unknown: Bools, searcher: int) -> Bools | None:
  """Returns the opponent's actions to which the blueprint has no answer; None if it answers all."""
  histories, forest = tree.histories, tree.forests[1 - searcher]
  reached = histories.chance * tree.reach(entries)[searcher][tree.row_of[searcher]] > 0
  asked = np.flatnonzero((histories.mover == searcher) & unknown[histories.infoset] & reached)
  if not len(asked):
    return None
  barred, lost = np.zeros(histories.num_entries, bool), np.zeros(len(forest.above), bool)
  lost[tree.row_of[1 - searcher, asked]] = True
  for level in reversed(forest.levels):
    lost[forest.above[level.passing[lost[level.passing]]]] = True
    barred[forest.entry[level.moved[lost[level.moved]]]] = True
    if len(level.entries):
      no_other = np.logical_and.reduceat(barred[level.entries], level.starts)
      lost[level.deciding[no_other]] = True
  if lost[: forest.begins[1]].any():
    name = histories.infostate(int(histories.infoset[asked[0]]))
    raise errors.PolicyError(
      f"The blueprint plays to infostate {name!r} of player {searcher}, and has no probabilities there."
    )
  return barred
