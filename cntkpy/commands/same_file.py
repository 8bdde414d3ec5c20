"""Outputs of tools with the name of a file that the tool reads: they are refused before anything is written."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from cntkpy.cntk_config import ConfigError
from cntkpy.cntk_config.base.files import exists


def keep_inputs(output: str, inputs: Iterable[str], beside: Iterable[Path] = ()) -> None:
    """Check that an output is none of the inputs.

    Args:
        output: the file that is written.
        inputs: those that are read; URLs and files that are not there count for nothing.
        beside: files that are written with the output.

    Raises:
        ConfigError: A file would be written over.
    """
    sources = [Path(source) for source in inputs if exists(source)]
    for path in (Path(output), *beside):
        if exists(path) and any(path.samefile(source) for source in sources):
            reason = "itself" if path == Path(output) else f"what is read: {output} has {path.name} next to it"
            raise ConfigError("SameFile", f"{path} would be written over {reason}", hint="give the output another name")
