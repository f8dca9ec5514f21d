"""Runs: the order in which the two forms of listed games, `LeafRows` and `TypedPatterns`, store their terms.

Payoffs list *terms* for each *row*: in `TypedPatterns`, up to `LANES` neighboring sequences of one action; in
`LeafRows`, a single sequence. The utility of a row is the sum of its terms. A *run* is a range of consecutive rows with
equally many terms. Terms are stored run by run, and runs player by player:

    player_bounds    player p -> its runs, from FIRST_RUN to END_RUN
    runs             run      -> its rows, from FIRST_ROW to END_ROW, and their terms: LENGTH each, from FIRST_TERM on
    rows             row      -> its first sequence

Each form adds columns of its own to `runs`, and arrays with an element for each term.
"""

import numpy as np

from spiel_cfr._numba.arrays import Int64s, Uint32s, Uint64s

# Columns of `player_bounds`: the player's sequences from ROOT to END, its runs, and its number of leaves.
ROOT, END, FIRST_RUN, END_RUN, LEAVES = range(5)
# The first columns of `runs`.
FIRST_ROW, END_ROW, FIRST_TERM, LENGTH = range(4)


def rows_of(
  player_bounds: Uint64s, runs: Uint64s, rows: Uint32s, player: int
) -> tuple[Int64s, Int64s, int]:
  """Returns a player's rows.

  Args:
    player_bounds: uint64 (players, 5). One line for each player.
    runs: uint64 (runs, columns). One line for each run.
    rows: uint32 (rows,). The first sequence of each row.
    player: the player.

  Returns:
    int64 (rows,), the first sequence of each row; int64 (rows,), the number of terms of each row; and the first term
    of the first row.
  """
  first, end = player_bounds[player, [FIRST_RUN, END_RUN]].tolist()
  own = runs[first:end].astype(np.int64)
  if not len(own):
    return np.zeros(0, np.int64), np.zeros(0, np.int64), 0
  lengths = np.repeat(own[:, LENGTH], own[:, END_ROW] - own[:, FIRST_ROW])
  first_sequences = rows[own[0, FIRST_ROW] : own[-1, END_ROW]].astype(np.int64)
  return first_sequences, lengths, int(own[0, FIRST_TERM])
