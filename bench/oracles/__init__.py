"""Recorded behaviour of this program, which a rebuild is compared with: each difference is a regression or has a reason."""
