"""What the columns of `PayoffArrays` hold; those that forms add to runs are each form's own business."""

# Of `players`.
ROOT, END, FIRST_RUN, END_RUN, LEAVES = range(5)
OF_PLAYERS = 5
# Of `runs`, in all forms for enumerated games.
FIRST_ROW, END_ROW, FIRST_ENTRY, LENGTH = range(4)
OF_RUNS = 6
# In leaf rows: how many rows are side by side, 1 or `LANES`.
SIDE_BY_SIDE = 4
# In typed patterns: how many types the player has in each row; and how many columns of the patterns are not zero,
# rounded up to an even number, where there are two players.
TYPES, WIDTH = 4, 5
# Of `others`, in typed patterns: a pattern.
PATTERN = 0
