"""Sealing: primitives, sealed objects, compression inside them, and secrets at rest (format 3).

Pure functions on bytes. Which key seals is decided in `ring`.
"""
