"""Payoffs in sequence form: the gradient of a player's expected utility, given the strategies of the others."""
