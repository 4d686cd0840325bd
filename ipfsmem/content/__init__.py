"""Content addressing: CIDs, dag-pb, UnixFS files and folders, CAR files, and verification of untrusted blocks.

Pure functions on bytes without I/O.
"""
