"""Sync: find, verify, join, publish, and check what was published (format 6, 7)."""
