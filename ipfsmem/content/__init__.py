"""Content addressing: CIDs, dag-pb, UnixFS files and folders, CAR files, and checking what strangers hand us.

Pure functions on bytes. Nothing here opens a file or a socket, or knows what a memory is.
"""
