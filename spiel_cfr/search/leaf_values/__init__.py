"""Sources of leaf values: exact ones, networks, and the examples that networks learn from."""
