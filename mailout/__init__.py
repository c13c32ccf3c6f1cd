"""mailout's core: plain Python that knows neither Prefect nor HTTP, and reaches the world through ports."""

__version__ = "0.1.0"
