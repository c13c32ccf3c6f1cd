"""The command line: asks the engine, and says in plain words what became of it."""
