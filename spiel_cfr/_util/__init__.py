"""Helpers of any library: arguments, files, Ctrl-C, memory, the machine."""
