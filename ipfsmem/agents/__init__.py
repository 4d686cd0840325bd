"""Integration with agents' programs on this device: projects, adopted memories, hooks, background sync."""
