"""Entries ranked for a question: their terms, where these occur, and what counts how much. Values and functions of values."""
