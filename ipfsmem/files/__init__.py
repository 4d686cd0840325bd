"""Working copies: folders of plain files that other programs write too. Scan, render, attach; exports to disk.

Nothing that changed unseen is ever overwritten.
"""
