"""From an OpenSpiel game to arrays."""
