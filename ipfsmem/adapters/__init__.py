"""Memory inside of agents' frameworks: one module for each, which translates what that framework asks into calls of `Memory`.

No framework is imported before somebody asks for its adapter; one that is missing is a UsageError that names the extra.
"""
