"""Memories of other programs beside this one: plugins that a person switched on, each in a process of its own."""
