"""The operations on values under free keys."""
