"""Sealing: primitives, sealed objects, their compression, and secrets at rest (format 3).

Pure functions on bytes; `ring` chooses the key.
"""
