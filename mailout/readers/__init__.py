"""What readers do: they join, they are welcomed, they read on the web."""
