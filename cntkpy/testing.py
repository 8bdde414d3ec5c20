"""Checks of plug-ins, for their tests."""

from readers.testing import check_deserializer, check_reader, check_writer

__all__ = ["check_deserializer", "check_reader", "check_writer"]
