"""The items of a session as messages for a model: four shapes, and how a session is resumed, compacted and shown. Values and
functions of values."""
