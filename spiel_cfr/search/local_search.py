"""A player's search below one public state: continual, each decision solved again on what the last solution plays."""

import itertools
import time
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s
from spiel_cfr.bots import distribution
from spiel_cfr.policies import AnyPolicy, CompiledTabularPolicy
from spiel_cfr.search.cut_outs import SubgameSolver
from spiel_cfr.search.gadgets import GADGETS, Gadget
from spiel_cfr.search.history_tree import HistoryTree
from spiel_cfr.search.history_walk import NONE
from spiel_cfr.search.listed_states import ListedBlueprint, PublicState, PublicTree
from spiel_cfr.search.search_step import search_step
from spiel_cfr.search.states_above import LookUp

# A blueprint with its values has several numbers for each history, and is made again in the time of a best response.
_MOST_BLUEPRINTS = 16
# (sequences of a program, deadline) -> the gadget and the solver of a subgame.
Choose: TypeAlias = Callable[[int, float], tuple[Gadget, SubgameSolver]]


class _Play(NamedTuple):
  """The arguments of a `ListedBlueprint` from one public state on.

  Attributes:
    entries: float64 (entries,). The policy of both players.
    barred: bool (entries,), or None. Actions of the opponent to which it has no answer.
    gifts_from: the number of moves from which on the opponent's gifts count.
  """

  entries: Float64s
  barred: Bools | None
  gifts_from: int


class LocalSearch:
  """All that follows a public state, and the solutions there so far, each found once."""

  def __init__(
    self, histories: HistoryTree, policy: AnyPolicy, look_up: LookUp, searcher: int
  ) -> None:
    """Reads the blueprint: a policy, and how to ask it.

    Raises:
      PolicyError: it has no probabilities for an infoset of the searcher's to which it plays, whatever the opponent
        does.
    """
    self._tree, self._searcher = PublicTree(None, histories), searcher
    self._decides = {state.number for level in self._tree.decisions(searcher) for state in level}
    entries, unknown = _blueprint(histories, policy, look_up)
    start = time.perf_counter()
    barred = _barred(histories, entries, unknown, searcher)
    # By public state that has been solved, and by `NONE` for the blueprint: the play from there on, and the latest
    # blueprints with their values.
    self._solved = {NONE: _Play(entries, barred, 0)}
    self._latest = {NONE: ListedBlueprint(self._tree, entries, searcher, barred=barred)}
    self._reserve = 2 * (time.perf_counter() - start)

  @property
  def size(self) -> int:
    """The approximate count of numbers that are kept."""
    nodes, entries = len(self._tree.state_of), self._tree.histories.num_entries
    return (12 + 5 * len(self._latest)) * nodes + len(self._solved) * entries

  def _blueprint_at(self, number: int) -> ListedBlueprint:
    if number not in self._latest:
      play = self._solved[number]
      self._hold(
        number,
        ListedBlueprint(
          self._tree, play.entries, self._searcher, barred=play.barred, gifts_from=play.gifts_from
        ),
      )
    return self._latest[number]

  def _hold(self, number: int, blueprint: ListedBlueprint) -> None:
    self._latest[number] = blueprint
    if len(self._latest) > _MOST_BLUEPRINTS:
      del self._latest[next(iter(self._latest))]

  def policy(self, history: list[int], choose: Choose, deadline: float) -> list[tuple[int, float]]:
    """Returns the strategy at a decision of the searcher's, after all before it on the path have been solved again.

    Args:
      history: the moves that lead there.
      choose: chooses the gadget and the solver of a subgame. The gadget is "follow" where the blueprint has no answer
        to an action of the opponent's.
      deadline: the time, by `time.perf_counter`, at which all are to be solved.
    """
    found, last = self._tree.histories, NONE
    path = found.path(history)
    numbers = [int(self._tree.state_of[node]) for node in path]
    pending = [each for each in numbers if each in self._decides and each not in self._solved]
    for number in numbers:
      if number in pending:
        before, now = self._blueprint_at(last), time.perf_counter()
        until = now + (deadline - now) / (len(pending) - pending.index(number)) - self._reserve
        gadget, solver = choose(self._num_sequences(number), until)
        if before.is_open(number):
          gadget = GADGETS["follow"]
        after, step = search_step(before, [PublicState(self._tree, number)], gadget, solver)
        # Earlier gifts were given against what the opponent could expect then.
        after = after.with_gifts_from(step.length)
        self._solved[number] = _Play(after.entries, after.barred, after.gifts_from)
        self._hold(number, after)
      if number in self._solved:
        last = number
    here = _entries_of(found, int(found.infoset[path[-1]]))
    legal = np.concatenate(found.actions)[here]
    return list(zip(legal.tolist(), self._solved[last].entries[here].tolist(), strict=True))

  def _num_sequences(self, number: int) -> int:
    """Returns how many sequences the program of a subgame has, a gadget's included."""
    found = self._tree.histories
    below = found.below(self._tree.histories_of[number])
    infosets = np.unique(found.infoset[below[found.mover[below] >= 0]])
    picks = self._tree.num_private_states(number)[1 - self._searcher]
    return int(found.num_actions[infosets].sum()) + picks


