"""What `mailout doctor` checks; the vendors' own checks are with their adapters."""
