"""Checks of plug-ins, for their tests."""

from cntkpy.cntk_config.base.extras import need_to_import

need_to_import("data", "cntkpy.testing")

from cntkpy.readers.testing import check_deserializer, check_reader, check_writer

__all__ = ["check_deserializer", "check_reader", "check_writer"]
