"""Compiled code: how Python functions become machine code here, and what they work on. Knows nothing of games."""
