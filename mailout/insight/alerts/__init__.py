"""Telling a person what needs them: by mail to `ADMIN_EMAIL`, as events to Prefect, in the log."""
