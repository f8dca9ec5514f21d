"""A player's search below one public state: continual, each decision solved again on what the last solution plays."""

import functools
import itertools
import time

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s
from spiel_cfr.bots import distribution
from spiel_cfr.policies import AnyPolicy, CompiledTabularPolicy
from spiel_cfr.search.gadgets import GADGETS, Gadget
from spiel_cfr.search.history_tree import HistoryTree
from spiel_cfr.search.history_walk import NONE
from spiel_cfr.search.public_states import number_public_states
from spiel_cfr.search.search_step import SolveUntil, search_step
from spiel_cfr.search.standing import Standing
from spiel_cfr.search.trunk import LookUp

# A standing has several numbers for each history, and is made again in the time of a best response.
_MOST_STANDINGS = 16


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
    self._histories, self._searcher = histories, searcher
    self._state_of = number_public_states(histories)
    mine = self._state_of[histories.mover == searcher]
    self._decides = np.zeros(int(self._state_of.max()) + 1, bool)
    self._decides[mine] = True
    entries, unknown = _blueprint(histories, policy, look_up)
    start = time.perf_counter()
    barred = _barred(histories, entries, unknown, searcher)
    # Of each public state that has been solved, and of `NONE`, the blueprint: what is played then, and from there on
    # what makes a standing of it; of the latest, these, which have numbers for each history.
    self._solved = {NONE: (entries, barred, 0)}
    self._latest = {NONE: Standing(histories, entries, searcher, barred=barred)}
    self._reserve = 2 * (time.perf_counter() - start)

  @property
  def size(self) -> int:
    """About how many numbers are kept."""
    nodes, entries = len(self._histories.parent), self._histories.num_entries
    return (12 + 5 * len(self._latest)) * nodes + len(self._solved) * entries

  def _standing(self, number: int) -> Standing:
    if number not in self._latest:
      entries, barred, begin = self._solved[number]
      self._hold(number, Standing(self._histories, entries, self._searcher, barred, begin))
    return self._latest[number]

  def _hold(self, number: int, standing: Standing) -> None:
    self._latest[number] = standing
    if len(self._latest) > _MOST_STANDINGS:
      del self._latest[next(iter(self._latest))]

  def policy(
    self,
    history: list[int],
    gadget: Gadget,
    solve: SolveUntil,
    deadline: float,
  ) -> list[tuple[int, float]]:
    """Returns what is played at a decision of the searcher's, after all before it on the path have been solved again.

    Args:
      history: the moves that lead there.
      gadget: what is in front of subgames; "follow" where the blueprint has no answer to what the opponent can do.
      solve: solves a subgame until a time.
      deadline: when all are to be solved, by `time.perf_counter`.
    """
    found, last = self._histories, NONE
    path = found.path(history)
    numbers = [int(self._state_of[node]) for node in path]
    pending = [each for each in numbers if self._decides[each] and each not in self._solved]
    for number in numbers:
      if number in pending:
        standing, now = self._standing(last), time.perf_counter()
        until = now + (deadline - now) / (len(pending) - pending.index(number)) - self._reserve
        roots = np.flatnonzero(self._state_of == number)
        chosen = GADGETS["follow"] if standing.is_open(roots) else gadget
        solve_now = functools.partial(solve, deadline=until)
        after, step = search_step(standing, [roots], chosen, solve_now)
        # What the opponent gave away before was for what it could expect then, of public states not solved again since.
        after = after.judged(begin=step.length)
        self._solved[number] = after.entries, after.barred, after.begin
        self._hold(number, after)
      if number in self._solved:
        last = number
    here = _entries_of(found, int(found.infoset[path[-1]]))
    legal = np.concatenate(found.actions)[here]
    return list(zip(legal.tolist(), self._solved[last][0][here].tolist(), strict=True))


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
