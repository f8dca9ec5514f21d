"""A game as sequences: treeplexes, and the passes over them."""
