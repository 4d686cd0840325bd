"""Facts: single sentences with a category, and the comparison of a new one with existing ones. Pure: values and functions of
values."""
