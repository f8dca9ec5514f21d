"""Public trees of all forms of games: public states, ranges and values, and subgames as gadget games."""
