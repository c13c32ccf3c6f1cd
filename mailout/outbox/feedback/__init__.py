"""What comes back: SES's events, unsubscribes, and what they do to messages and subscribers."""
