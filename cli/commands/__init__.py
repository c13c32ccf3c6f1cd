"""One module for each command of `mailout`."""
