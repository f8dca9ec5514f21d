"""Private moves form: games of two players with hidden moves and few true states, such as phantom tic-tac-toe."""
