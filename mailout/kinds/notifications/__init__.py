"""A producer's queue of notifications."""
