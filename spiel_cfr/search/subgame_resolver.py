"""Continual re-solving below one public state, for one player: each decision starts from the latest solution."""

import time

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s
from spiel_cfr.bots import PolicyReader
from spiel_cfr.games.openspiel.history_list import NONE
from spiel_cfr.search.blueprint_arrays import read_blueprint
from spiel_cfr.search.forest_tree import EvaluatedForestPolicy
from spiel_cfr.search.gadgets import GADGETS
from spiel_cfr.search.game_search import SearchOptions
from spiel_cfr.search.history_tree import HistoryTree
from spiel_cfr.search.listed_tree import ListedTree
from spiel_cfr.search.search_step import search_step


class SubgameResolver:
  """The subgame below a public state, and the solutions at decisions in it. Each decision is re-solved once."""

  def __init__(
    self,
    histories: HistoryTree,
    blueprint: PolicyReader,
    searcher: int,
    options: SearchOptions,
  ) -> None:
    """Reads the blueprint.

    Args:
      histories: the histories of the subgame.
      blueprint: the blueprint.
      searcher: the player who searches.
      options: the gadgets and solvers of subgames. If the blueprint has no answer to an action of the opponent,
        "follow" replaces the chosen gadget.

    Raises:
      PolicyError: the opponent cannot avoid an infoset of the searcher at which the blueprint has no probabilities.
    """
    self._tree, self._searcher, self._options = ListedTree(None, histories), searcher, options
    self._decision_states = set(self._tree.decision_states(searcher).tolist())
    policy, unknown = read_blueprint(histories, blueprint)
    start = time.perf_counter()
    unanswered = _unanswered_actions(self._tree, policy, unknown, searcher)
    # By the index of a public state: the policy after that state was re-solved. `NONE` has the first blueprint.
    first = EvaluatedForestPolicy(self._tree, policy, searcher, unanswered=unanswered)
    self._solved = {NONE: first}
    _ = first.counterfactual_values
    # The time that checking margins takes, by the time of these values.
    self._reserve = 2 * (time.perf_counter() - start)

  @property
  def size(self) -> int:
    """The approximate count of numbers that the object keeps."""
    histories = self._tree.histories
    # Both players' ranges, and the opponent's values, gifts and probabilities.
    rows = 3 * sum(len(forest.above) for forest in self._tree.forests)
    return 12 * len(histories.parent) + len(self._solved) * (2 * histories.num_entries + rows)

  def policy(self, history: list[int], deadline: float) -> list[tuple[int, float]]:
    """Returns the strategy at a decision of the searcher, after re-solving its earlier decisions on the path.

    Args:
      history: the moves that lead to the decision.
      deadline: the time, by `time.perf_counter`, by which all these decisions should be re-solved.
    """
    histories, latest = self._tree.histories, NONE
    path = histories.path(history)
    indices = [int(self._tree.state_of[node]) for node in path]
    pending = [
      index for index in indices if index in self._decision_states and index not in self._solved
    ]
    for index in indices:
      if index in pending:
        now = time.perf_counter()
        share = (deadline - now) / (len(pending) - pending.index(index))
        self._resolve(index, self._solved[latest], now + share - self._reserve)
      if index in self._solved:
        latest = index
    span = histories.entries_of(int(histories.infoset[path[-1]]))
    legal = np.concatenate(histories.actions)[span]
    return list(zip(legal.tolist(), self._solved[latest].policy[span].tolist(), strict=True))

  def _resolve(self, index: int, before: EvaluatedForestPolicy, deadline: float) -> None:
    """Re-solves a public state from the latest policy."""
    gadget, solver = self._options.choose(self._num_sequences(index), deadline)
    if before.has_unanswered(index):
      gadget = GADGETS["follow"]
    after, step = search_step(before, [self._tree[index]], gadget, solver)
    # Earlier gifts were measured against values of an earlier policy, so they do not count.
    self._solved[index] = after.with_gifts_from(step.min_depth)

  def _num_sequences(self, index: int) -> int:
    """Returns the number of sequences in the linear program of a subgame, the gadget's included."""
    tree, result = self._tree, 0
    for player, forest in enumerate(tree.forests):
      inside = forest.subtree_roots(tree.rows(index, player)) != NONE
      result += int(np.count_nonzero(inside[forest.row_of_slot[forest.infosets.slots]]))
    return result + tree.num_private_states(index)[1 - self._searcher]


def _unanswered_actions(
  tree: ListedTree, policy: Float64s, unknown: Bools, searcher: int
) -> Bools | None:
  """Returns True at actions of the opponent to which the blueprint has no answer; None if it answers all.

  An action has no answer if the searcher may afterwards come to an infoset that the blueprint does not know, whatever
  the opponent plays.

  Args:
    tree: the public states.
    policy: float64 (slots,). The blueprint, uniform at infosets that it does not know.
    unknown: bool (infosets,). True at infosets that the blueprint does not know.
    searcher: the player who searches.

  Raises:
    PolicyError: the opponent cannot avoid an unknown infoset.
  """
  histories, forest = tree.histories, tree.forests[1 - searcher]
  is_reached = histories.chance * tree.reach(policy)[searcher][tree.row_of[searcher]] > 0
  is_unknown = (histories.mover == searcher) & unknown[histories.infoset] & is_reached
  unknown_nodes = np.flatnonzero(is_unknown)
  if not len(unknown_nodes):
    return None
  unanswered = np.zeros(histories.num_entries, bool)
  # By row of the opponent: whether an unknown infoset may follow, whatever the opponent does.
  leads_there = np.zeros(len(forest.above), bool)
  leads_there[tree.row_of[1 - searcher, unknown_nodes]] = True
  for level in reversed(forest.levels):
    leads_there[forest.above[level.passing[leads_there[level.passing]]]] = True
    unanswered[forest.slot[level.moved[leads_there[level.moved]]]] = True
    if len(level.slots):
      has_no_other = np.logical_and.reduceat(unanswered[level.slots], level.starts)
      leads_there[level.infoset_rows[has_no_other]] = True
  if leads_there[: forest.begins[1]].any():
    name = histories.infostate(int(histories.infoset[unknown_nodes[0]]))
    raise errors.PolicyError(
      f"The blueprint plays to infostate {name!r} of player {searcher}, and has no probabilities there."
    )
  return unanswered
