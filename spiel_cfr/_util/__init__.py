"""What any library has: arguments, files, Ctrl-C, memory, the machine."""