def _blueprint(found: HistoryTree, policy: AnyPolicy, look_up: LookUp) -> tuple[Float64s, Bools]:
  """Returns a policy as probabilities of entries, and the infosets for which it has none; there it is uniform."""
  legal, above = np.concatenate(found.actions), found.infoset_of_entry
  entries, unknown = 1 / found.num_actions[above], np.zeros(len(found.owner), bool)
  if isinstance(policy, CompiledTabularPolicy) and not policy.compiled_game.view.names_infostates:
    names = itertools.chain(*found.names)
    rows = np.array([policy.state_lookup.get(name, NONE) for name in names])
    unknown = rows == NONE
    table: Float64s = policy.action_probability_array
    # It may be for a game with fewer actions.
    most = table.shape[1] - 1
    chances = np.where(legal > most, 0.0, table[rows[above], np.minimum(legal, most)])
    entries = np.where(unknown[above], entries, chances)
  else:
    nodes = np.flatnonzero(found.mover >= 0)
    infosets, firsts = np.unique(found.infoset[nodes], return_index=True)
    for infoset, node in zip(infosets.tolist(), nodes[firsts].tolist(), strict=True):
      known = look_up(found.state(node), int(found.owner[infoset]))
      unknown[infoset] = known is None
      if known is not None:
        here = _entries_of(found, infoset)
        entries[here] = [known.get(action, 0.0) for action in legal[here].tolist()]
  off = np.abs(np.add.reduceat(entries, found.first_entry) - 1)
  bad = ~(off < 1e-9) | (np.minimum.reduceat(entries, found.first_entry) < 0)
  for infoset in np.flatnonzero(bad).tolist():
    here = _entries_of(found, infoset)
    known = dict(zip(legal[here].tolist(), entries[here].tolist(), strict=True))
    distribution(known, list(known), f"At infostate {found.infostate(infoset)!r} the blueprint")
  return entries, unknown


def _entries_of(found: HistoryTree, infoset: int) -> slice:
  begin = int(found.first_entry[infoset])
  return slice(begin, begin + int(found.num_actions[infoset]))


def _barred(found: HistoryTree, entries: Float64s, unknown: Bools, searcher: int) -> Bools | None:
  """Returns the opponent's actions after which a blueprint does not know what to play; None if there are none."""
  opponent = 1 - searcher
  reached = found.chance * found.reach(entries, searcher) > 0
  lost = (found.mover == searcher) & unknown[found.infoset] & reached
  if not lost.any():
    return None
  barred = np.zeros(found.num_entries, bool)
  for level in reversed(found.levels):
    here = level[lost[level]]
    above = found.parent[here]
    by_opponent = found.mover[above] == opponent
    lost[above[~by_opponent]] = True
    barred[found.entry[here[by_opponent]]] = True
    no_other = np.logical_and.reduceat(barred, found.first_entry)
    above = above[by_opponent]
    lost[above] |= no_other[found.infoset[above]]
  begins = np.flatnonzero(found.parent < 0)
  if lost[begins].any():
    decisions = np.flatnonzero((found.mover == searcher) & unknown[found.infoset] & reached)
    name = found.infostate(int(found.infoset[decisions[0]]))
    raise errors.PolicyError(
      f"The blueprint plays to infostate {name!r} of player {searcher}, and has no probabilities there."
    )
  return barred
