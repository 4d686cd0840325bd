"""What people do with memories on this device: read, list, write, forget, undo, scopes, import (format 1, 5).

Works on the state that `device` keeps; never on the network.
"""
