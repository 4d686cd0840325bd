"""Ranks entries for a question: terms, postings, weights. Values and functions of values."""
