"""Other programs' memory calls over a vault: their names, arguments, defaults and texts, translated to our operations."""
