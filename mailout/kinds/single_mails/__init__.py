"""One mail to one person."""
