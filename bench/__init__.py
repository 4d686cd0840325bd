"""Speed and size of ipfsmem, measured beside reading and hashing the same bytes: `python -m bench --help`.

Everything is timed on corpora made from a seed, in the same run as the programs that it is compared with. Nothing here is
a test: a slow machine makes numbers worse, never red.
"""
