"""Import memories of other programs, and export memories in their formats."""
