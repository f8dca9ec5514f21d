"""Files that other programs read: games as Gambit has them, policies as tables."""
