"""Translates other programs' memory calls (names, arguments, defaults and texts) to operations on a vault."""
