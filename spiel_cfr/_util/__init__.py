"""General helpers: checks of arguments, files, Ctrl-C, memory, and the versions and machine behind a result."""
