"""Checks of plug-ins, for their tests."""

from readers.testing import check_reader

__all__ = ["check_reader"]
