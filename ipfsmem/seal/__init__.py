"""Sealing: cryptographic primitives, sealed objects, compression, and secrets at rest (format section 3).

Pure functions on bytes; `ring` chooses the key.
"""
