"""The size of a picture is known before it is decoded, in every format that is decoded (R13)."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from cntkpy.readers.formats.image.decode import PictureError, decode
from cntkpy.readers.formats.image.sizes import size_of
from cntkpy.readers.formats.image.transforms.opencv import opencv


@pytest.mark.parametrize(
    "kind", ["png", "jpg", "bmp", "webp", "tiff", "ppm", "pgm", "pbm", "pam", "pfm", "hdr", "ras", "jp2"]
)
def test_sizes_of_pictures_that_opencv_writes(kind: str) -> None:
    cv2 = opencv()
    picture = np.zeros((50, 70, 3), np.float32 if kind in ("pfm", "hdr") else np.uint8)
    picture = picture[..., 0] if kind in ("pgm", "pbm") else picture
    good, data = cv2.imencode(f".{kind}", picture)
    assert good
    size = size_of(data.tobytes())
    assert size is not None
    if kind != "webp":
        assert sorted(size) == [50, 70]
    assert decode(data.tobytes()).shape[:2] == (50, 70)


BOMBS = {
    "ppm": b"P6\n# a bomb\n60000 60000\n255\n" + bytes(100),
    "pgm": b"P2 99999999999 3 255\n1 1 1",
    "pam": b"P7\nWIDTH 60000\nHEIGHT 60000\nDEPTH 3\nMAXVAL 255\nTUPLTYPE RGB\nENDHDR\n",
    "pfm": b"PF\n60000 60000\n-1.0\n",
    "hdr": b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 60000 +X 60000\n",
    "ras": struct.pack(">8I", 0x59A66A95, 60000, 60000, 24, 0, 1, 0, 0),
    "tiff": b"II*\0\x08\0\0\0"
    + struct.pack("<H", 2)
    + struct.pack("<HHIIHHII", 256, 4, 1, 60000, 257, 4, 1, 60000)
    + bytes(4),
    "bigtiff": b"II+\0\x08\0\0\0" + struct.pack("<QQHHQQHHQQQ", 16, 2, 256, 4, 1, 60000, 257, 4, 1, 60000, 0),
}


@pytest.mark.parametrize("kind", BOMBS)
def test_a_picture_that_claims_too_many_pixels(kind: str) -> None:
    with pytest.raises(PictureError, match="more than the limit"):
        decode(BOMBS[kind])


@pytest.mark.parametrize(
    "data", [b"P6\n", b"P7\nWIDTH 3\n", b"#?RADIANCE\n", b"II*\0\xff\0\0\0", b"\x59\xa6\x6a\x95\0"]
)
def test_a_header_that_is_not_whole(data: bytes) -> None:
    with pytest.raises(PictureError, match="not whole"):
        decode(data)


def test_a_format_that_is_not_known() -> None:
    with pytest.raises(PictureError, match="of no known format"):
        decode(b"\x76\x2f\x31\x01" + bytes(50))
