"""Private moves form: games of two players with hidden moves and few true states, such as phantom tic-tac-toe.

`compile_private_moves.compile_view` takes the steps of this list, in this order:

    Which functions of states identify a world?    world_keys
    Do infostates contain what a player has seen?  infostate_checks
    Which worlds does the game have?               worlds, then world_checks
    How are worlds split into cores and sights?    cores
    Is the game cut into shared subgames?          trunk (chooses the cut, lists all histories before it)
    How large will the sides be?                   size_estimate
    Which core histories and sides are there?      core_histories (arrays that grow), core_walk (the kernel)
    Which sides are equal?                         merged_sides
    What are the payoffs of a whole game?          rectangles
    What are the payoffs with shared subgames?     subgames, with branches (one player's), cut_groups, shared_sides
      in the order of the layout                   shared_rectangles
    What does a solver take?                       private_moves_game, with infoset_states (OpenSpiel's states)
    How is the game saved?                         saved_game, saved_payoff

A *world* is what histories with the same future have in common: a *core*, the true state, and a *sight* of each player,
all that it has seen. Along a path of cores, the sequences of the two players are independent. So the histories of a
path are a *rectangle* with one payoff: some sequences of player 0 times some of player 1, its *sides*.
docs/private_moves.md explains the form by an example.
"""
