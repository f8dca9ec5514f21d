"""Games in vector form: a public tree with a vector over private types at each node."""
