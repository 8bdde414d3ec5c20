"""Checks of plug-ins, for their tests."""

from readers.testing import check_deserializer, check_reader

__all__ = ["check_deserializer", "check_reader"]
