"""Attacks on everything public, and what came of each: right, a named error, or wrong.

An *attack* (`outcomes.Attack`) is a call that a user may make by mistake or on purpose, in a room of the library. It
is *right* if what it returns agrees with a plain or a slow computation, *named* if it is refused by an error with a
sentence of ours, and *wrong* otherwise: another number, an exception from deep inside, a warning, no end, a crash.

Attacks come in kinds, a module each, whose `attacks` yields them from random numbers:

- `by_type`: arguments that are not what annotations say, or that are and look odd.
- `odd_games`: games that lie, never end, have no decisions or huge payoffs.
- `scales`: weights, ranges and payoffs times huge and tiny numbers.
- `forged_files`, `forged_certificates`: files that were changed.
- `disturbances`: Ctrl-C, kills, full disks, threads, copies.
"""
