"""The dashboard: pages on which people see what goes out, and steer it. Rendered here; no build step."""
