"""Compiled code: kernels, their cache, arrays, records, steps and vectors. It does not depend on games."""
