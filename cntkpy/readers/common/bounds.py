"""Bounds of memory: how many bytes a file may make a reader hold at a time."""

BELIEVED_BYTES = 256 << 20
"""Decoded bytes that any file may have at a time."""
BELIEVED_RATIO = 64
"""Decoded bytes at a time for each byte of a larger file."""
MEMBER_BYTES, MEMBER_RATIO = 16 << 20, 16
"""Bytes of a member of a compressed archive: its numbers take several times its bytes."""


def most_decoded(nbytes: int) -> int:
    """Return the most bytes that a part of a file, read at a time, may have once it is decoded.

    Args:
        nbytes: bytes of the file.
    """
    return max(BELIEVED_BYTES, BELIEVED_RATIO * nbytes)


def most_in_member(nbytes: int) -> int:
    """Return the most bytes that a member of a compressed archive may have.

    Args:
        nbytes: bytes of the archive, compressed.
    """
    return max(MEMBER_BYTES, MEMBER_RATIO * nbytes)
