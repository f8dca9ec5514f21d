"""Content of a page that lists histories: a tree of histories, and a table of infosets with the values of actions.

Let pi_-i(h) be the reach probability of history h by chance and all players except i, and u_i(h) player i's expected
payoff from h on. The counterfactual reach of an infoset I of player i is the sum of pi_-i over its histories. The value
of action a to its owner at I is

    q(I, a) = sum over h in I of pi_-i(h) u_i(ha) / sum over h in I of pi_-i(h),

the counterfactual value of Zinkevich et al., "Regret Minimization in Games with Incomplete Information" (2007), divided
by the counterfactual reach.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s, Int64s, concatenated_ranges
from spiel_cfr.evaluation import evaluate
from spiel_cfr.explorer.infoset_labels import infoset_labels
from spiel_cfr.explorer.move_names import MoveNames
from spiel_cfr.explorer.page_content import (
  Content,
  InfosetTable,
  PageTree,
  kept_tree,
  number_name,
)
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.history_walk import HistoryWalk
from spiel_cfr.games.openspiel.checked_calls import CHANCE
from spiel_cfr.games.openspiel.history_list import NONE
from spiel_cfr.policies import forms


def describe(
  compiled: CompiledGame,
  behavioral: Float64s,
  *,
  max_nodes: int,
  max_infosets: int,
  max_histories: int,
  below: Iterable[Any] | None = None,
  labels_by_moves: bool = True,
) -> Content:
  """Returns the content of a page; its header names the parts left out.

  Args:
    compiled: the game.
    behavioral: the policy in behavioral form, shape (sequences,).
    max_nodes: the largest number of histories that the game may have.
    max_infosets: the largest number of infosets on the page. If there are more, the likeliest are shown.
    max_histories: the largest number of histories on the page. If there are more, the likeliest are shown.
    below: OpenSpiel states. The page shows only histories that lead to one of these states or follow it. None shows
      all histories.
    labels_by_moves: whether the label of an infoset consists of the moves that its histories share, where they identify
      the infoset. Otherwise it consists of parts of the infostate.

  Raises:
    ArgumentError: `below` is empty, or has a state of another game.
    GameTooLargeError: the game has more than `max_nodes` histories.
    InconsistentInfosetError: the compiled game differs from its OpenSpiel game.
  """
  walk = HistoryWalk(compiled, max_nodes)
  probabilities = walk.probabilities(behavioral)
  reach, values = walk.reach(probabilities), walk.values(probabilities)
  of_infosets, of_actions = _infosets(compiled, walk, behavioral, reach, values)
  num_actions = of_infosets["num_actions"]
  starts = np.cumsum(num_actions) - num_actions
  decides = walk.mover >= 0
  # The infoset of each history; not meaningful at chance and terminal nodes.
  infoset = np.searchsorted(starts, walk.entry, side="right") - 1
  is_wanted = np.ones(len(reach), bool) if below is None else _through(compiled, walk, below)
  is_infoset_wanted = np.zeros(len(num_actions), bool)
  is_infoset_wanted[infoset[is_wanted & decides]] = True
  # A history is at most as likely as its parent, so the kept histories are a tree.
  kept = likeliest(reach, is_wanted, max_histories)
  # The small term orders infosets that the policy never reaches: first those that their owner alone avoids.
  weights = of_infosets["reach"] + 1e-9 * of_infosets["counterfactual_reach"]
  kept_infosets = likeliest(weights, is_infoset_wanted, max_infosets)

  names = {"": 0}
  moves, name_of_entry = _moves(compiled, walk, kept, names)
  row_of_infoset = np.full(len(num_actions), NONE)
  row_of_infoset[kept_infosets] = np.arange(len(kept_infosets))
  row = np.full(len(kept), NONE)
  row[decides[kept]] = row_of_infoset[infoset[kept][decides[kept]]]
  first_child, num_children, num_cut = kept_tree(walk.parent, kept)
  tree = PageTree(
    mover=walk.mover[kept],
    first_child=first_child,
    num_children=num_children,
    num_cut=num_cut,
    move=moves,
    probability=probabilities[kept],
    values=values[kept],
    row=row,
  )
  entries = concatenated_ranges(starts[kept_infosets], num_actions[kept_infosets])
  infoset_moves = _infoset_moves(compiled, entries, name_of_entry, names)
  all_infostates = [infostate for infostates in compiled.infostates for infostate in infostates]
  infostates = [all_infostates[number] for number in kept_infosets.tolist()]
  num_histories = np.bincount(infoset[decides], minlength=len(starts))
  labels = infoset_labels(
    tree,
    list(names),
    infostates,
    of_infosets["player"][kept_infosets],
    num_histories[kept_infosets],
    labels_by_moves,
  )
  return Content(
    header={
      "cut": _left_out(is_wanted, kept, of_infosets["reach"], is_infoset_wanted, kept_infosets)
    },
    names=list(names),
    tree=tree,
    infosets=InfosetTable(
      infostates=infostates,
      labels=labels,
      move=infoset_moves,
      **{name: array[kept_infosets] for name, array in of_infosets.items()},
      **{name: array[entries] for name, array in of_actions.items()},
    ),
  )


def likeliest(weights: Float64s, is_wanted: Bools, most: int) -> Int64s:
  """Returns the likeliest of the wanted histories or infosets, in ascending order; of equal ones, the first.

  Args:
    weights: float64 (all,). The weight of each history or infoset.
    is_wanted: bool (all,). True for histories or infosets that belong on the page, if there is room.
    most: the largest number of histories or infosets on the page.
  """
  order = np.argsort(-np.where(is_wanted, weights, -1.0), kind="stable")
  return np.sort(order[: min(most, int(is_wanted.sum()))])


def _infoset_moves(
  compiled: CompiledGame, entries: Int64s, name_of_entry: dict[int, int], names: dict[str, int]
) -> Int64s:
  """Returns the names of actions as indices of `Content.names`, int64 (entries,).

  Args:
    compiled: the game.
    entries: int64 (entries,). The actions, as indices of the actions of all infosets.
    name_of_entry: entry -> index of its name, for the actions at kept histories. Any other action is named by its
      number in OpenSpiel.
    names: name -> its index. New names are added.
  """
  actions = np.concatenate(compiled.actions)
  return np.array(
    [
      name_of_entry[entry] if entry in name_of_entry else number_name(names, str(actions[entry]))
      for entry in entries.tolist()
    ],
    np.int64,
  )


def _left_out(
  is_wanted: Bools,
  kept: Int64s,
  infoset_reach: Float64s,
  is_infoset_wanted: Bools,
  kept_infosets: Int64s,
) -> list[str]:
  """Returns descriptions of the histories and infosets that a page leaves out.

  Args:
    is_wanted: bool (histories,). True for histories that lead to the states of the page or follow them.
    kept: int64 (kept,). The histories on the page.
    infoset_reach: float64 (infosets,). The reach probability of each infoset.
    is_infoset_wanted: bool (infosets,). True for infosets of wanted histories.
    kept_infosets: int64 (kept,). The infosets on the page.
  """
  cut = []
  num_histories, num_wanted, num_kept = len(is_wanted), int(is_wanted.sum()), len(kept)
  if num_wanted < num_histories:
    cut.append(
      f"{num_histories - num_wanted:,} of {num_histories:,} histories, because they do not go through the states that "
      "were chosen for this page"
    )
  if num_kept < num_wanted:
    cut.append(
      f"{num_wanted - num_kept:,} of {num_wanted:,} histories (this page has the {num_kept:,} likeliest)"
    )
  num_infosets, num_kept_infosets = int(is_infoset_wanted.sum()), len(kept_infosets)
  if num_kept_infosets < num_infosets:
    # The reach probabilities of infosets sum to the expected number of decisions in play.
    share = infoset_reach[kept_infosets].sum() / max(infoset_reach[is_infoset_wanted].sum(), 1e-300)
    cut.append(
      f"{num_infosets - num_kept_infosets:,} of {num_infosets:,} infosets (this page has the {num_kept_infosets:,} "
      f"likeliest, at which {share:z.2%} of all decisions in play are made)"
    )
  return cut


def _through(compiled: CompiledGame, walk: HistoryWalk, goals: Iterable[Any]) -> Bools:
  """Returns True for the histories that lead to one of some states or follow it, bool (nodes,).

  Args:
    compiled: the game.
    walk: the histories of the game.
    goals: OpenSpiel states, the argument `below`.

  Raises:
    ArgumentError: there are no states, or a state is not in the game.
  """
  before, after = np.zeros((2, len(walk.mover)), bool)
  for goal in goals:
    compiled.view.check_state(goal)
    state, node = compiled.view.new_initial_state(), 0
    for action in goal.history():
      legal = _legal(compiled, walk, state, node)
      if action not in legal:
        raise errors.ArgumentError(
          f"below has a state with the history [{goal.history_str()}], which {compiled} does not have. Give states of "
          "this game."
        )
      before[node] = True
      node = int(walk.first_child[node]) + legal.index(action)
      state.apply_action(action)
    after[node] = True
  if not after.any():
    raise errors.ArgumentError(
      "below is an empty list, so the page would be empty. Give at least one state, or None for the whole game."
    )
  for level in walk.levels[1:]:
    after[level] |= after[walk.parent[level]]
  return before | after


def _legal(compiled: CompiledGame, walk: HistoryWalk, state: Any, node: int) -> list[int]:
  """Returns the moves at a node, one for each child and in the order of the children."""
  if walk.mover[node] == CHANCE:
    return [action for action, _ in compiled.view.chance_outcomes(state)]
  return compiled.view.legal_actions(state) if walk.mover[node] >= 0 else []


def _infosets(
  compiled: CompiledGame, walk: HistoryWalk, behavioral: Float64s, reach: Float64s, values: Float64s
) -> tuple[dict[str, Any], dict[str, Any]]:
  """Returns the columns of `InfosetTable` for all infosets of the game, in two dictionaries.

  The first has the columns with a row for each infoset, the second those with a row for each action.

  Args:
    compiled: the game.
    walk: the histories of the game.
    behavioral: the policy in behavioral form, shape (sequences,).
    reach: float64 (nodes,). The reach probability of each history.
    values: float64 (nodes, players). The expected payoff of each player from a history on.
  """
  num_actions = np.concatenate(compiled.num_actions)
  starts = np.cumsum(num_actions) - num_actions
  player = np.repeat(
    np.arange(compiled.num_players), [len(counts) for counts in compiled.num_actions]
  )
  responses = evaluate.evaluate(
    compiled, forms.sequence_form(compiled, behavioral), responses=True
  ).best_responses
  infoset_reach, counterfactual_reach = np.zeros((2, len(num_actions)))
  best_sum = np.zeros(len(num_actions))
  action_sum = np.zeros(num_actions.sum())
  probabilities = walk.probabilities(behavioral)
  for mover, treeplex in enumerate(compiled.treeplexes):
    nodes = np.flatnonzero(walk.mover == mover)
    reach_of_others = walk.reach(probabilities, mover)[nodes]
    infoset = np.searchsorted(starts, walk.entry[nodes], side="right") - 1
    np.add.at(infoset_reach, infoset, reach[nodes])
    np.add.at(counterfactual_reach, infoset, reach_of_others)
    counts = walk.num_children[nodes]
    np.add.at(
      action_sum,
      concatenated_ranges(walk.entry[nodes], counts),
      np.repeat(reach_of_others, counts) * values[walk.children(nodes), mover],
    )
    with_response = behavioral.copy()
    with_response[treeplex.root : treeplex.end] = responses[treeplex.root : treeplex.end]
    best_values = walk.values(walk.probabilities(with_response))[:, mover]
    np.add.at(best_sum, infoset, reach_of_others * best_values[nodes])
  strategy = behavioral[compiled.all_action_sequences]
  with np.errstate(invalid="ignore"):
    action_value = action_sum / np.repeat(counterfactual_reach, num_actions)
    best_value = best_sum / counterfactual_reach
  value = np.add.reduceat(strategy * action_value, starts) if len(starts) else np.zeros(0)
  of_infosets = {
    "player": player,
    "num_actions": num_actions,
    "reach": infoset_reach,
    "counterfactual_reach": counterfactual_reach,
    "value": value,
    "best_value": best_value,
  }
  is_best = responses[compiled.all_action_sequences] > 0
  return of_infosets, {"probability": strategy, "action_value": action_value, "is_best": is_best}


def _moves(
  compiled: CompiledGame, walk: HistoryWalk, kept: Int64s, names: dict[str, int]
) -> tuple[Int64s, dict[int, int]]:
  """Returns the names of the moves that lead to the kept nodes, and of the actions at the infosets of kept nodes.

  Args:
    compiled: the game.
    walk: the histories of the game.
    kept: int64 (kept,). The nodes on the page, in ascending order.
    names: name -> its index in `Content.names`. New names are added.

  Returns:
    int64 (kept,), the move to each kept node, as an index of `Content.names`; and a dictionary: entry of an action ->
    index of its name.
  """
  namer = MoveNames(compiled.game)
  kept_index = np.full(len(walk.mover), NONE)
  kept_index[kept] = np.arange(len(kept))
  name_of_entry: dict[int, int] = {}
  result = np.zeros(len(kept), np.int64)
  stack = [(compiled.view.new_initial_state(), 0)]
  while stack:
    state, node = stack.pop()
    first, entry = int(walk.first_child[node]), int(walk.entry[node])
    for index, action in enumerate(_legal(compiled, walk, state, node)):
      is_decision = entry >= 0
      if is_decision and entry + index not in name_of_entry:
        name_of_entry[entry + index] = number_name(names, namer.name(state, action))
      child = int(kept_index[first + index])
      if child == NONE:
        continue
      if is_decision:
        result[child] = name_of_entry[entry + index]
      else:
        result[child] = number_name(names, namer.name(state, action))
      stack.append((state.child(action), first + index))
  return result, name_of_entry
