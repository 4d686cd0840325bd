"""What the items of a session say to a model: messages in four shapes, how a session is resumed, compacted and shown. Values and
functions of values."""
