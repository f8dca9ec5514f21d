"""Bots that search during play."""
