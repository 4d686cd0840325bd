"""What a look through all memories of a scope would tidy up: proposals as values. Nothing here changes a memory."""
