"""Composes the rest: which parts there are, and how they run."""
