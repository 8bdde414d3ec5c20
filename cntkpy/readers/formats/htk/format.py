"""The bytes of an HTK feature file: a header of 12 bytes, then frames. Nothing here opens a file.

int32 frames, int32 period (in 100 ns), uint16 bytes per frame, uint16 kind; big-endian as a rule
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from cntkpy.readers.errors import DataError

HEADER = 12
MOST_VALUES = 16383
"""Values of a frame at most: its bytes are counted in 16 bits, signed in many programs."""
BASES = {6: "MFCC", 7: "FBANK", 9: "USER", 11: "PLP", 12: "USER"}
STREAM, GUID = 12, 16
COMPRESSED, CHECKSUM, QUANTIZED = 0o2000, 0o10000, 0o40000
QUALIFIERS = {"E": 0o100, "D": 0o400, "N": 0o200, "A": 0o1000, "T": 0o100000, "Z": 0o4000, "0": 0o20000}
"""Qualifiers that are part of the name of a kind, in the order in which they stand in it."""
_NAMES = ("WAVEFORM", "LPC", "LPREFC", "LPCEPSTRA", "LPDELCEP", "IREFC", "MFCC", "FBANK", "MELSPEC", "USER", "DISCRETE")


@dataclass(frozen=True)
class Header:
    """Header of a feature file. data: offset of the first frame; dim: values of a frame."""

    frames: int
    period: int
    frame_bytes: int
    code: int
    big: bool
    kind: str
    dim: int
    data: int

    @property
    def compressed(self) -> bool:
        """True if values are int16, scaled per dimension."""
        return bool(self.code & COMPRESSED) and self.code != STREAM

    def pack(self) -> bytes:
        """Return the 12 bytes."""
        frames = self.frames + 4 * self.compressed
        return struct.pack(">iiHH" if self.big else "<iiHH", frames, self.period, self.frame_bytes, self.code)


def kind_code(name: str) -> int:
    """Return the number of a kind like USER or MFCC_E_D_A; DataError if there is none."""
    base, *qualifiers = name.upper().split("_")
    codes = {text: code for code, text in BASES.items() if code != STREAM}
    known = QUALIFIERS | {"C": COMPRESSED}
    if "K" in qualifiers:
        raise DataError(
            f"'{name}': files with a checksum are read but not written: how HTK computes it is not documented.",
            hint="leave _K out",
        )
    if base not in codes or any(q not in known for q in qualifiers):
        raise DataError(
            f"'{name}' is not a kind of HTK features.",
            hint=f"write {', '.join(codes)}, followed by any of {' '.join('_' + q for q in known)}",
        )
    return codes[base] | sum(known[q] for q in set(qualifiers))


def kind_name(code: int, guid: bytes = b"") -> str:
    """Return the name of a kind; two files belong together only if theirs are the same."""
    if code == STREAM:
        return "USER;" + guid.hex()
    return BASES[code & 63] + "".join("_" + name for name, bit in QUALIFIERS.items() if code & bit)


def make_header(
    frames: int, dim: int, *, period: int = 100000, kind: str = "USER", big: bool = True, compressed: bool = False
) -> Header:
    """Return the header of a file to be written."""
    code = kind_code(kind) | COMPRESSED * compressed
    compressed = bool(code & COMPRESSED)
    if not 0 < dim <= MOST_VALUES:
        raise DataError(f"A frame of {dim} values cannot be written to an HTK file.", hint=f"1 to {MOST_VALUES} can")
    if not 0 <= frames < 2**31 - 4:
        raise DataError(f"{frames} frames are too many for one HTK file.", hint="write several files")
    size = dim * (2 if compressed else 4)
    return Header(frames, period, size, code, big, kind_name(code), dim, HEADER + 8 * dim * compressed)


def _fits(frames: int, size: int, code: int, length: int) -> bool:
    """Return whether a file of this length can have such a header: exactly, but for a checksum at its end."""
    extra = {0, 2} if code & CHECKSUM else {0, GUID} if code == STREAM else {0}
    return frames >= 0 and length - HEADER - frames * size in extra


def parse_header(head: bytes, length: int, path: str) -> Header:
    """Return the header in the first bytes (28 if there are so many) of a file of `length` bytes, or a DataError."""
    if len(head) < HEADER:
        raise DataError(
            f"{path} is not an HTK feature file: it has {length} bytes, the header alone has {HEADER}.", path=path
        )
    readings = {big: struct.unpack(">iiHH" if big else "<iiHH", head[:HEADER]) for big in (True, False)}
    fitting = [big for big, (n, _, size, code) in readings.items() if _fits(n, size, code, length)]
    if len(fitting) != 1:  # the rule of CNTK: the smaller period is the likely one
        fitting = [readings[True][1] & 0xFFFFFFFF < readings[False][1] & 0xFFFFFFFF]
    big = fitting[0]
    frames, period, size, code = readings[big]
    if code & 63 not in BASES:
        name = dict(enumerate(_NAMES)).get(code & 63, code & 63)
        raise DataError(
            f"{path}: features of kind {name} (byte 10 of the header) are not supported.",
            path=path,
            hint="MFCC, FBANK, PLP and USER are; is this an HTK feature file?",
        )
    if code & QUANTIZED:
        raise DataError(f"{path}: vector-quantized features (_V) are not supported.", path=path)
    stream = code == STREAM and length != HEADER + frames * size  # CNTK's has 16 bytes more, HTK's (ANON) has none
    compressed = bool(code & COMPRESSED)
    width = 2 if compressed else 4
    if size == 0 or size % width:
        raise DataError(
            f"{path}: a frame of {size} bytes (byte 8 of the header) does not consist of values of {width} bytes.",
            path=path,
        )
    dim = size // width
    if compressed:
        frames -= 4
    if frames < 0:
        raise DataError(f"{path}: the header says that there are {frames} frames.", path=path)
    data = HEADER + GUID * stream + 8 * dim * compressed
    if data + frames * size > length:
        raise DataError(
            f"{path} is shorter than its header says: {frames} frames of {size} bytes are {data + frames * size} "
            f"bytes with the header, the file has {length}.",
            path=path,
            hint="the file was cut short, or it is not an HTK feature file",
        )
    kind = kind_name(code, head[HEADER : HEADER + GUID]) if stream or code != STREAM else BASES[STREAM]
    return Header(frames, period, size, code, big, kind, dim, data)


def scales(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a and B (float32[dim] each) with which values become int16: s = A x - B."""
    low, high = values.min(axis=0, initial=np.inf), values.max(axis=0, initial=-np.inf)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        a = np.float64(2 * 32767) / (high.astype(np.float64) - low)
        b = (high.astype(np.float64) + low) * a / 2
        same = ~np.isfinite(a) | ~np.isfinite(b) | (a.astype(np.float32) == np.inf)
    a[same], b[same] = 1, np.where(np.isfinite(high), high, 0)[same]
    return a.astype(np.float32), b.astype(np.float32)


def compress(values: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Values as int16."""
    return np.clip(np.rint(values * a.astype(np.float64) - b), -32768, 32767).astype(np.int16)


def expand(shorts: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Expand the int16 values of `compress` to float32."""
    return ((shorts.astype(np.float32) + b) / a).astype(np.float32)
