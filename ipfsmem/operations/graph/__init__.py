"""The operations on the graph: its entities, and the relations between them."""
