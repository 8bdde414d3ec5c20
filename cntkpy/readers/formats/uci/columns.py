"""Which fields of a line of a UCI file are read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Columns:
    """Which fields of a line are read. kind: "none", "category" or "regression"."""

    features: str
    first_feature: int
    dim: int
    labels: str = ""
    kind: str = "none"
    first_label: int = 0
    label_dim: int = 0
    delimiter: str = ""
    decimal_point: str = ""

    def translation(self) -> bytes | None:
        """Table that turns separators into blanks and the decimal point into a dot; None if they are so already."""
        if not self.delimiter and self.decimal_point in ("", "."):
            return None
        table = bytearray(range(256))
        if self.decimal_point not in ("", "."):
            table[ord(".")] = 1
            table[ord(self.decimal_point)] = ord(".")
        if self.delimiter:
            table[ord(self.delimiter)] = ord(" ")
        return bytes(table)
