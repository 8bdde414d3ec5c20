"""Arrays that the kernels for text take and fill, in named tuples."""

from __future__ import annotations

from typing import NamedTuple

from cntkpy.readers.kernels.kernel_types import Bools, Bytes, Int, Int32s, Int64s, Reals


class Runs(NamedTuple):
    """Pieces to read from an open file before parsing.

    **Fields:**

    - `descriptor`: of the file.
    - `from_`, `to`: first byte of each run, and the byte after its last one, int64[r].
    - `places`: where it goes in the buffer, int64[r].
    """

    descriptor: Int
    from_: Int64s
    to: Int64s
    places: Int64s


class Text(NamedTuple):
    """Sequences of text.

    **Fields:**

    - `buffer`: uint8, ends in LF, `PADDING` times.
    - `begins`, `ends`: sequence k is buffer[begins[k]:ends[k]], int64[n].
    - `nominal`: the length of each in the index, int32[n], or [1] if all have the same.
    """

    buffer: Bytes
    begins: Int64s
    ends: Int64s
    nominal: Int32s


class Streams(NamedTuple):
    """The streams that are parsed.

    **Fields:**

    - `names`: uint8, the names of all, concatenated.
    - `starts`: where each begins in `names`, int64[s + 1].
    - `dims`: int64[s].
    - `sparse`: bool[s].
    - `defining`: whether a stream defines the length of a sequence, bool[s].
    """

    names: Bytes
    starts: Int64s
    dims: Int64s
    sparse: Bools
    defining: Bools


class Output(NamedTuple):
    """Arrays that parsing fills.

    **Fields:**

    - `values`: float; `indices`: int32, as long as `values` if any stream is sparse.
    - `starts`: first value of each sample, int64[s, m]; `counts`: its entries, int32[s, m].
    - `bounds`: samples before each sequence, int64[s, n + 1].
    - `events`: int64[e, 4], see `events`.
    - `slows`: numbers that the caller has to convert, int64[k, 3]: first and end address, element.
    - `state`: int64[6], how far parsing is.
    """

    values: Reals
    indices: Int32s
    starts: Int64s
    counts: Int32s
    bounds: Int64s
    events: Int64s
    slows: Int64s
    state: Int64s
