"""This device's disk: the lock, atomic files, the database, the state in it, and the one way to write to it.

Nothing here opens a socket. Which mode seals what on the disk is decided in `ipfsmem.mode`.
"""
