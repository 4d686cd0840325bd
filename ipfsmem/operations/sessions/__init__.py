"""The operations on sessions, the conversations of an agent."""
