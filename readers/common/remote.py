"""Data behind a URL, read by fsspec in ranges of bytes: the same methods as of a local file."""

from __future__ import annotations

import importlib
import io
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Any, BinaryIO, TypeVar, cast

import numpy as np

from cntk_config.base.diagnostics import UserError
from cntk_config.base.extras import how_to_install
from cntk_config.base.retry import RETRY_SECONDS
from readers.common.position import Position
from readers.errors import DataError

log = logging.getLogger("cntkpy.readers")
BLOCK = 4 << 20
"""Bytes of a request at least; fewer at the end of the object."""
KEPT = 64 << 20
"""Bytes that are kept of an object."""
LASTING = (FileNotFoundError, PermissionError, IsADirectoryError, NotImplementedError, ValueError)
"""Errors after which another attempt fails, too."""
FORBIDDEN, GONE = (401, 403), (404, 410)
"""Answers of HTTP that say so."""
_SECRETS = re.compile(r"(?<=://)[^/@]*@|[?#].*")
T = TypeVar("T")


class RemoteBytes:
    """An object behind a URL, at any place and from any thread.

    Args:
        url: where it is. Credentials come from the places that fsspec looks at.

    Raises:
        DataError: it is not there, or cannot be read after several attempts; also of the methods.
        UserError: a package is missing.
    """

    descriptor = -1
    """Kernels cannot read from it."""
    packed = False
    """Whether it is compressed."""
    local = False
    """Whether it is a file of this machine."""

    def __init__(self, url: str) -> None:
        self.path = shown(url)
        self._system, self._name = _system(url, self.path)
        info: dict[str, Any] = self._tried(lambda: self._system.info(self._name), "cannot be opened")
        size = info.get("size")
        if info.get("type") == "directory" or not isinstance(size, int) or size < 0:
            what = "is a folder" if info.get("type") == "directory" else "has no known size"
            raise DataError(f"The data at {self.path} cannot be read: it {what}.", path=self.path)
        self.size = size
        self._blocks: OrderedDict[int, bytes] = OrderedDict()
        self._lock = Lock()

    def read(self, into: np.ndarray, at: int) -> None:
        """Fill a uint8 array from byte `at` on."""
        if at + len(into) > self.size:
            raise self.cut_short()
        first, last = at // BLOCK, (at + len(into) - 1) // BLOCK
        view, got = into.data, 0
        if last > first + 1:  # a chunk: one request
            found = self._fetch(at, at + len(into))
            view[:] = found
            return
        while got < len(view):
            got += self.read_some(view[got:], at + got)

    def read_some(self, view: memoryview, at: int) -> int:
        """Read some bytes from byte `at` on; 0 at the end."""
        if at >= self.size or not len(view):
            return 0
        number = at // BLOCK
        content = self._block(number)
        found = memoryview(content)[at - number * BLOCK :][: len(view)]
        view[: len(found)] = found
        return len(found)

    def bytes(self, at: int, length: int) -> bytes:
        """These bytes; fewer at the end."""
        out = np.empty(max(0, min(length, self.size - at)), np.uint8)
        if len(out):
            self.read(out, at)
        return out.tobytes()

    def stream(self, buffering: int = -1) -> BinaryIO:
        """The object as a file of its own position."""
        raw = Position(self)
        return cast("BinaryIO", io.BufferedReader(raw, 1 << 16) if buffering else raw)

    def close(self) -> None:
        """Let go of what is kept."""
        with self._lock:
            self._blocks.clear()

    def cut_short(self) -> DataError:
        """The error of an object that has fewer bytes than it had."""
        return DataError(f"The data at {self.path} became shorter while they were read.", path=self.path)

    def _block(self, number: int) -> bytes:
        with self._lock:  # two threads do not ask for the same block at once
            if number in self._blocks:
                self._blocks.move_to_end(number)
                return self._blocks[number]
            found = self._fetch(number * BLOCK, min(self.size, (number + 1) * BLOCK))
            self._blocks[number] = found
            while len(self._blocks) > KEPT // BLOCK:
                self._blocks.popitem(last=False)
            return found

    def _fetch(self, begin: int, end: int) -> bytes:
        """These bytes, all of them: an answer with fewer counts as a failure."""

        def ask() -> bytes:
            found: bytes = self._system.cat_file(self._name, start=begin, end=end)
            if len(found) != end - begin:
                raise OSError(f"{len(found)} bytes came instead of {end - begin}")
            return found

        return self._tried(ask, f"cannot be read at byte {begin}")

    def _tried(self, ask: Callable[[], T], what: str) -> T:
        """The result of a request, which is made again after failures that may pass."""
        for wait in (*RETRY_SECONDS, None):
            try:
                return ask()
            except Exception as raised:  # each file system has exceptions of its own
                if isinstance(raised, UserError | ImportError):
                    raise
                error = _cause(raised)
                reason = _reason(error, self._name)
                if wait is None or isinstance(error, LASTING):
                    times = "" if wait is not None else f", {len(RETRY_SECONDS) + 1} times"
                    hint = "check the URL" if isinstance(error, LASTING) else "check the network and the server"
                    message = f"The data at {self.path} {what}: {reason}{times}."
                    raise DataError(message, path=self.path, hint=hint) from None
                log.warning("WARNING: %s %s: %s; trying again in %g s", self.path, what, reason, wait)
                time.sleep(wait)
        raise AssertionError("the last attempt returns or raises")


def shown(url: str) -> str:
    """A URL without what may be secret in it: a user with a password, and the query."""
    return _SECRETS.sub("", url)


def _cause(error: Exception) -> Exception:
    """What went wrong: fsspec says of a server that does not answer that there is no such object."""
    cause = error.__cause__ if isinstance(error, FileNotFoundError) else None
    status = getattr(cause or error, "status", None)  # of an answer by HTTP
    if status in FORBIDDEN:
        return PermissionError(f"the server forbids it ({status})")
    if status in GONE:
        return FileNotFoundError()
    return cause if isinstance(cause, Exception) else error


def _reason(error: Exception, name: str) -> str:
    """Why a request failed, in one line, without the URL."""
    if isinstance(error, FileNotFoundError):
        return "there is no such object"
    text = " ".join(str(error).replace(name, shown(name)).split())
    return _SECRETS.sub("", text)[:300].rstrip(".") or type(error).__name__


def _system(url: str, path: str) -> tuple[Any, str]:
    """The file system of a URL, and the name of the object in it."""
    try:
        core = importlib.import_module("fsspec.core")
    except ImportError as error:
        raise UserError(
            "MissingPackage",
            f"{path} is read by fsspec, which is not installed: {error}",
            hint=how_to_install("remote"),
        ) from error
    try:
        system, name = core.url_to_fs(url)
        return system, name
    except ImportError as error:
        raise UserError(
            "MissingPackage", f"{path} needs a package that is not installed: {error}", hint="pip install it"
        ) from error
    except Exception as error:  # each file system has exceptions of its own
        raise DataError(
            f"The data at {path} cannot be opened: {_reason(error, url)}.", path=path, hint="check the URL"
        ) from None
