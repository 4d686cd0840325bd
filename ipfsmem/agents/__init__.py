"""Agents' programs on this device: which folder is which project, what they remember, what they are told, when it is synced."""
