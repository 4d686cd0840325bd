"""Scan, render and attach linked folders, which are folders of plain files that other programs write too; export to
disk.

A change that was not read is never overwritten.
"""
