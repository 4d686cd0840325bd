"""Reads the items of a session as messages of a model, and resumes, compacts and renders sessions. Pure functions."""
