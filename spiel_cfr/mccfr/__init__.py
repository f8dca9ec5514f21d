"""Monte Carlo CFR: samplers on one traversal, for compiled games and for games too large to compile."""
