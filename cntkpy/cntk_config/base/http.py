"""Objects behind http and https: ranges of bytes, and streams from servers that know no ranges.

fsspec reads whatever a server sends into memory, also where it sends the whole object instead of a range. Here an
answer is read as far as it was asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

PROTOCOLS = {"http", "https"}
PIECE_BYTES = 1 << 20
"""Most bytes of a stream that are in memory."""
T = TypeVar("T")


class NoRanges(Exception):
    """The server sends the whole object where a range is asked for."""


def about(system: Any, url: str, seconds: float) -> dict[str, Any]:
    """Return fsspec's `info` of an object.

    Args:
        system: the file system of fsspec.
        url: the object.
        seconds: the limit of time.

    Raises:
        Exception: whatever fsspec and aiohttp raise; also of the other functions.
    """
    return _run(system, system._info(url), seconds)


def fetch(
    system: Any, url: str, begin: int, end: int, size: int, stall: float, seconds: float, prefix: bool = False
) -> bytes:
    """Return the bytes begin .. end - 1; fewer if the answer ends early.

    Args:
        system: the file system of fsspec.
        url: the object.
        begin: its first byte.
        end: the byte after the last.
        size: bytes of the object.
        stall: seconds that may pass without a byte.
        seconds: the limit of time for all.
        prefix: whether to read the beginning of the object from a server that knows no ranges.

    Raises:
        NoRanges: see there.
    """

    async def ask() -> bytes:
        whole = begin == 0 and end == size
        async with await _get(system, url, {} if whole else {"Range": f"bytes={begin}-{end - 1}"}, stall) as answer:
            if answer.status == 206:
                _check_range(answer.headers.get("Content-Range", ""), begin, size)
            elif begin or not (whole or prefix):
                raise NoRanges
            pieces: list[bytes] = []
            left = end - begin
            while left and (piece := await answer.content.read(min(left, PIECE_BYTES))):
                pieces.append(piece)
                left -= len(piece)
            return b"".join(pieces)

    return _run(system, ask(), seconds)


def download(system: Any, url: str, write: Callable[[bytes], object], stall: float, seconds: float) -> None:
    """Pass an object to `write`, at most `PIECE_BYTES` at a time.

    Args:
        system: the file system of fsspec.
        url: the object.
        write: is called in the thread of fsspec.
        stall: seconds that may pass without a byte.
        seconds: the limit of time for all.
    """

    async def ask() -> None:
        async with await _get(system, url, {}, stall) as answer:
            while piece := await answer.content.read(PIECE_BYTES):
                write(piece)

    _run(system, ask(), seconds)


async def _get(system: Any, url: str, headers: dict[str, str], stall: float) -> Any:
    """Return the answer to a request, whose body is not read yet and is not compressed for the way."""
    options = dict(system.kwargs)
    headers = {**options.pop("headers", {}), **headers, "Accept-Encoding": "identity"}
    aiohttp = importlib.import_module("aiohttp")
    options["timeout"] = aiohttp.ClientTimeout(total=None, sock_connect=stall, sock_read=stall)
    session = await system.set_session()
    answer = await session.get(system.encode_url(url), headers=headers, **options)
    try:
        answer.raise_for_status()
    except BaseException:
        answer.close()
        raise
    return answer


def _check_range(header: str, begin: int, size: int) -> None:
    """Compare the header Content-Range with what was asked for; a server may send none.

    Raises:
        OSError: other bytes come, or the object has another size than it had.
    """
    unit, _, span = header.strip().partition(" ")
    place, _, total = span.partition("/")
    if unit == "bytes" and place.partition("-")[0] not in ("", str(begin)):
        raise OSError(f"bytes {place} came instead of those from {begin} on")
    if unit == "bytes" and total.isdigit() and total != str(size):
        raise OSError(f"it has {total} bytes now instead of {size}: it has changed")


def _run(system: Any, request: Coroutine[Any, Any, T], seconds: float) -> T:
    """Return the result of a request, which ends when the time is over.

    Raises:
        TimeoutError: it is over.
    """

    async def ask() -> T:
        return await request

    return importlib.import_module("fsspec.asyn").sync(system.loop, ask, timeout=seconds)
