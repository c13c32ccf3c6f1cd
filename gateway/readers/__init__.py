"""The pages for readers: join, choose, unsubscribe, read on the web."""
