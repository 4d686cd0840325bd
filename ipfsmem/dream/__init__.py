"""Dreams: proposals to tidy up all memories of a scope, as values. Nothing here changes a memory."""
