"""OpenSpiel's games: loading, views, and walks over their states."""
