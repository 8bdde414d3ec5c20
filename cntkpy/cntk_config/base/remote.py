"""Objects behind URLs, read in ranges of bytes and written whole by fsspec, with retries and limits of time.

Nothing is kept here.
"""

from __future__ import annotations

import errno
import importlib
import json
import logging
import os
import re
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import PurePosixPath
from typing import Any, TypeVar

from cntkpy.cntk_config.base import http
from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.extras import command_for, how_to_install
from cntkpy.cntk_config.base.names import masked, public_name, reveals, without_secrets
from cntkpy.cntk_config.base.retry import RETRY_SECONDS

log = logging.getLogger("cntkpy.files")
LASTING = (FileNotFoundError, PermissionError, IsADirectoryError, NotImplementedError, ValueError)
"""Errors after which another attempt fails, too."""
FORBIDDEN, GONE = (401, 403), (404, 410)
"""Answers of HTTP that say so."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Numbers of errors of a disk that has no room."""
TIMEOUT_SETTING = "CNTKPY_URL_TIMEOUT_SECONDS"
"""The variable of the environment with the seconds for which a server may send nothing."""
USUAL_TIMEOUT_SECONDS = 30.0
SLOWEST = 64 << 10
"""Bytes a second that a server sends at least; a request that brings fewer has failed."""
LOCAL = {"file", "local", "memory"}
"""Protocols of what is on this machine."""
WHOLE = {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oss", "hf", "http", "https", "memory"}
"""Protocols of stores where an object appears when the last byte of it has come. Elsewhere it is renamed at the end."""
READS_AHEAD = {"hf"}
"""Protocols that read megabytes behind the end of a range unless `cache_type` says no."""
PACKAGES = {
    "hf": "huggingface_hub",
    "http": "aiohttp",
    "https": "aiohttp",
    "s3": "s3fs",
    "s3a": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "az": "adlfs",
    "abfs": "adlfs",
    "abfss": "adlfs",
}
"""The package that fsspec needs for a scheme."""
SIGNATURES = (
    (
        {"x-amz-signature", "x-amz-credential"},
        re.compile("x-amz-(algorithm|credential|date|expires|security-token|signature|signedheaders)"),
    ),
    (
        {"x-goog-signature", "x-goog-credential"},
        re.compile("x-goog-(algorithm|credential|date|expires|signature|signedheaders)"),
    ),
    ({"awsaccesskeyid", "signature", "expires"}, re.compile("awsaccesskeyid|signature|expires")),
    ({"googleaccessid", "signature", "expires"}, re.compile("googleaccessid|signature|expires")),
    ({"key-pair-id", "signature"}, re.compile("key-pair-id|signature|expires|policy")),
    ({"sig", "sv", "se"}, re.compile("sig|se|st|ske|skt")),
)
"""Of S3, Google's and Azure's stores and CloudFront: the parameters by which a signed URL is known, and those that
change with each signature of the same object."""
_ETAGS = ("ETag", "etag", "Content-MD5", "Digest", "md5Hash", "blob_id", "content_hash")
_TIMES = ("LastModified", "last_modified", "Last-Modified", "mtime", "updated", "modified")
T = TypeVar("T")


class RemoteError(OSError):
    """An object cannot be read or written; `strerror` says why, `filename` is the URL without its secrets."""

    def __init__(self, problem: str, url: str, hint: str) -> None:
        super().__init__(errno.ECONNABORTED, problem, public_name(url))
        self.hint = hint


class RemoteMissing(RemoteError, FileNotFoundError):
    """There is no such object."""


class RemoteObject:
    """An object behind a URL.

    Args:
        url: where it is. Credentials come from the places that fsspec looks at.

    Raises:
        RemoteError: it is not there, or cannot be read after several attempts; also of the methods.
        UserError: a package is missing.
    """

    def __init__(self, url: str) -> None:
        self.url = str.__str__(url)
        self.shown = public_name(url)
        self._system, self._name = _system(self.url)
        self._options = {"cache_type": "none"} if _protocol(self._system) & READS_AHEAD else {}
        info = self._tried(self._info, "cannot be opened")
        size = info.get("size")
        if info.get("type") == "directory" or not isinstance(size, int) or size < 0:
            reason = "it is a folder" if info.get("type") == "directory" else "it has no known size"
            raise RemoteError(reason, url, "check the URL")
        self.size = size
        self.stamp = self._stamp(info)
        """Version stamp, which differs when the object has changed; empty if the server says nothing of the kind."""

    def start(self, count: int) -> bytes:
        """Return the first bytes, fewer if the object is shorter."""
        return self._fetch(0, min(count, self.size), prefix=True)

    def fetch(self, begin: int, end: int) -> bytes:
        """Return the bytes begin .. end - 1, all of them: an answer with fewer counts as a failure.

        Raises:
            RemoteError: they cannot be read. NoRanges: the server sends the whole object only.
        """
        return self._fetch(begin, end)

    def _fetch(self, begin: int, end: int, prefix: bool = False) -> bytes:

        def ask() -> bytes:
            limit = seconds_for(end - begin)
            if self._is_http:
                data = http.fetch(self._system, self._name, begin, end, self.size, stall_seconds(), limit, prefix)
            else:
                read: Callable[[], bytes] = lambda: self._system.cat_file(  # noqa: E731
                    self._name, start=begin, end=end, **self._options
                )
                data = _within(self._system, limit, read)
            if len(data) != end - begin:
                raise OSError(f"{len(data)} bytes came instead of {end - begin}")
            return data

        return self._tried(ask, f"cannot be read at byte {begin}") if end > begin else b""

    def download(self, write: Callable[[bytes], object], restart: Callable[[], object]) -> None:
        """Pass the object to `write` piece by piece, over http in one request. `restart` is called before each attempt.

        Raises:
            RemoteError: it cannot be read.
        """
        count = 0

        def keep(piece: bytes) -> None:
            nonlocal count
            count += len(piece)
            if count <= self.size:
                write(piece)

        def ask() -> None:
            nonlocal count
            count = 0
            restart()
            http.download(self._system, self._name, keep, stall_seconds(), seconds_for(self.size))
            if count != self.size:
                raise OSError(f"{count} bytes came instead of {self.size}")

        self._tried(ask, "cannot be read")

    @property
    def _is_http(self) -> bool:
        return bool(_protocol(self._system) & http.PROTOCOLS)

    def _info(self) -> dict[str, Any]:
        if self._is_http:
            return http.about(self._system, self._name, seconds_for(0))
        values: dict[str, Any] = _within(self._system, seconds_for(0), lambda: self._system.info(self._name))
        return values

    def _stamp(self, info: dict[str, Any]) -> str:
        """Return the identity of this version of the object: its URL, where that redirects to, settings, tag, time
        and size.

        Tags and times name a version of one URL only, so the query and the user are a part of it.
        """
        if _protocol(self._system) & LOCAL:
            return ""
        tag = next((str(info[name]) for name in _ETAGS if info.get(name)), "")
        changed = next((str(info[name]) for name in _TIMES if info.get(name)), "")
        if not (tag or changed):
            return ""
        urls = [without_signature(self.url), without_signature(str(info.get("url") or ""))]
        settings = repr(sorted(getattr(self._system, "storage_options", {}).items(), key=str))
        return json.dumps([*urls, settings, tag, changed, self.size])

    def _tried(self, ask: Callable[[], T], activity: str) -> T:
        return _tried(ask, self.url, self._name, activity)


def upload(path: str, url: str) -> None:
    """Write a local file to a URL. The object is there when all of it is.

    Raises:
        RemoteError: it cannot be written after several attempts.
        UserError: a package is missing.
    """
    system, name = _system(str.__str__(url))
    limit = seconds_for(os.stat(path).st_size)  # noqa: PTH116 - of an open file on some systems
    if _protocol(system) & WHOLE:
        _tried(lambda: _within(system, limit, lambda: system.put_file(path, name)), url, name, "cannot be written")
        return
    place = PurePosixPath(name)
    temporary = str(place.with_name(f".{place.name}.tmp"))

    def write() -> None:
        system.makedirs(str(place.parent), exist_ok=True)
        system.put_file(path, temporary)
        system.mv(temporary, name)

    _tried(lambda: _within(system, limit, write), url, name, "cannot be written")


def without_signature(url: str) -> str:
    """Return a URL without what a new signature of the same object changes; other parameters stay, in their order."""
    address, mark, query = url.partition("?")
    parameters = query.split("&")
    names = [parameter.partition("=")[0].lower() for parameter in parameters]
    for known, changing in SIGNATURES:
        if known <= {*names}:
            kept = [
                parameter for parameter, name in zip(parameters, names, strict=True) if not changing.fullmatch(name)
            ]
            return f"{address}?{'&'.join(kept)}"
    return f"{address}{mark}{query}"


def local_name(url: str) -> str | None:
    """Return the name of the local file that a URL of the scheme `file` means; None for other schemes."""
    scheme, _, address = str.__str__(url).partition("://")
    return address if scheme.lower() in ("file", "local") else None


@cache
def stall_seconds() -> float:
    """Return the seconds for which a server may send nothing, from the environment.

    Raises:
        UserError: the variable is not a number of seconds.
    """
    text = os.environ.get(TIMEOUT_SETTING, "").strip() or f"{USUAL_TIMEOUT_SECONDS:g}"
    if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6})?", text, re.ASCII) or not float(text):
        message = f"the variable {TIMEOUT_SETTING} of the environment is '{text}', not a number of seconds above 0"
        raise UserError("BadValue", message, hint=f"write {TIMEOUT_SETTING}={USUAL_TIMEOUT_SECONDS:g}")
    return float(text)


