"""This device's disk: the lock, atomic files, the SQLite file, the state on it, files that others edit."""
