"""Whom an error concerns: the place in the configuration of one that has none, and the user's code that raised it."""

from __future__ import annotations

import copy
import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from cntkpy.cntk_config import ConfigParameters, UserError
from cntkpy.cntk_config.base.diagnostics import Span
from cntkpy.commands.catalogue.section_map import Use, command_use, reader_use
from cntkpy.commands.checks.files import absent_streams
from cntkpy.readers.errors import DataError

E = TypeVar("E", bound=UserError)

OURS = Path(__file__).resolve().parents[2]
"""The folder of cntkpy."""
LIBRARIES = (
    "jax", "jaxlib", "numpy", "scipy", "numba", "llvmlite", "lark", "click", "rich", "safetensors", "cv2", "matplotlib",
)  # fmt: skip
"""Packages that cntkpy is built on and calls itself."""
READING = ("CK055", "CK056", "CK061", "CK072", "CK073")
"""Codes of errors that concern the data: the reader's section is their place."""

REPORT = "This is a defect of cntkpy, not of your configuration. Please report it with the lines above."


def out_of_memory(error: Exception) -> UserError | None:
    """Return the error of a machine or a device that has no memory left; None: it is about something else.

    The class of JAX's errors is known by its name: a run that computes nothing does not import JAX.
    """
    if isinstance(error, MemoryError):
        message = "this machine has not enough memory" + (f": {error}" if str(error) else "")
        return UserError("OutOfMemory", message, hint="a smaller minibatchSize needs less")
    text = str(error)
    if type(error).__name__ != "JaxRuntimeError" or "RESOURCE_EXHAUSTED" not in text:
        return None
    asked = next((line for line in text.splitlines() if "Out of memory" in line), text.partition("\n")[0])
    return UserError(
        "OutOfMemory",
        f"the device has not enough memory: {asked.removeprefix('RESOURCE_EXHAUSTED: ').partition(' [')[0]}",
        hint="a smaller minibatchSize needs less; of programs that share a GPU, the first takes three quarters of its "
        "memory, unless XLA_PYTHON_CLIENT_PREALLOCATE=false is set for each of them; deviceId=cpu computes without it",
    )


def placed(error: UserError, section: ConfigParameters, command: str, span: Span | None) -> UserError:
    """Return the error of a command with a place: the value that it names, or the reader, or else `span`; and the
    command.

    Args:
        error: what ended the command.
        section: that of the command.
        command: its name.
        span: the place of the action.
    """
    if error.span is not None:
        return error
    copied = copy.copy(error)
    use = command_use(section, command)
    if error.kind.code in READING and (absent := next(absent_streams(use), None)) is not None:
        notes = (error.message, *error.notes, f"in command {command}")
        return UserError(absent.kind, absent.message, absent.span, absent.hint, notes)
    copied.span = _named(error.message, use) or _reader(error, use) or span
    return copied.with_note(f"in command {command}")


def changed_file(error: UserError, begin: int) -> str | None:
    """Return a note if the file that an error blames has changed since a time (nanoseconds): it may have been right."""
    if not isinstance(error, DataError) or error.path is None:
        return None
    try:
        status = Path(error.path).stat()
    except (OSError, ValueError):
        return None
    changed = max(status.st_mtime_ns, status.st_ctime_ns)
    return f"{error.path} was changed while this command ran" if changed > begin else None


def placed_in_reader(error: E, section: ConfigParameters) -> E:
    """Return the error of a reader that no command runs, with a place: the value that it names, or else the reader."""
    if error.span is not None:
        return error
    copied = copy.copy(error)
    copied.span = _named(error.message, reader_use(section, "reader")) or section.span
    return copied


def _named(message: str, use: Use) -> Span | None:
    """Return the place of the longest text of the command that names a file, its folder or another thing, and is in the
    message."""
    best, length = None, 1
    for inside in use.walk():
        for parameter in inside.parameters():
            if parameter.type.is_section or not parameter.type.name.startswith(("path", "text")):
                continue
            value = inside.value(parameter)
            if value is None or value.span is None or length >= len(value):
                continue
            is_folder = parameter.type.name == "path" and _stands_in(f"{value}/", message, within=True)
            if is_folder or _stands_in(value, message):
                best, length = value.span, len(value)
    return best


def _stands_in(word: str, message: str, *, within: bool = False) -> bool:
    """Return whether a text is in the message as a word of its own; or at the start of one, `within` it."""
    begin = message.find(word)
    end = begin + len(word)
    around = message[begin - 1 : begin] + ("" if within else message[end : end + 1])
    return begin >= 0 and not any(char.isalnum() or char in "_/" for char in around)


def _reader(error: UserError, use: Use) -> Span | None:
    if error.kind.code not in READING:
        return None
    return next((part.section.span for part in use.parts if part.role == "reader"), None)


def user_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Return the frames of an error that belong neither to cntkpy nor to what it is built on, nor to Python."""
    return [frame for frame in _frames(error) if _is_foreign(frame.filename)]


def _frames(error: BaseException) -> Iterator[traceback.FrameSummary]:
    seen: set[int] = set()
    chain: BaseException | None = error
    while chain is not None and id(chain) not in seen:
        seen.add(id(chain))
        yield from traceback.extract_tb(chain.__traceback__)
        chain = chain.__cause__ or chain.__context__


def _is_foreign(name: str) -> bool:
    if name.startswith("<"):
        return False
    path = Path(name)
    if path.is_relative_to(OURS):
        return False
    paths = sysconfig.get_paths()
    for key in ("purelib", "platlib"):
        if path.is_relative_to(paths[key]):
            return path.relative_to(paths[key]).parts[0] not in LIBRARIES
    return not any(path.is_relative_to(paths[key]) for key in ("stdlib", "platstdlib"))
