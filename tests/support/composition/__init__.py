"""Forms of games x solvers x operations as data, and what is checked of each cell.

`tests/composition` checks cells in which every two of these meet, most of them as slow tests; `make composition` checks
all cells and writes docs/composition.md.
"""
