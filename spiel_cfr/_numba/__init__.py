"""Tools for compiled code, independent of games: kernels, their cache, arrays, records, steps and vectors."""
