"""Sync a vault with its providers: find, verify, join and publish versions, and check published data (format 6, 7)."""
