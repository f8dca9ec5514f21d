"""Smaller games that stand for larger ones: infosets that play alike are one."""
