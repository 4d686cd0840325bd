"""The graph of relations between memory files. Pure functions."""
