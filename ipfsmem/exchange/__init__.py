"""Import of other programs' memories, and export of ours in the forms of others."""
