"""Objects behind URLs, read in ranges of bytes and written whole by fsspec, with retries. Nothing is kept here."""

from __future__ import annotations

import errno
import importlib
import logging
import time
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any, TypeVar

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.extras import command_for, how_to_install
from cntkpy.cntk_config.base.names import masked, public_name, reveals, without_secrets
from cntkpy.cntk_config.base.retry import RETRY_SECONDS

log = logging.getLogger("cntkpy.files")
LASTING = (FileNotFoundError, PermissionError, IsADirectoryError, NotImplementedError, ValueError)
"""Errors after which another attempt fails, too."""
FORBIDDEN, GONE = (401, 403), (404, 410)
"""Answers of HTTP that say so."""
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
_ETAGS = ("ETag", "etag", "Content-MD5", "Digest", "md5Hash", "blob_id", "content_hash")
_TIMES = ("LastModified", "last_modified", "Last-Modified", "mtime", "updated", "modified")
T = TypeVar("T")


class RemoteError(OSError):
    """An object cannot be read or written; `strerror` says why, `filename` is the URL without its secrets."""

    def __init__(self, what: str, url: str, hint: str) -> None:
        super().__init__(errno.ECONNABORTED, what, public_name(url))
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
        info: dict[str, Any] = self._tried(lambda: self._system.info(self._name), "cannot be opened")
        size = info.get("size")
        if info.get("type") == "directory" or not isinstance(size, int) or size < 0:
            what = "it is a folder" if info.get("type") == "directory" else "it has no known size"
            raise RemoteError(what, url, "check the URL")
        self.size = size
        self.stamp = self._stamp(info)
        """What is another one when the object has changed; empty if the server says nothing of the kind."""

    def fetch(self, begin: int, end: int) -> bytes:
        """The bytes begin .. end - 1, all of them: an answer with fewer counts as a failure."""

        def ask() -> bytes:
            found: bytes = self._system.cat_file(self._name, start=begin, end=end, **self._options)
            if len(found) != end - begin:
                raise OSError(f"{len(found)} bytes came instead of {end - begin}")
            return found

        return self._tried(ask, f"cannot be read at byte {begin}") if end > begin else b""

    def _stamp(self, info: dict[str, Any]) -> str:
        """The object's URL without secrets, tag and size. Without a tag: the URL, time of change and size."""
        if _protocol(self._system) & LOCAL:
            return ""
        tag = next((str(info[name]) for name in _ETAGS if info.get(name)), "")
        changed = next((str(info[name]) for name in _TIMES if info.get(name)), "")
        return f"{self.shown} {tag} {self.size}" if tag else f"{self.url} {changed} {self.size}" if changed else ""

    def _tried(self, ask: Callable[[], T], what: str) -> T:
        return _tried(ask, self.url, self._name, what)


def upload(path: str, url: str) -> None:
    """Write a local file to a URL. The object is there when all of it is.

    Raises:
        RemoteError: it cannot be written after several attempts.
        UserError: a package is missing.
    """
    system, name = _system(str.__str__(url))
    if _protocol(system) & WHOLE:
        _tried(lambda: system.put_file(path, name), url, name, "cannot be written")
        return
    place = PurePosixPath(name)
    temporary = str(place.with_name(f".{place.name}.tmp"))

    def write() -> None:
        system.makedirs(str(place.parent), exist_ok=True)
        system.put_file(path, temporary)
        system.mv(temporary, name)

    _tried(write, url, name, "cannot be written")


def local_name(url: str) -> str | None:
    """The name of the local file that a URL of the scheme `file` means; None for other schemes."""
    scheme, _, rest = str.__str__(url).partition("://")
    return rest if scheme.lower() in ("file", "local") else None


def _protocol(system: Any) -> set[str]:
    found = system.protocol
    return {found} if isinstance(found, str) else set(found)


def _tried(ask: Callable[[], T], url: str, name: str, what: str) -> T:
    """The result of a request, which is made again after failures that may pass."""
    for wait in (*RETRY_SECONDS, None):
        try:
            return ask()
        except Exception as raised:  # each file system has exceptions of its own
            if isinstance(raised, UserError | ImportError):
                raise
            error = _cause(raised)
            reason = _reason(error, name)
            if wait is None or isinstance(error, LASTING):
                times = "" if wait is not None else f", {len(RETRY_SECONDS) + 1} times"
                hint = "check the URL" if isinstance(error, LASTING) else "check the network and the server"
                place = f"byte {what.rpartition(' ')[2]}: " if " at byte " in what else ""
                kind = RemoteMissing if isinstance(error, FileNotFoundError) else RemoteError
                raise kind(f"{place}{reason}{times}", url, hint) from None
            log.warning("WARNING: %s %s: %s; trying again in %g s", public_name(url), what, reason, wait)
            time.sleep(wait)
    raise AssertionError("the last attempt returns or raises")


def _cause(error: Exception) -> Exception:
    """What went wrong: fsspec says of a server that does not answer that there is no such object."""
    cause = error.__cause__ if isinstance(error, FileNotFoundError) else None
    status = _status(cause or error)
    if status in FORBIDDEN:
        return PermissionError(f"the server forbids it ({status})")
    if status in GONE:
        return FileNotFoundError()
    return cause if isinstance(cause, Exception) else error


def _status(error: BaseException) -> int | None:
    """The status of an answer by HTTP: of aiohttp, or of requests and httpx."""
    return getattr(error, "status", None) or getattr(getattr(error, "response", None), "status_code", None)


def _reason(error: Exception, name: str) -> str:
    """Why a request failed, in one line, without the URL."""
    if isinstance(error, FileNotFoundError):
        return "there is no such object"
    text = masked(" ".join(str(error).replace(name, without_secrets(name)).split()))
    if reveals(text, name):  # a library quotes a part of the URL that it cannot read
        return f"{type(error).__name__}, whose message has a part of the password or of the query"
    return text[:300].rstrip(".") or type(error).__name__


def _system(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the name of the object in it."""
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
