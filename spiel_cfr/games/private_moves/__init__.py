"""Games of private moves, such as phantom tic-tac-toe: hidden moves, and a true state that is small if one sees it."""
