"""The outbox and its sender: states, the protocol between sender and store, pacing, retries."""
