"""Pruning: windows of iterations without the subtrees below actions that are not played."""
