"""Forms of games x solvers x operations as data, and what is checked of each cell.

`tests/composition` checks the cells, most of them as slow tests, and `make composition` writes docs/composition.md.
"""
