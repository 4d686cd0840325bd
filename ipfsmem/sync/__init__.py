"""From this device to the others and back: find, verify, join, publish, look after what was published (format 6, 7)."""
