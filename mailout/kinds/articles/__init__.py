"""An article: a text for each reader, from slices."""
