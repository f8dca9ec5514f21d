"""A game as arrays: what every solver works on."""
