"""Facts: single sentences with a category, and what becomes of a new one beside those that are there. Pure: values and functions of values."""
