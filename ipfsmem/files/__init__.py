"""Linked folders: folders of plain files that other programs write too. Scan, render, attach; exports to disk.

An unseen change is never overwritten.
"""
