"""What Prometheus gets: counted where it happens, kept in the store, put together when it is asked for."""
