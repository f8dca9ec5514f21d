"""Payoffs in sequence form: given how the others play, what each sequence of a player is worth."""
