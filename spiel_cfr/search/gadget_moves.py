"""Gadgets of subgames that are cut out as games: the opponent's infosets before the subgames, and their leaves.

`gadgets` explains the letters. `forest_cut_out` puts these infosets and leaves in front of the subgames.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame
from spiel_cfr.search.cut_outs import Bonus, Start
from spiel_cfr.search.gadgets import Gadget
from spiel_cfr.search.private_forest import NONE


class OpponentRoots(NamedTuple):
  """The opponent's private states at the beginnings of subgames, one subgame after the other.

  J is an index of these private states.

  Attributes:
    subgame: int64 (J,). The position of each J's subgame in the list of subgames.
    row: int64 (J,). The row of each J in the opponent's forest.
    w: float64 (J,). w of each J.
    bound: float64 (J,). The largest expected payoff that the opponent may have at each J.
    shares: float64 (ways, J). The factors of w, see `Gadget.shares`.
  """

  subgame: Int64s
  row: Int64s
  w: Float64s
  bound: Float64s
  shares: Float64s


def opponent_roots(
  starts: Sequence[Start], rows: Sequence[Int64s], gadget: Gadget
) -> OpponentRoots:
  """Returns the opponent's private states at the beginnings of subgames. Private states with w = 0 are left out.

  Args:
    starts: the beginnings of the subgames.
    rows: for each subgame, int64 (the opponent's private states,). Their rows in the opponent's forest.
    gadget: the gadget.
  """
  parts = []
  for position, (start, opponent_rows) in enumerate(zip(starts, rows, strict=True)):
    is_included = start.w > 0
    parts.append(
      (
        np.full(np.count_nonzero(is_included), position),
        opponent_rows[is_included],
        start.w[is_included],
        start.bound[is_included],
        gadget.shares(start.w, start.r)[:, is_included],
      )
    )
  return OpponentRoots(*(np.concatenate(arrays, axis=-1) for arrays in zip(*parts, strict=True)))


class OpponentCopy(NamedTuple):
  """One of the copies of the opponent's infosets in the subgames; each way to enter the subgames has its copy.

  Attributes:
    label: the beginning of the names of the copied infosets.
    entry: int64 (J,). The opponent's sequence that leads to each J.
    factor: float64 (J,). The factor of the probabilities of all leaves below each J.
  """

  label: str
  entry: Int64s
  factor: Float64s


class GadgetMoves:
  """The opponent's infosets in front of the subgames, their leaves, and the copies of the subgames' infosets.

  Attributes:
    label: str. The beginning of the names of the gadget's infosets.
    rows: int64 (infosets,). The row whose name completes the name of each gadget infoset; `NONE` for a pick.
    counts: int64 (infosets,). The number of actions of each gadget infoset.
    sequences: int64 (leaves,). The opponent's last sequence at each leaf of the gadget.
    values: float64 (leaves,). The searcher's payoff at each leaf of the gadget, times its probability.
    copies: list. The copies of the opponent's infosets in the subgames, as `OpponentCopy`.
  """

  def __init__(self, roots: OpponentRoots, gadget: Gadget, program: bool) -> None:
    """Builds the gadget.

    Args:
      roots: the opponent's private states at the beginnings of the subgames.
      gadget: the parameters of the gadget.
      program: True for a linear program. With the front "pick", a `Bonus` then replaces the dealt copy.
    """
    count, ways = len(roots.w), list(roots.shares)
    order, empty = np.arange(count), np.zeros(count, np.int64)
    entered_by, payoffs = empty, [share * roots.w * roots.bound for share in ways]
    self._bonus_weights: Float64s | None = None
    self.label, self.rows, self.values = "", empty[:0], np.zeros(0)
    self.counts = self.sequences = empty[:0]
    if gadget.front == "pick":
      self.counts = np.bincount(roots.subgame)
      self.label, self.rows = "pick: where to be", np.full_like(self.counts, NONE)
      entered_by, self.sequences, self.values = 1 + order, 1 + order, payoffs[0]
      if program and len(ways) > 1:
        self._bonus_weights = ways.pop() / ways[0]
      elif len(ways) > 1:
        self.sequences = np.append(self.sequences, 0)
        self.values = np.append(self.values, payoffs[1].sum())
    elif gadget.front == "choice":
      self.counts = np.full(count, 2)
      self.label, self.rows = "choice: ", roots.row
      entered_by, self.sequences, self.values = 2 + 2 * order, 1 + 2 * order, -payoffs[0]
    self.copies = [OpponentCopy("", entered_by, ways[0])]
    self.copies += [OpponentCopy("dealt: ", empty, share) for share in ways[1:]]

  def bonus_in(self, game: EnumeratedGame, opponent: int) -> Bonus | None:
    """Returns the bonus of a linear program, with the sequence numbers of a game; None without a bonus."""
    if self._bonus_weights is None:
      return None
    infosets = game.infosets[opponent].position[: len(self.counts)].astype(np.int64)
    picks = game.all_action_sequences[len(game.actions[0]) * opponent :]
    return Bonus(picks[: len(self._bonus_weights)], self._bonus_weights, infosets)
