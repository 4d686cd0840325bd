"""Read and write published roots: layout, commits, name records, versions (format sections 6, 7).

No module here calls a provider.
"""
