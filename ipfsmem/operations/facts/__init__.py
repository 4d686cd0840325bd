"""The operations on facts, procedures and episodes."""
