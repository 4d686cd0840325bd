"""The contract with whatever keeps blocks, and everything around a provider: opening, outages, probing, what it is good for.

The providers themselves are a package of their own, found by entry point.
"""
