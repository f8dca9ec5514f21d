"""The content of a page for a game whose histories are listed.

With pi_i the probability that player i plays to a history, pi_c chance's, and u_i(h) what i expects from history h on:
an infoset I of player i is reached counterfactually with the sum over its histories of pi_c times all other players'
pi_j, and its action a is worth, to whoever stands there,

    q(I, a) = sum over h in I of pi_-i(h) u_i(ha) / sum over h in I of pi_-i(h)

(Zinkevich et al., "Regret Minimization in Games with Incomplete Information", 2007, without the weight of the reach).
"""

from typing import Any

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s, spread
from spiel_cfr.evaluation import evaluate
from spiel_cfr.explorer.page_content import (
  Content,
  InfosetTable,
  Tree,
  kept_tree,
  move_name,
  number_name,
)
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.history_walk import CHANCE, NONE, HistoryWalk
from spiel_cfr.games.openspiel import histories
from spiel_cfr.games.openspiel.state_checks import chance_outcomes
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
) -> Content:
  """Describes a policy of an enumerated game; the header says what was left out.

  Args:
    compiled: the game.
    behavioral: the policy in behavioural form, shape (sequences,).
    max_nodes: how many histories are walked.
    max_infosets: how many infosets the page may have: the likeliest.
    max_histories: how many histories: the likeliest.

  Raises:
    GameTooLargeError: there are more histories than `max_nodes`.
    InconsistentInfosetError: the game is not the one that was compiled.
  """
  found, _ = histories.compile_histories(
    compiled.view, compiled.infostates, compiled.actions, compiled.num_actions, max_nodes
  )
  walk = HistoryWalk(compiled, found)
  probabilities = walk.probabilities(behavioral)
  reach, values = walk.reach(probabilities), walk.values(probabilities)
  table = _infosets(compiled, walk, behavioral, reach, values)

  rows = likeliest(table.reach + 1e-9 * table.counterfactual_reach, max_infosets)
  row_of_infoset = np.full(len(table.player), NONE)
  row_of_infoset[rows] = np.arange(len(rows))
  # No history is likelier than its parent, so those that are kept are a tree.
  kept = likeliest(reach, max_histories)
  number = np.full(len(reach), NONE)
  number[kept] = np.arange(len(kept))
  first_child, num_children, num_cut = kept_tree(walk.parent, kept)

  starts = np.cumsum(table.num_actions) - table.num_actions
  infoset = np.searchsorted(starts, walk.entry[kept], side="right") - 1
  names = {"": 0}
  moves, entry_moves = _moves(compiled, walk, kept, number, names)
  tree = Tree(
    mover=walk.mover[kept],
    first_child=first_child,
    num_children=num_children,
    num_cut=num_cut,
    move=moves,
    probability=probabilities[kept],
    values=values[kept],
    row=np.where(walk.mover[kept] >= 0, row_of_infoset[infoset], NONE),
  )
  entries = spread(starts[rows], table.num_actions[rows])
  # May name actions of infosets none of whose histories is kept, so that names are listed after it.
  infoset_moves = np.array([entry_moves(entry) for entry in entries.tolist()], np.int64)
  cut = []
  if len(kept) < len(reach):
    cut.append(
      f"{len(reach) - len(kept):,} of {len(reach):,} histories; the likeliest {len(kept):,} are here"
    )
  if len(rows) < len(table.player):
    cut.append(
      f"{len(table.player) - len(rows):,} of {len(table.player):,} infosets; the likeliest {len(rows):,} are here, "
      f"which hold {table.reach[rows].sum() / max(table.reach.sum(), 1e-300):.2%} of all decisions that are played"
    )
  return Content(
    header={"cut": cut},
    names=list(names),
    tree=tree,
    infosets=InfosetTable(
      infostates=[table.infostates[row] for row in rows.tolist()],
      **{
        name: getattr(table, name)[rows]
        for name in (
          "player",
          "num_actions",
          "reach",
          "counterfactual_reach",
          "value",
          "best_value",
        )
      },
      move=infoset_moves,
      **{
        name: getattr(table, name)[entries] for name in ("probability", "action_value", "is_best")
      },
    ),
  )


def _infosets(
  compiled: CompiledGame, walk: HistoryWalk, behavioral: Float64s, reach: Float64s, values: Float64s
) -> InfosetTable:
  """Returns all infosets, without names of actions."""
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
      spread(walk.entry[own], counts),
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
  return InfosetTable(
    infostates=[infostate for own in compiled.infostates for infostate in own],
    player=player,
    num_actions=num_actions,
    reach=own_reach,
    counterfactual_reach=counterfactual_reach,
    value=value,
    best_value=best_value,
    move=np.zeros(0, np.int64),
    probability=played,
    action_value=action_value,
    is_best=responses[compiled.all_action_sequences] > 0,
  )


def _moves(
  compiled: CompiledGame, walk: HistoryWalk, kept: Int64s, number: Int64s, names: dict[str, int]
) -> tuple[Int64s, Any]:
  """Names the moves that lead to the kept nodes, and those of infosets.

  Returns:
    The numbers of the names, shape (kept,), and a function from an action's place among all to the number of its name.
  """
  view = compiled.view
  actions = np.concatenate(compiled.actions)
  of_entry: dict[int, int] = {}
  result = np.zeros(len(kept), np.int64)
  stack = [(view.new_initial_state(), 0)]
  while stack:
    state, node = stack.pop()
    count = int(walk.num_children[node])
    if walk.mover[node] >= 0:
      entry = int(walk.entry[node])
      legal = actions[entry : entry + count].tolist()
    elif walk.mover[node] == CHANCE:
      entry = NONE
      legal = [action for action, _ in chance_outcomes(view, state)]
    else:
      continue
    first = int(walk.first_child[node])
    for place, action in enumerate(legal):
      child = int(number[first + place])
      known = of_entry.get(entry + place) if entry >= 0 else None
      if known is None and (child >= 0 or entry >= 0):
        known = number_name(names, move_name(state, action))
        if entry >= 0:
          of_entry[entry + place] = known
      if child >= 0:
        assert known is not None
        result[child] = known
        stack.append((state.child(action), first + place))
  return result, lambda entry: of_entry.get(entry) or number_name(names, str(actions[entry]))
