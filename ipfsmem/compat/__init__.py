"""Other programs' memory calls on a vault: their names, arguments, defaults and texts, translated to our operations."""
