"""The HTTP API of an unlocked memory, for programs on this machine. `http/` serves encrypted blocks to other devices."""
