"""Telling a person what waits for him: by mail to `ADMIN_EMAIL`, as events to Prefect, in the log."""
