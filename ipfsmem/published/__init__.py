"""Published roots, reading and writing: layout, commit, name record, versions (format 6, 7).

No provider is chosen and nothing is sent here.
"""
