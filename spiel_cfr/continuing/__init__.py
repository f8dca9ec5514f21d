"""To continue from what is known: what a history of play that nobody played is worth, and what it costs."""
