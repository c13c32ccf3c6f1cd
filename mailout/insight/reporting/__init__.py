"""What became of a mailout, for people and spreadsheets: CSV, summary, plot, and each way to show them."""
