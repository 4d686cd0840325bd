"""Providers: the contract, opening, outages, probing and abilities.

The providers themselves are a separate package, found by entry point.
"""
