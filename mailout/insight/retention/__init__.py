"""Old mailouts leave the store for an archive."""
