"""The HTTP API of an unlocked memory, for programs on this machine. What serves sealed blocks to other devices is `http/`."""
