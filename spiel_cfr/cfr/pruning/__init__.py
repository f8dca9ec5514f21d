"""Pruning: CFR+ in windows that leave out what cannot matter for a while, and the papers' algorithms in short form."""
