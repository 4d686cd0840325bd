"""Find, create, open, check, recover and rescue a vault, and read bundles of other people."""
