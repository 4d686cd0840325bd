"""This device's disk: the lock, atomic files, the database, the state on it, and the one way to write to it.

Nothing here opens a socket. What a mode seals on disk is decided in `mode`.
"""
