"""Names of the columns of `PayoffArrays`, for the two forms of enumerated games."""

# `players`: the player's sequences from ROOT to END, its runs, and its number of leaves with a payoff.
ROOT, END, FIRST_RUN, END_RUN, LEAVES = range(5)
OF_PLAYERS = 5
# `runs`: the rows of a run, its first entry, and the number of entries of each row.
FIRST_ROW, END_ROW, FIRST_ENTRY, LENGTH = range(4)
OF_RUNS = 6
# `runs`, leaf rows only: number of rows whose entries alternate, 1 or `LANES`.
SIDE_BY_SIDE = 4
# `runs`, typed patterns only: number of the player's types in each row; number of columns of a pattern up to the last
# that is not zero, rounded up to an even number (two players only).
TYPES, WIDTH = 4, 5
# `others`, typed patterns only: the first column is the number of a pattern.
PATTERN = 0
