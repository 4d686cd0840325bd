"""How devices agree: clocks, signed values, join, prefix trees, the view. Values in, values out; no disk, no network."""
