"""What is measured, one module a subject: each has `run()`, which returns its numbers and a line of text."""
