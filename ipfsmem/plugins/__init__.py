"""Plugins with memories of other programs, enabled by a person, each in its own process."""
