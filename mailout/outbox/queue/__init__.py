"""The queue: what a mailout is while it waits, why it waits, and what is sent next."""
