"""A reader of the format written from docs/FORMAT.md alone: naive, slow, and without a line of `ipfsmem`. It only reads.

What it makes of an input is held against this package and against the TypeScript client; a place where it had to guess is an unclear
place of that page.
"""
