"""What a published root contains, its reader and its writer together: layout, commit, name record, versions (format 6, 7).

It neither chooses a provider nor sends anything.
"""
