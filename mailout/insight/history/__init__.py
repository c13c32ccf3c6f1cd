"""What the dashboard looks back on: mailouts by page, counts over time, one person's mail, who did what."""
