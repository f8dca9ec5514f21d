"""The content of a page for a game whose histories are listed.

With pi_i the probability that player i plays to a history, pi_c chance's, and u_i(h) what i expects from history h on:
an infoset I of player i is reached counterfactually with the sum over its histories of pi_c times all other players'
pi_j, and its action a is worth, to whoever stands there,

    q(I, a) = sum over h in I of pi_-i(h) u_i(ha) / sum over h in I of pi_-i(h)

(Zinkevich et al., "Regret Minimization in Games with Incomplete Information", 2007, without the weight of the reach).
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
  Tree,
  kept_tree,
  number_name,
)
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.history_walk import HistoryWalk
from spiel_cfr.games.openspiel.history_list import CHANCE, NONE
from spiel_cfr.policies import forms


def likeliest(weights: Float64s, most: int) -> Int64s:
  """Returns the places of the largest weights in ascending order; of equal ones, the first."""
  return np.sort(np.argsort(-weights, kind="stable")[:most])


def describe(
  compiled: CompiledGame,
  behavioral: Float64s,
  *,
  max_nodes: int,
  max_infosets: int,
  max_histories: int,
  below: Iterable[Any] | None = None,
) -> Content:
  """Describes a policy of an enumerated game; the header says what was left out.

  Args:
    compiled: the game.
    behavioral: the policy in behavioural form, shape (sequences,).
    max_nodes: how many histories are walked.
    max_infosets: how many infosets the page may have: the likeliest.
    max_histories: how many histories: the likeliest.
    below: states of OpenSpiel's: only histories that lead to one of them, or follow it. By default, all.

  Raises:
    ArgumentError: `below` has none, or one of another game.
    GameTooLargeError: there are more histories than `max_nodes`.
    InconsistentInfosetError: the game is not the one that was compiled.
  """
  walk = HistoryWalk(compiled, max_nodes)
  probabilities = walk.probabilities(behavioral)
  reach, values = walk.reach(probabilities), walk.values(probabilities)
  of_infosets, of_actions = _infosets(compiled, walk, behavioral, reach, values)
  num_actions, played_to = of_infosets["num_actions"], of_infosets["reach"]

  starts = np.cumsum(num_actions) - num_actions
  infoset = np.searchsorted(starts, walk.entry, side="right") - 1
  is_shown = np.ones(len(reach), bool) if below is None else _through(compiled, walk, below)
  has_shown = np.zeros(len(num_actions), bool)
  has_shown[infoset[is_shown & (walk.mover >= 0)]] = True
  num_shown, num_rows = int(is_shown.sum()), int(has_shown.sum())
  weights = played_to + 1e-9 * of_infosets["counterfactual_reach"]
  rows = likeliest(np.where(has_shown, weights, -1.0), min(max_infosets, num_rows))
  row_of_infoset = np.full(len(num_actions), NONE)
  row_of_infoset[rows] = np.arange(len(rows))
  # No history is likelier than its parent, so those that are kept are a tree.
  kept = likeliest(np.where(is_shown, reach, -1.0), min(max_histories, num_shown))
  first_child, num_children, num_cut = kept_tree(walk.parent, kept)

  names = {"": 0}
  moves, known = _moves(compiled, walk, kept, names)
  entries = concatenated_ranges(starts[rows], num_actions[rows])
  # Of infosets none of whose histories is kept, actions go by their numbers.
  unnamed = np.concatenate(compiled.actions)
  infoset_moves = [
    known[entry] if entry in known else number_name(names, str(unnamed[entry]))
    for entry in entries.tolist()
  ]
  cut = []
  if num_shown < len(reach):
    cut.append(
      f"{len(reach) - num_shown:,} of {len(reach):,} histories, which do not go through the public state of this page"
    )
  if len(kept) < num_shown:
    cut.append(
      f"{num_shown - len(kept):,} of {num_shown:,} histories; the likeliest {len(kept):,} are here"
    )
  if len(rows) < num_rows:
    share = played_to[rows].sum() / max(played_to[has_shown].sum(), 1e-300)
    cut.append(
      f"{num_rows - len(rows):,} of {num_rows:,} infosets; the likeliest {len(rows):,} are here, "
      f"which hold {share:z.2%} of all decisions that are played"
    )
  all_infostates = [infostate for own in compiled.infostates for infostate in own]
  infostates = [all_infostates[row] for row in rows.tolist()]
  decides = walk.mover[kept] >= 0
  row = np.full(len(kept), NONE)
  row[decides] = row_of_infoset[infoset[kept][decides]]
  tree = Tree(
    mover=walk.mover[kept],
    first_child=first_child,
    num_children=num_children,
    num_cut=num_cut,
    move=moves,
    probability=probabilities[kept],
    values=values[kept],
    row=row,
  )
  num_histories = np.bincount(infoset[walk.mover >= 0], minlength=len(starts))
  return Content(
    header={"cut": cut},
    names=list(names),
    tree=tree,
    infosets=InfosetTable(
      infostates=infostates,
      labels=infoset_labels(
        tree, list(names), infostates, of_infosets["player"][rows], num_histories[rows]
      ),
      move=np.array(infoset_moves, np.int64),
      **{name: array[rows] for name, array in of_infosets.items()},
      **{name: array[entries] for name, array in of_actions.items()},
    ),
  )


def _through(compiled: CompiledGame, walk: HistoryWalk, goals: Iterable[Any]) -> Bools:
  """Returns which histories lead to one of these states, or follow it."""
  before, after = np.zeros((2, len(walk.mover)), bool)
  for goal in goals:
    compiled.view.check_state(goal)
    state, node = compiled.view.new_initial_state(), 0
    for action in goal.history():
      legal = _legal(compiled, walk, state, node)
      if action not in legal:
        raise errors.ArgumentError(f"The history [{goal.history_str()}] is none of {compiled}.")
      before[node] = True
      node = int(walk.first_child[node]) + legal.index(action)
      state.apply_action(action)
    after[node] = True
  if not after.any():
    raise errors.ArgumentError("below has no states: nothing would be on the page.")
  for level in walk.levels[1:]:
    after[level] |= after[walk.parent[level]]
  return before | after


def _legal(compiled: CompiledGame, walk: HistoryWalk, state: Any, node: int) -> list[int]:
  """Returns the moves to the children of a node, in order."""
  if walk.mover[node] == CHANCE:
    return [action for action, _ in compiled.view.chance_outcomes(state)]
  return compiled.view.legal_actions(state) if walk.mover[node] >= 0 else []


def _infosets(
  compiled: CompiledGame, walk: HistoryWalk, behavioral: Float64s, reach: Float64s, values: Float64s
) -> tuple[dict[str, Any], dict[str, Any]]:
  """Returns the columns of `InfosetTable` of all infosets, and of all actions."""
  num_actions = np.concatenate(compiled.num_actions)
  starts = np.cumsum(num_actions) - num_actions
  player = np.repeat(
    np.arange(compiled.num_players), [len(counts) for counts in compiled.num_actions]
  )
  responses = evaluate.evaluate(
    compiled, forms.sequence_form(compiled, behavioral), responses=True
  ).best_responses
  own_reach, counterfactual_reach = np.zeros((2, len(num_actions)))
  best_sum = np.zeros(len(num_actions))
  action_sum = np.zeros(num_actions.sum())
  probabilities = walk.probabilities(behavioral)
  for mover, treeplex in enumerate(compiled.treeplexes):
    own = np.flatnonzero(walk.mover == mover)
    others = walk.reach(probabilities, mover)
    infoset = np.searchsorted(starts, walk.entry[own], side="right") - 1
    np.add.at(own_reach, infoset, reach[own])
    np.add.at(counterfactual_reach, infoset, others[own])
    counts = walk.num_children[own]
    np.add.at(
      action_sum,
      concatenated_ranges(walk.entry[own], counts),
      np.repeat(others[own], counts) * values[walk.children(own), mover],
    )
    responding = behavioral.copy()
    responding[treeplex.root : treeplex.end] = responses[treeplex.root : treeplex.end]
    best = walk.values(walk.probabilities(responding))[:, mover]
    np.add.at(best_sum, infoset, others[own] * best[own])
  played = behavioral[compiled.all_action_sequences]
  with np.errstate(invalid="ignore"):
    action_value = action_sum / np.repeat(counterfactual_reach, num_actions)
    best_value = best_sum / counterfactual_reach
  value = np.add.reduceat(played * action_value, starts) if len(starts) else np.zeros(0)
  of_infosets = {
    "player": player,
    "num_actions": num_actions,
    "reach": own_reach,
    "counterfactual_reach": counterfactual_reach,
    "value": value,
    "best_value": best_value,
  }
  is_best = responses[compiled.all_action_sequences] > 0
  return of_infosets, {"probability": played, "action_value": action_value, "is_best": is_best}


def _moves(
  compiled: CompiledGame, walk: HistoryWalk, kept: Int64s, names: dict[str, int]
) -> tuple[Int64s, dict[int, int]]:
  """Names the moves that lead to the kept nodes, and the actions of infosets that are met on the way.

  Returns:
    The numbers of the names, shape (kept,); and of the actions, by their place among those of all infosets.
  """
  namer = MoveNames(compiled.game)
  number = np.full(len(walk.mover), NONE)
  number[kept] = np.arange(len(kept))
  of_entry: dict[int, int] = {}
  result = np.zeros(len(kept), np.int64)
  stack = [(compiled.view.new_initial_state(), 0)]
  while stack:
    state, node = stack.pop()
    first, entry = int(walk.first_child[node]), int(walk.entry[node])
    for place, action in enumerate(_legal(compiled, walk, state, node)):
      child = int(number[first + place])
      if entry >= 0 and entry + place not in of_entry:
        of_entry[entry + place] = number_name(names, namer.name(state, action))
      if child >= 0:
        result[child] = (
          of_entry[entry + place] if entry >= 0 else number_name(names, namer.name(state, action))
        )
        stack.append((state.child(action), first + place))
  return result, of_entry
