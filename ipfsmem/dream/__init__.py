"""Dreams: proposals to clean up the memories of a scope. Pure functions, which change no memory."""
