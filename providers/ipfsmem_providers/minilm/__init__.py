"""Local embeddings by all-MiniLM-L6-v2, from the extra `semantic`: no network, no other program."""
