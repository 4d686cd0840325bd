"""A vault's content in plain text: keys, memory files, index, timeline and portable blob (format section 1).

Pure functions on values: no I/O, no clock, no encryption.
"""
