"""The operations on memories on this device: read, list, write, forget, undo, scopes, import (format 1, 5).

Works on the state in `device`; never on the network.
"""
