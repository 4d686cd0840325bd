"""The four modes: what each keeps on this disk, what it seals, what it publishes."""
