"""The parts of an open memory: each a small object with its own methods, found as an attribute of `Memory`."""
