"""The first sample of every tar shard against the declared streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cntkpy.cntk_config import ConfigError
from cntkpy.cntk_config.base.diagnostics import Diagnostic, UserError
from cntkpy.cntk_config.base.files import exists
from cntkpy.cntk_config.base.names import is_url
from cntkpy.commands.catalogue.section_map import Use
from cntkpy.readers.errors import DataError
from cntkpy.readers.formats.tar.parameters import TarParameters, TarStreamParameters, endings_of

if TYPE_CHECKING:
    from cntkpy.readers.formats.tar.shards import Shards


def shard_problems(use: Use) -> Iterator[Diagnostic]:
    """Report the problems of the first samples of tar shards.

    Args:
        use: a section; of others than tar shards there are no problems.
    """
    if TarParameters not in use.declared:
        return
    p = TarParameters(use.section)
    try:
        streams, paths, value = p.streams(), p.file, p.given("file")
    except ConfigError:  # found where values are looked at
        return
    if value is None or not all(exists(str(path)) or is_url(str(path)) for path in paths):
        return  # a missing file is found elsewhere
    try:
        shards = p.shards(most=1)
    except UserError as error:
        message = f"{value.path}: {error.message.rstrip('.')}"
        yield Diagnostic("CannotRead", message, value.span, error.hint, severity="error")
        return
    endings = endings_of(streams)
    for name, stream in streams:
        try:
            _look(shards, endings.index(stream.endings(name)), name, stream)
        except DataError as error:
            section = p.input.section(name)
            setting = next(filter(None, map(stream.given, ("dim", "member", "transforms"))), None)
            place = setting.span if setting is not None else section.span
            yield Diagnostic("DataMismatch", error.message.rstrip("."), place, error.hint)


def _look(shards: Shards, column: int, name: str, p: TarStreamParameters) -> None:
    """Read the first members of a stream; raises DataError."""
    import numpy as np

    from cntkpy.readers.formats.image.decode import PictureError, decode
    from cntkpy.readers.formats.tar.deserializer import read_member

    for sample in range(len(shards.keys)):
        if p.transforms is None:
            read_member(shards, sample, column, p.stream(name), np.dtype(np.float32))
            continue
        try:
            decode(shards.member(sample, column))
        except PictureError as error:
            raise shards.error(sample, column, error.message.rstrip("."), error.hint) from None
