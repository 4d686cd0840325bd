"""Causality: clocks, signed values, join, prefix trees and the view. Pure; no disk, no network."""
