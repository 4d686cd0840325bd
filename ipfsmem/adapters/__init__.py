"""Memory inside agents' frameworks: one module for each, which translates its calls into calls of `Memory`.

No framework is imported before its adapter is used; a missing one is a UsageError that names the extra.
"""
