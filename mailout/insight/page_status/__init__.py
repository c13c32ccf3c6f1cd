"""A mailout's Notion page and the errors database, kept up to date."""
