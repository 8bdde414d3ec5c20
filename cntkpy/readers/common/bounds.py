"""Bounds of memory: how many bytes a file may make a reader hold at a time."""

BELIEVED_BYTES = 256 << 20
"""Decoded bytes that any file may have at a time."""
BELIEVED_RATIO = 64
"""Decoded bytes at a time for each byte of a larger file."""


def most_decoded(nbytes: int) -> int:
    """Return the most bytes that a part of a file, read at a time, may have once it is decoded.

    Args:
        nbytes: bytes of the file.
    """
    return max(BELIEVED_BYTES, BELIEVED_RATIO * nbytes)
