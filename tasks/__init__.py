"""Thin Prefect tasks over the core: build, call, log. Batches, never one per recipient.

Nothing here is retried by Prefect unless repeating it is safe; what sends is never retried, its retries
belong to the outbox.
"""
