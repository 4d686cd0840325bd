"""The operations on model usage, each declared once."""
