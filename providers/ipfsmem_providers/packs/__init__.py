"""Common parts of folder and bucket: blocks in packs, pins and records in object stores."""
