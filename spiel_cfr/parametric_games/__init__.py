"""Games whose payoffs depend on parameters, and the parameters that are best for a player."""
