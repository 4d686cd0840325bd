"""A reader of the format, written from docs/FORMAT.md alone: simple, slow, read-only, and without a line of
`ipfsmem`.

Its results are compared with those of this package and of the TypeScript client; where it had to guess,
that document is unclear."""
