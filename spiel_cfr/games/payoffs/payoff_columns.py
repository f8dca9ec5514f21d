"""Names of the columns of `PayoffArrays`, for the two forms of enumerated games."""

# `players`: a player's sequences from ROOT to END, its runs from FIRST_RUN to END_RUN, and its number of leaves.
ROOT, END, FIRST_RUN, END_RUN, LEAVES = range(5)
OF_PLAYERS = 5
# `runs`: the rows of a run from FIRST_ROW to END_ROW, its first term, and the number of terms of each row.
FIRST_ROW, END_ROW, FIRST_TERM, LENGTH = range(4)
OF_RUNS = 6
# `runs`, leaf rows only: the number of rows whose terms alternate, 1 or `LANES`.
SIDE_BY_SIDE = 4
# `runs`, typed patterns only. TYPES: the number of the player's types in each row. WIDTH, for two players: the number
# of columns of a pattern up to the last that is not zero, rounded up to an even number.
TYPES, WIDTH = 4, 5
# `others`, typed patterns only: the number of a pattern.
PATTERN = 0
