"""Common parts of folders, buckets and git repositories: blocks in packs, pins and records in object stores."""
