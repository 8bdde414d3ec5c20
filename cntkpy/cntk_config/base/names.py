"""Names of files and URLs: which of them are which, and which cannot be."""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path
from typing import Any, cast

_URL = re.compile("[A-Za-z][A-Za-z0-9+.-]+://")
_SECRETS = re.compile(r"(?<=://)[^/@?#]*@|[?#].*")
_WORD = re.compile(r"[^\s'\"<>();\]]+")
_SECRETS_OF_TEXT = re.compile(r"(?<=://)[^/@?#]*@|[?].*")
_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISREG, "a file"),
)


def is_url(path: str | os.PathLike[str]) -> bool:
    """Whether a name is a URL: with a scheme of two letters or more; one letter is a drive."""
    return _URL.match(os.fspath(path)) is not None


class Url(str):
    """A URL that is opened as it is, and stands in messages without a user, a password and the query."""

    def __str__(self) -> str:
        return public_name(self)

    def __repr__(self) -> str:
        return repr(public_name(self))

    def __format__(self, spec: str) -> str:
        return format(public_name(self), spec)


def from_here(path: Path) -> str:
    """The path of a file as messages name it: relative to the current folder, if the file is below it."""
    return os.path.relpath(path) if Path.cwd() in path.absolute().parents else str(path)


def public_name(path: str | os.PathLike[str]) -> str:
    """A name as messages have it: of a URL without what may be secret, a user with a password, and the query."""
    name = str.__str__(os.fspath(path))
    return without_secrets(name) if is_url(name) else name


def without_secrets(text: str) -> str:
    """A text with one URL, or a part of it, without what may be secret."""
    return _SECRETS.sub("", text)


def masked(text: str, sign: str = "") -> str:
    """A text for people, whose URLs are without users, passwords and queries.

    Args:
        text: for instance a line of a configuration.
        sign: what stands for each of their characters; nothing by default.
    """
    if "://" not in text:
        return text

    def mask(found: re.Match[str]) -> str:
        return sign * len(found[0])

    return _WORD.sub(lambda word: _SECRETS_OF_TEXT.sub(mask, word[0]) if "://" in word[0] else word[0], text)


def checked_name(path: str | os.PathLike[str]) -> str:
    """The name of a local file as text.

    Raises:
        OSError: no file can have this name; `strerror` says why.
    """
    name = os.fspath(path)
    if is_url(name):
        raise OSError(errno.EINVAL, "it is a URL, not the name of a file", public_name(name))
    if "\0" in name:
        raise OSError(errno.EINVAL, "the name has a NUL character in it", name.replace("\0", "\\0"))
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        shown = name.encode("utf-8", "backslashreplace").decode()
        raise OSError(errno.EINVAL, "the name has a character that no file name can have", shown) from None
    return name


def shareable(value: Any) -> Any:
    """Return a value as it may be kept in files that people pass on: its URLs have no users, passwords and queries.

    Args:
        value: a text, or lists and mappings with texts at any depth.
    """
    if isinstance(value, str):
        return masked(str.__str__(value))
    if isinstance(value, dict):
        return {shareable(name): shareable(part) for name, part in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [shareable(part) for part in cast("list[Any]", value)]
    return value


def kind_of(mode: int) -> str:
    """What a mode of `stat` stands for, in words."""
    return next((word for test, word in _KINDS if test(mode)), "something else")
