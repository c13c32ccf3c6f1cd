"""From a request to a mailout in the queue."""
