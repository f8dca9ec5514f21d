"""From one run to a thousand: every combination of games, solvers and arguments, on one machine or on many."""
