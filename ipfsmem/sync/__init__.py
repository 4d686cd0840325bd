"""From this device to the others: commits, heads, name records, fetch-verify-join-publish, and the provider contract."""
