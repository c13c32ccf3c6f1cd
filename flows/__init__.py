"""Prefect flows: each reads as the story of one job."""
