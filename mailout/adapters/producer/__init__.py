"""A producer's SQLite queue of notifications: the only code that touches its tables. It changes no schema."""
