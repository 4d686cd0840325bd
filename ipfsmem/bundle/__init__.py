"""What a memory is: keys, memory files, the index, the timeline and the portable blob (format section 1).

Pure functions on values. Nothing in this room reads a disk, a clock or the network, and nothing here encrypts.
"""
