"""Key ring: signed membership statements, their meaning, and operations on them (format section 4).

Pure values without I/O; rings join in any order.
"""
