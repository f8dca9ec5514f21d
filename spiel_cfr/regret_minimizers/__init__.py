"""Local regret minimizers: what one infoset does."""
