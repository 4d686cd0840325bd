"""The graph of relations between memory files. Pure: values and functions of values."""
