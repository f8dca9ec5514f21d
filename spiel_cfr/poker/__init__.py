"""Poker in vector form: one vector over private hands at each public state, and no list of deals."""
