"""Restarts on trial: the rule, runs that are compiled as a whole, and checks of states from files."""
