"""A vault that is open: how it is created, opened and synced, what all operations share of it, and the audit."""
