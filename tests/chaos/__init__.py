"""Real processes, killed, stopped and started again; what counts is what was accepted."""
