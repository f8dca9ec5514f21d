"""Games in vector form: a public tree, with a vector over private states at each public state.

All games share these modules, in reading order:

    public_tree         nodes, edges, and the private states (types) that are possible at a node
    layout              the numbers of sequences and infosets, and the cut into parts
    parts               the parts that solvers visit one by one
    infoset_list        the names of infosets
    public_tree_game    the compiled game

`spiel_cfr.poker` adds the tree and the payoffs of poker: rivers, turns, flops. These modules add those of other games
with private types, such as liar's dice:

    deals, typed_walk, tree_pieces, walk_in_processes    the walk of OpenSpiel's states that finds the public tree
    typed_tree, typed_terminals                          the tree with its files, and the payoffs
    vector_game                                          the compiled game
"""
