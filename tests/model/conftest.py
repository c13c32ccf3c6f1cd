"""The stores of the contract tests."""

from tests.contract.conftest import factory, folder

__all__ = ["factory", "folder"]
