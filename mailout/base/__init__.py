"""What everybody may import: time, errors, ids, settings, logs, addresses."""
