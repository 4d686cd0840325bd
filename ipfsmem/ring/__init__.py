"""Key ring: signed membership statements, their evaluation, and operations on them (format section 4).

Pure values without I/O; joins of rings are commutative.
"""
