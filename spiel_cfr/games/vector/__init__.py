"""Games of private types: chance deals them, all that follows is public. Vectors over types stand for histories."""
