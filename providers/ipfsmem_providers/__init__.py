"""Providers: storage for sealed bundles. Found by entry point; the core imports none of them."""
