"""From a game of OpenSpiel to arrays."""
