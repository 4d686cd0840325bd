"""What stands in relation to what, read from memory files. Pure: values and functions of values."""
