"""Vectors of texts made on this machine by all-MiniLM-L6-v2, which the extra `semantic` brings: no network, no other program."""
