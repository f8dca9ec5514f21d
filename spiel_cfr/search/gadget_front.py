"""The gadget in front of subgames that are cut out as a game: the opponent's infosets, its payoffs, and its ways in."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame
from spiel_cfr.search.cut_outs import Bonus, Start
from spiel_cfr.search.gadgets import Gadget
from spiel_cfr.search.private_forest import NONE


class Roots(NamedTuple):
  """The beginnings of subgames. J is an index of the opponent's private states there, subgame by subgame.

  Attributes:
    subgame: int64 (J,). The position of each J's subgame.
    row: int64 (J,). The row of each J.
    w: float64 (J,). w of each J.
    bound: float64 (J,). The largest expected payoff that the opponent may have at each J.
    shares: float64 (ways, J). See `Gadget.shares`.
  """

  subgame: Int64s
  row: Int64s
  w: Float64s
  bound: Float64s
  shares: Float64s


def find_roots(starts: Sequence[Start], rows: Sequence[Int64s], gadget: Gadget) -> Roots:
  """Returns the beginnings of subgames, without the opponent's private states that `Start.w` leaves out.

  Args:
    starts: the subgames.
    rows: for each subgame, int64 (the opponent's private states,). Their rows.
    gadget: the gadget.
  """
  parts = []
  for place, (start, own) in enumerate(zip(starts, rows, strict=True)):
    is_included = start.w > 0
    parts.append(
      (
        np.full(np.count_nonzero(is_included), place),
        own[is_included],
        start.w[is_included],
        start.bound[is_included],
        gadget.shares(start.w, start.r)[:, is_included],
      )
    )
  return Roots(*(np.concatenate(own, axis=-1) for own in zip(*parts, strict=True)))


class OpponentCopy(NamedTuple):
  """One way in which the opponent enters its infosets.

  Attributes:
    label: the beginning of the infosets' names.
    entry: int64 (J,). The sequence by which the opponent enters each J.
    factor: float64 (J,). The factor of all weights at each J.
  """

  label: str
  entry: Int64s
  factor: Float64s


class GadgetFront:
  """The opponent's moves before the subgames.

  Attributes:
    label: str. The beginning of the names of the gadget's infosets.
    rows: int64 (infosets,). The row of each of these infosets; `NONE` for a pick.
    counts: int64 (infosets,). The number of actions of each of these infosets.
    sequences: int64 (leaves,). The opponent's sequences at the gadget's own leaves.
    values: float64 (leaves,). The searcher's payoffs at these leaves.
    copies: the copies of the opponent's infosets in the subgames.
  """

  def __init__(self, roots: Roots, gadget: Gadget, program: bool) -> None:
    """Takes the beginnings of the subgames and the gadget."""
    number, ways = len(roots.w), list(roots.shares)
    group, empty = np.arange(number), np.zeros(number, np.int64)
    enters, pays = empty, [share * roots.w * roots.bound for share in ways]
    # The weight of each pick in place of a dealt copy, see `Bonus`.
    self._bonus: Float64s | None = None
    self.label, self.rows, self.values = "", empty[:0], np.zeros(0)
    self.counts = self.sequences = empty[:0]
    if gadget.front == "pick":
      self.counts = np.bincount(roots.subgame)
      self.label, self.rows = "pick: where to be", np.full_like(self.counts, NONE)
      enters, self.sequences, self.values = 1 + group, 1 + group, pays[0]
      if program and len(ways) > 1:
        self._bonus = ways.pop() / ways[0]
      elif len(ways) > 1:
        self.sequences = np.append(self.sequences, 0)
        self.values = np.append(self.values, pays[1].sum())
    elif gadget.front == "choice":
      self.counts = np.full(number, 2)
      self.label, self.rows = "choice: ", roots.row
      enters, self.sequences, self.values = 2 + 2 * group, 1 + 2 * group, -pays[0]
    self.copies = [OpponentCopy("", enters, ways[0])]
    self.copies += [OpponentCopy("dealt: ", empty, share) for share in ways[1:]]

  def bonus_in(self, game: EnumeratedGame, opponent: int) -> Bonus | None:
    """Returns the bonus of a linear program; None without a bonus."""
    if self._bonus is None:
      return None
    infosets = game.infosets[opponent].position[: len(self.counts)].astype(np.int64)
    picks = game.all_action_sequences[len(game.actions[0]) * opponent :][: len(self._bonus)]
    return Bonus(picks, self._bonus, infosets)
