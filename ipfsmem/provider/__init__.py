"""Providers: the contract, opening, probing and abilities.

The providers themselves are a separate package, found by entry point.
"""
