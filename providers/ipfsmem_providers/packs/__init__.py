"""What a folder and a bucket share: blocks in packs, pins and records on shelves."""
