"""Long runs: when they stop, what they leave behind, and how they go on."""
