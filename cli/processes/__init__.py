"""What starts processes or talks to Prefect."""
