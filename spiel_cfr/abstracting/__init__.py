"""What takes solvers to make, or to make the best of, an abstraction."""
