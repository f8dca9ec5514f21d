"""Fronts of gadgets as infosets and leaves, for public trees that list private states.

`gadgets` explains the letters, and lists the other two forms of fronts. `forest_gadget_games` puts these infosets and
leaves in front of the subgames.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame
from spiel_cfr.games.openspiel.history_list import NONE
from spiel_cfr.search.gadget_games import Bonus, SubgameStart
from spiel_cfr.search.gadgets import Gadget


class OpponentRoots(NamedTuple):
  """The opponent's private states at the beginnings of subgames, one subgame after the other.

  J is an index of these private states.

  Attributes:
    subgame: int64 (J,). The position of each J's subgame in the list of subgames.
    row: int64 (J,). The row of each J in the opponent's forest.
    w: float64 (J,). The probability that chance and the searcher lead to each J.
    bound: float64 (J,). The largest expected payoff that the opponent may have at each J.
    free: float64 (J,). See `Entrances`.
    forced: float64 (J,). See `Entrances`.
  """

  subgame: Int64s
  row: Int64s
  w: Float64s
  bound: Float64s
  free: Float64s
  forced: Float64s


def opponent_roots(
  starts: Sequence[SubgameStart], rows: Sequence[Int64s], gadget: Gadget
) -> OpponentRoots:
  """Returns the opponent's private states at the beginnings of subgames. Private states with w = 0 are left out.

  Args:
    starts: the beginnings of the subgames.
    rows: for each subgame, int64 (the opponent's private states,). Their rows in the opponent's forest.
    gadget: the gadget.
  """
  parts = []
  for position, (start, opponent_rows) in enumerate(zip(starts, rows, strict=True)):
    subgame = np.full(len(opponent_rows), position)
    arrays = subgame, opponent_rows, start.w, start.bound, *gadget.entrances(start.w, start.r)
    parts.append([array[start.w > 0] for array in arrays])
  return OpponentRoots(*map(np.concatenate, zip(*parts, strict=True)))


class OpponentCopy(NamedTuple):
  """One of the copies of the opponent's infosets in the subgames; each way to enter the subgames has its copy.

  Attributes:
    label: the beginning of the names of the copied infosets.
    sequence: int64 (J,). The opponent's sequence that leads to each J.
    factor: float64 (J,). The factor of the probabilities of all leaves below each J.
  """

  label: str
  sequence: Int64s
  factor: Float64s


class InfosetFront:
  """The opponent's infosets in front of the subgames, their leaves, and the copies of the subgames' infosets.

  Attributes:
    label: str. The beginning of the names of the gadget's infosets.
    rows: int64 (infosets,). The row whose name completes the name of each gadget infoset; `NONE` for a pick.
    counts: int64 (infosets,). The number of actions of each gadget infoset.
    sequences: int64 (leaves,). The opponent's last sequence at each leaf of the gadget.
    values: float64 (leaves,). The searcher's payoff at each leaf of the gadget, times its probability.
    copies: list. The copies of the opponent's infosets in the subgames, as `OpponentCopy`.
  """

  def __init__(self, roots: OpponentRoots, gadget: Gadget, is_linear_program: bool) -> None:
    """Builds the gadget.

    Args:
      roots: the opponent's private states at the beginnings of the subgames.
      gadget: the parameters of the gadget.
      is_linear_program: see `GadgetGameBuilder.build`.
    """
    none = np.zeros(0, np.int64)
    self.label, self.rows, self.counts = "", none, none
    self.sequences, self.values = none, np.zeros(0)
    self._bonus_weights: Float64s | None = None
    has_forced_copy = gadget.forced > 0
    # Where the opponent has no move, the empty sequence leads to each J.
    empty = entered_by = np.zeros(len(roots.w), np.int64)
    if gadget.front == "pick":
      if is_linear_program and has_forced_copy:
        self._bonus_weights, has_forced_copy = roots.forced / roots.free, False
      entered_by = self._add_picks(roots, has_forced_copy)
    elif gadget.front == "choice":
      entered_by = self._add_choices(roots)
    self.copies = [OpponentCopy("", entered_by, roots.free)]
    if has_forced_copy:
      self.copies.append(OpponentCopy("forced: ", empty, roots.forced))

  def _add_picks(self, roots: OpponentRoots, has_forced_copy: bool) -> Int64s:
    """Adds an infoset for each subgame, in which the opponent picks a J, and returns the sequence of each pick.

    The opponent pays the bound of its J to the searcher, so that the searcher gets the margin there. It pays the bounds
    of its forced entrances, too: one leaf after the empty sequence has their sum.
    """
    picks = 1 + np.arange(len(roots.w))
    self.counts = np.bincount(roots.subgame)
    self.label, self.rows = "pick: where to be", np.full_like(self.counts, NONE)
    self.sequences, self.values = picks, roots.free * roots.w * roots.bound
    if has_forced_copy:
      self.sequences = np.append(self.sequences, 0)
      self.values = np.append(self.values, (roots.forced * roots.w * roots.bound).sum())
    return picks

  def _add_choices(self, roots: OpponentRoots) -> Int64s:
    """Adds an infoset for each J to take the bound or to play on, and returns the sequences that play on.

    The searcher pays the bound if the opponent takes it. Playing on therefore pays for the opponent only where it gets
    more than its bound.
    """
    takes = 1 + 2 * np.arange(len(roots.w))
    self.counts = np.full_like(takes, 2)
    self.label, self.rows = "choice: ", roots.row
    self.sequences, self.values = takes, -(roots.free * roots.w * roots.bound)
    return 1 + takes

  def bonus_in(self, game: EnumeratedGame, opponent: int) -> Bonus | None:
    """Returns the bonus of a linear program, with the sequence numbers of a game; None without a bonus."""
    if self._bonus_weights is None:
      return None
    infosets = game.infosets[opponent].position[: len(self.counts)].astype(np.int64)
    picks = game.all_action_sequences[len(game.actions[0]) * opponent :]
    return Bonus(picks[: len(self._bonus_weights)], self._bonus_weights, infosets)
