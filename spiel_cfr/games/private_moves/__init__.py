"""Games of two players whose hidden moves leave a small true state, such as phantom tic-tac-toe."""
