"""A page or a file becomes a mailout in the queue."""
