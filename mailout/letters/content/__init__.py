"""What is sent: a source becomes a subject, HTML and text, once; per recipient only marks are filled."""
