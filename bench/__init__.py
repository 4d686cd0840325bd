"""Speed and size of ipfsmem, next to reading and hashing the same bytes: `python -m bench --help`.

Corpora are made from a seed, and compared programs are timed in the same run. No result is a test failure."""
