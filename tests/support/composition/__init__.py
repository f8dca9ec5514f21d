"""Forms of games x solvers x operations as data, and what is checked of each cell.

`tests/composition` checks every cell, and `make composition` writes docs/composition.md.
"""
