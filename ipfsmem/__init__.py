"""Private, portable memory for AI agents."""