def seconds_for(count: int) -> float:
    """Return the limit in seconds of a request for `size` bytes."""
    return stall_seconds() + count / SLOWEST


def _within(system: Any, seconds: float, ask: Callable[[], T]) -> T:
    """Return the result of a request, made in a thread that is left alone when the time is over.

    Raises:
        TimeoutError: it is over.
    """
    if _protocol(system) & LOCAL:
        return ask()
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(ask())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="cntkpy-url", daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError
    return results[0]


def _protocol(system: Any) -> set[str]:
    protocol = system.protocol
    return {protocol} if isinstance(protocol, str) else set(protocol)


def _tried(ask: Callable[[], T], url: str, name: str, activity: str) -> T:
    """Return the result of a request, which is made again after failures that may pass."""
    for wait in (*RETRY_SECONDS, None):
        try:
            return ask()
        except Exception as raised:  # each file system has exceptions of its own
            if isinstance(raised, UserError | ImportError | http.NoRanges):
                raise
            error = _cause(raised)
            reason = _reason(error, name)
            is_full = isinstance(error, OSError) and error.errno in FULL
            if wait is None or is_full or isinstance(error, LASTING):
                times = "" if wait is not None else f", {len(RETRY_SECONDS) + 1} times"
                hint = "check the URL" if isinstance(error, LASTING) else "check the network and the server"
                hint = "make room on the disk of the caches and temporary files" if is_full else hint
                place = f"byte {activity.rpartition(' ')[2]}: " if " at byte " in activity else ""
                kind = RemoteMissing if isinstance(error, FileNotFoundError) else RemoteError
                raise kind(f"{place}{reason}{times}", url, hint) from None
            log.warning("WARNING: %s %s: %s; trying again in %g s", public_name(url), activity, reason, wait)
            time.sleep(wait)
    raise AssertionError("the last attempt returns or raises")


