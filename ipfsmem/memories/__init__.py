"""The operations on the memories of this device: read, list, write, forget, undo, scopes, import (format 1, 5).

Reads and writes the local database (`device`); never uses the network.
"""
