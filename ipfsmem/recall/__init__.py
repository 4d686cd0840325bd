"""Ranks entries for a query: terms, postings, scores and embeddings. Pure functions without I/O."""
