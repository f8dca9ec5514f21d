"""General helpers: checks of arguments, files, Ctrl-C, memory, the machine."""
