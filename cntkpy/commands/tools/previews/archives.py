"""Describe archives of samples (tar), and pictures."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import Any

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.files import read_input
from cntkpy.readers.errors import DataError

from .texts import description, quoted

MOST_MEMBERS, MOST_PICTURE_BYTES = 10_000, 1 << 28
"""Members of an archive and bytes of a picture that are looked at."""
PICTURES = (".bmp", ".webp", ".jp2", ".ppm", ".jpg", ".jpeg", ".png")


def describe_archive(path: str, form: str, samples: int) -> dict[str, Any]:
    """Describe an archive of samples: the endings of its members, and the first samples."""
    from cntkpy.readers.common.packed import open_or_say
    from cntkpy.readers.formats.tar.headers import members

    data = open_or_say(path, f"The archive {path} cannot be opened")
    endings: Counter[str] = Counter()
    first: dict[str, dict[str, str]] = {}
    for member in islice(members(data), MOST_MEMBERS):
        folder, slash, base = member.name.rpartition("/")
        stem, _, ending = base.partition(".")
        endings[ending.lower()] += 1
        if (key := folder + slash + stem) in first or len(first) < samples:
            first.setdefault(key, {"sample": key})[ending] = f"{member.size} bytes"
    inner = " ; ".join(
        f"{ending or 'NAME'} = [ member = {ending} ; {_of_member(ending)} ]" for ending in list(endings)[:3]
    )
    section = f"type = TarDeserializer ; file = {quoted(path)} ; input = [ {inner} ]"
    columns = [(f".{name}", f"{count:,} members") for name, count in endings.items()]
    return description(f"deserializers = ([ {section} ])", columns, first.values())


def _of_member(ending: str) -> str:
    """Return an example of the stream of members with an ending."""
    picture = f".{ending}" in PICTURES
    return "transforms = ([ type = Scale ; width = 32 ; height = 32 ; channels = 3 ])" if picture else "dim = 1"


def describe_picture(path: str, form: str, samples: int) -> dict[str, Any]:
    """Describe a picture: its size."""
    from cntkpy.cntk_config.base.extras import need

    need("image", "preview of a picture")
    from cntkpy.readers.formats.image.decode import PictureError, decode

    try:
        pixels = decode(read_input(path, MOST_PICTURE_BYTES))
    except OSError as error:
        raise UserError("CannotRead", f"'{path}' cannot be read: {error.strerror or error}") from None
    except PictureError as error:
        raise DataError(f"{path}: {error.message}", path=path, hint=error.hint) from None
    height, width, channels = (*pixels.shape, 1)[:3]
    reader = "ImageDeserializer reads a list of pictures, a line FILE<tab>CLASS for each: docs/images.md"
    return description(reader, [("size", f"{width} x {height} pixels, {channels} channels")])
