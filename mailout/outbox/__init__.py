"""How a message is sent once, when, and what came back."""
