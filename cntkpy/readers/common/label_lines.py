"""The lines of a label mapping file, without NumPy: a check counts them, too."""

from __future__ import annotations

from collections.abc import Iterator


def label_lines(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield each label with the number of its line; empty lines and lines with # have none.

    Args:
        content: The text of the file, in UTF-8.
    """
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        label = line.strip(b" \t\r")
        if label and not label.startswith(b"#"):
            yield number, label
