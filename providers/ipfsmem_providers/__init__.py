"""Providers: where sealed bundles are kept. Found by entry point; the core imports none of them."""
