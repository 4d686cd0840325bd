"""Facts: single sentences with a category, and the comparison of a new fact with existing ones. Pure functions."""
