"""Encoded pictures to pixels, after a look at what they claim to be."""

from __future__ import annotations

import struct

import numpy as np

from cntkpy.readers.errors import DataError
from cntkpy.readers.formats.image.transforms.opencv import MOST_PIXELS, opencv
from cntkpy.readers.formats.image.transforms.transform import Picture

from .sizes import segment, size_of

MOST_BYTES = 1 << 28
"""No encoded picture may be larger: a container that claims more is broken, or a bomb."""
BLANK, BLANK_PIXELS = 2000, 1 << 26
"""Most pixels of a picture for each of its bytes, or in all: scans of blank pages have many."""
_SCAN = {0xDA}


class PictureError(DataError):
    """A picture that cannot be read; it may be left out if the reader has maxErrors."""


def decode(data: bytes, grayscale: bool = False) -> Picture:
    """Decode with OpenCV: uint8 (height, width, 3) in the order blue, green, red, or (height, width) if grayscale.

    The orientation that cameras note in EXIF is ignored, transparency is dropped, 16 bits become 8. Raises
    PictureError, without the place: bytes that are no picture, that end too soon, or whose size is beyond limits.
    """
    if not data:
        raise PictureError("it is empty (0 bytes)")
    try:
        size = size_of(data)
    except struct.error:
        if _ends_too_soon(data):
            raise _truncated(data) from None
        raise PictureError(f"its header is not whole ({_kind(data)})") from None
    if size is None:
        raise PictureError(
            f"OpenCV cannot decode it ({_kind(data)})", hint="use PNG, JPEG, BMP, GIF, WebP, TIFF or PPM"
        )
    if size[0] * size[1] > MOST_PIXELS:
        raise PictureError(
            f"it claims to be {size[0]} x {size[1]} pixels, more than the limit of {MOST_PIXELS}",
            hint="cut it into tiles, or make it smaller",
        )
    if size[0] * size[1] > max(BLANK_PIXELS, BLANK * len(data)):
        raise PictureError(
            f"it claims to be {size[0]} x {size[1]} pixels, more than {BLANK} for each of its {len(data)} bytes",
            hint="it is damaged, or nothing is on it; if it is right, make it smaller",
        )
    if _ends_too_soon(data):
        raise _truncated(data)
    cv2 = opencv()
    flags = (cv2.IMREAD_GRAYSCALE if grayscale else cv2.IMREAD_COLOR) | cv2.IMREAD_IGNORE_ORIENTATION
    try:
        picture = cv2.imdecode(np.frombuffer(data, np.uint8), flags)
    except cv2.error as error:
        raise PictureError(f"OpenCV cannot decode it: {' '.join(str(error.err).split())}") from None
    if picture is None or picture.size == 0:
        raise PictureError(f"OpenCV cannot decode it ({_kind(data)})")
    return picture


def _truncated(data: bytes) -> PictureError:
    return PictureError(f"it is truncated: {len(data)} bytes are there, but not the end of the picture")


def _kind(data: bytes) -> str:
    known = {b"\x89PNG": "PNG", b"\xff\xd8": "JPEG", b"BM": "BMP", b"GIF8": "GIF", b"RIFF": "WebP", b"II*\0": "TIFF"}
    name = next((name for mark, name in known.items() if data.startswith(mark)), None)
    return f"a damaged {name} file" if name else f"its first bytes {data[:8].hex(' ')} are of no known format"


def _ends_too_soon(data: bytes) -> bool:
    """Return whether the end of a JPEG or PNG file is missing: OpenCV would fill the rest with grey.

    A part of a PNG file that claims to be longer than the file counts, too: OpenCV would make room for it.
    """
    if data.startswith(b"\xff\xd8"):
        return not data.endswith(b"\xff\xd9") and data.rfind(b"\xff\xd9", segment(data, _SCAN)) < 0
    if not data.startswith(b"\x89PNG"):
        return False
    position = 8
    while position + 12 <= len(data) and data[position + 4 : position + 8] != b"IEND":
        position += 12 + int.from_bytes(data[position : position + 4], "big")
    return position + 8 > len(data)
