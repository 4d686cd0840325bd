"""Common parts of HTTP providers: one client with its limits, answers, bodies, errors."""
