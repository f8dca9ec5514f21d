"""Groups of histories at the cut: all pairs of some sequences of player 0 and some of player 1, in one subgame.

`subgames` explains the terms with an example.
"""

from typing import NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s, concatenated_ranges
from spiel_cfr.games.private_moves.trunk import TrunkHistories


class Members(NamedTuple):
  """One player's sequences at the cut in all groups. A sequence can be a member of several groups.

  Attributes:
    group: int64 (members,). The group of each member.
    history: int64 (members,). A history of the group at which the player has the sequence.
  """

  group: Int64s
  history: Int64s


class Groups(NamedTuple):
  """The groups of all histories at the cut.

  Attributes:
    subgame: int64 (groups,). The subgame of each group.
    reach: float64 (groups,). Chance's probability of each history of a group.
    members: Members of each player.
  """

  subgame: Int64s
  reach: Float64s
  members: tuple[Members, Members]


def find_groups(histories: TrunkHistories, subgame_of_history: Int64s) -> Groups:
  """Divides the histories at the cut into groups.

  A *run* is all histories of one subgame, one probability of chance and one sequence of player 0. Runs with the same
  sequences of player 1 make a group.
  """
  order = np.lexsort((*histories.sequences[::-1], histories.reach, subgame_of_history))
  sequences, reach = histories.sequences[:, order], histories.reach[order]
  subgame = subgame_of_history[order]
  is_new = (np.diff(subgame) != 0) | (np.diff(reach) != 0) | (np.diff(sequences[0]) != 0)
  begin_of_run = np.append(0, 1 + np.flatnonzero(is_new))
  end_of_run = np.append(begin_of_run[1:], len(order))
  numbers: dict[tuple[int, float, bytes], int] = {}
  group_of_run = np.array(
    [
      numbers.setdefault(
        (int(subgame[begin]), float(reach[begin]), sequences[1, begin:end].tobytes()), len(numbers)
      )
      for begin, end in zip(begin_of_run.tolist(), end_of_run.tolist(), strict=True)
    ]
  )
  # Groups are numbered as their first runs come.
  _, first_run = np.unique(group_of_run, return_index=True)
  begin, count = begin_of_run[first_run], (end_of_run - begin_of_run)[first_run]
  return Groups(
    subgame[begin],
    reach[begin],
    (
      Members(group_of_run, order[begin_of_run]),
      Members(np.repeat(np.arange(len(numbers)), count), order[concatenated_ranges(begin, count)]),
    ),
  )
