"""Names of files and URLs: which of them are which, and which cannot be."""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

_URL = re.compile("[A-Za-z][A-Za-z0-9+.-]+://")
_END_OF_WORD = re.compile(r"[\s'\"<>();\]]")
_END_OF_VALUE = re.compile(r"['\";,\]]")
_PASSWORD = re.compile(r"[^\s/?#@:'\"<>();\]]*:(?![0-9]*(?:[/?#\s]|$))")
"""A user and the colon before a password; after a host, a colon and a port end it."""
_PORT = re.compile(r"[^\s/?#@:]*:[0-9]+[/#]")
_AUTHORITY = re.compile(r"[^\s/?#]*")
_ENDING = re.compile(r"\.[A-Za-z]\w*[\s\"]*$")
_PIECE = re.compile(r"\w{3,}")
_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISREG, "a file"),
)


def is_url(path: str | os.PathLike[str]) -> bool:
    """Return whether a name is a URL: with a scheme of two letters or more; one letter is a drive."""
    return _URL.match(os.fspath(path)) is not None


class Url(str):
    """A URL that is opened as it is, and stands in messages without a user, a password and the query."""

    def __str__(self) -> str:
        return public_name(self)

    def __repr__(self) -> str:
        return repr(public_name(self))

    def __format__(self, spec: str) -> str:
        return format(public_name(self), spec)


def split_names(text: str) -> list[str]:
    """Return the names in `a+b`; a password and a query of a URL may have plus signs.

    A query continues behind a plus sign, unless a URL or a name with an ending, such as `.cntk`, follows.
    """
    first, *following = text.split("+")
    names = [first]
    for part in following:
        path = names[-1].partition("://")[2]
        in_password = "@" in part and "@" not in path and _PASSWORD.match(path)
        in_query = "?" in path and not is_url(part) and not _ENDING.search(part)
        if in_password or in_query:
            names[-1] += f"+{part}"
        else:
            names.append(part)
    return names


def from_here(path: Path) -> str:
    """Return the path of a file as messages name it: relative to the current folder, if the file is below it."""
    return os.path.relpath(path) if Path.cwd() in path.absolute().parents else str(path)


def public_name(path: str | os.PathLike[str]) -> str:
    """Return a name as messages have it: of a URL without what may be secret, a user with a password, and the query."""
    name = str.__str__(os.fspath(path))
    return without_secrets(name) if is_url(name) else name


def without_secrets(text: str) -> str:
    """Return a text with one URL, or a part of it, without what may be secret."""
    scheme, separator, address = text.partition("://")
    if not separator:
        return re.split("[?#]", text, maxsplit=1)[0]
    return scheme + separator + re.split("[?#]", address[_end_of_user(address, len(address)) :], maxsplit=1)[0]


def masked(text: str, sign: str = "", *, is_value: bool = False) -> str:
    """Return a text for people, whose URLs are without users, passwords and queries.

    A URL ends with the quotation mark that it stands in, else with the word. A password may have any character.

    Args:
        text: for instance a line of a configuration.
        sign: what stands for each of their characters; nothing by default. The text is a line of a configuration then.
        is_value: whether it is a text of a configuration, where a query ends with the value, not with the word.
    """
    if "://" not in text:
        return text
    return "\n".join(
        _masked_line(line, sign, is_value or bool(sign)) if "://" in line else line for line in text.split("\n")
    )


def reveals(text: str, url: str) -> bool:
    """Return True if a text, such as the message of a library, has a part of a password or of a query.

    Args:
        text: the message.
        url: the URL that it is about.
    """
    address = url.partition("://")[2]
    end = _end_of_user(address, len(address))
    secrets = address[:end].partition(":")[2] + " " + " ".join(re.split("[?#]", address[end:], maxsplit=1)[1:])
    return any(piece in text for secret in (secrets, unquote(secrets)) for piece in _PIECE.findall(secret))


def _masked_line(line: str, sign: str, is_value: bool) -> str:
    pieces: list[str] = []
    position = 0
    while (begin := line.find("://", position)) >= 0:
        begin += len("://")
        following = line.find("://", begin)
        end = following if following >= 0 else len(line)
        closing = _closing_quote(line, position, begin)
        is_quoted = closing >= 0 and (closing < end or following > closing)
        end = closing if is_quoted else end
        user = begin + _end_of_user(line[begin:end], _word(line, begin, end) - begin if not is_quoted else end - begin)
        last = end if is_quoted else _word(line, user, end)
        query = line.find("?", user, last)
        if query >= 0 and is_value and not is_quoted:
            match = _END_OF_VALUE.search(line, query, end)
            last = match.start() if match else end
        if query < 0:
            query = last
        pieces += [line[position:begin], sign * (user - begin), line[user:query], sign * (last - query)]
        position = last
    return "".join(pieces) + line[position:]


def _closing_quote(line: str, begin: int, place: int) -> int:
    """Return the place at which the quotation closes that a place is in, -1 if it is in none.

    Args:
        line: the text.
        begin: where to look for the opening mark from.
        place: behind `://`.
    """
    opening = max(line.rfind(mark, begin, place) for mark in "'\"")
    if opening < 0 or line[opening + 1] in " \t,;:)]":
        return -1  # it closes another quotation
    if line[opening] == "'" and line[opening - 1 : opening].isalnum():
        return -1  # an apostrophe
    closing = line.find(line[opening], place)
    return -1 if line[opening] == "'" and 0 <= line.find('"', place) < closing else closing


def _word(line: str, begin: int, end: int) -> int:
    """Return the end of the word that begins at a place."""
    match = _END_OF_WORD.search(line, begin, end)
    return match.start() if match else end


def _end_of_user(remainder: str, word: int) -> int:
    """Return the length of the user and password after `://`, up to the last `@` that may end them.

    Args:
        rest: the URL without its scheme, perhaps with other text behind it.
        word: the end of the first word of it, at which the URL ends if no password has blanks.
    """
    if _PASSWORD.match(remainder):
        first = remainder.find("@")
        if first < 0:  # a part of a URL
            authority = _AUTHORITY.match(remainder, 0, word)
            return authority.end() if authority else 0
        word = max(word, _word(remainder, first, len(remainder))) if first >= word else word
        query = remainder.find("?", 0, word)
        return remainder.rfind("@", 0, query if query > first else word) + 1
    if _PORT.match(remainder):
        query = remainder.find("?", 0, word)
        return remainder.rfind("@", 0, query if query >= 0 else word) + 1
    authority = _AUTHORITY.match(remainder, 0, word)
    return remainder.rfind("@", 0, authority.end()) + 1 if authority else 0


def checked_name(path: str | os.PathLike[str]) -> str:
    """Return the name of a local file as text.

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
    """Return the kind of file of a mode of `stat`, in words."""
    return next((word for test, word in _KINDS if test(mode)), "something else")
