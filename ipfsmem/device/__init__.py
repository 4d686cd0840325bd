"""Store a vault on this device: locks, atomic files, the database, the state in it, and transactions of writes.

No module here opens a socket. `ipfsmem.mode` decides which data each mode seals on the disk.
"""