def _cause(error: Exception) -> Exception:
    """Return the cause of a failure: fsspec says of a server that does not answer that there is no such object."""
    cause = error.__cause__ if isinstance(error, FileNotFoundError) else None
    status = _status(cause or error)
    if status in FORBIDDEN:
        return PermissionError(f"the server forbids it ({status})")
    if status in GONE:
        return FileNotFoundError()
    return cause if isinstance(cause, Exception) else error


def _status(error: BaseException) -> int | None:
    """Return the status of an answer by HTTP: of aiohttp, or of requests and httpx."""
    return getattr(error, "status", None) or getattr(getattr(error, "response", None), "status_code", None)


def _reason(error: Exception, name: str) -> str:
    """Why a request failed, in one line, without the URL."""
    if isinstance(error, FileNotFoundError):
        return "there is no such object"
    if isinstance(error, TimeoutError) and error.errno is None:
        return f"no answer in time ({TIMEOUT_SETTING}={stall_seconds():g})"
    if isinstance(error, OSError) and error.errno in FULL:
        return error.strerror or "no room on the disk"
    text = masked(" ".join(str(error).replace(name, without_secrets(name)).split()))
    if reveals(text, name):  # a library quotes a part of the URL that it cannot read
        return f"{type(error).__name__}, whose message has a part of the password or of the query"
    return text[:300].rstrip(".") or type(error).__name__


def _system(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the name of the object in it."""
    shown = public_name(url)
    try:
        core = importlib.import_module("fsspec.core")
    except ImportError as error:
        message = f"{shown} is read by fsspec, which is not installed: {error}"
        raise UserError("MissingPackage", message, hint=how_to_install("remote")) from error
    try:
        system, name = core.url_to_fs(url)
        return system, name
    except ImportError as error:
        message = f"{shown} needs a package that is not installed: {error}"
        package = PACKAGES.get(url.partition("://")[0].lower())
        raise UserError("MissingPackage", message, hint=command_for([package]) if package else "install it") from error
    except Exception as error:  # each file system has exceptions of its own
        raise RemoteError(_reason(error, url), url, "check the URL") from None
