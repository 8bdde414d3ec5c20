"""Users' classes at work: whatever goes wrong in one is a single message with the class, the method and the line."""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from cntkpy.cntk_config.base.diagnostics import ConfigError, UserError
from cntkpy.cntk_config.parameters import ConfigParameters
from cntkpy.readers.errors import DataError

_OURS = str(Path(__file__).parents[1])


@contextmanager
def calling(call: str, if_missing: str | None = None) -> Generator[None]:
    """Around a call of a user's method, named as in `MyData.get_chunk(3)`. if_missing: what helps if there is no such
    attribute.

    Raises:
        DataError: for any exception, which is its cause; a UserError gets notes.
    """
    try:
        yield
    except UserError as error:
        places = place_of(error)
        if not places:
            raise
        for note in (f"in {call}", *places):
            error = error.with_note(note)
        raise error from error.__cause__
    except Exception as error:
        text = str(error)
        reason = f"{type(error).__name__}: {text}" if text else type(error).__name__
        hint = if_missing if isinstance(error, AttributeError) else None
        raise DataError(f"{call} failed: {reason}", hint=hint, notes=place_of(error)) from error


def check_interface(
    made: object, interface: type, section: ConfigParameters, former_names: Mapping[str, str] | None = None
) -> None:
    """See that what a plug-in has made can do what is going to be asked of it.

    Args:
        made: The object.
        interface: The protocol.
        section: The section that describes the object.
        former_names: By a name of the protocol, another one that will do.

    Raises:
        ConfigError: names of the interface that it does not have, all of them.
    """
    known = set(dir(made))
    if "__getattr__" in known:  # it passes on what others can do
        return
    former = former_names or {}
    names = [name for name in vars(interface) if not name.startswith("_")]
    missing = [name for name in names if known.isdisjoint({name, former.get(name, name)})]
    if missing:
        message = f"{section.path}: {type(made).__name__} is not a {interface.__name__}: it lacks {', '.join(missing)}"
        hint = "docs/data-interfaces.md has the interface, cntkpy.testing what tests it"
        raise ConfigError("UserCode", message, section.span, hint)


def place_of(error: Exception) -> tuple[str, ...]:
    """Return the place in the user's code that raised an exception, as a note: file, line, function, code."""
    if isinstance(error, SyntaxError):
        return (f"{error.filename}:{error.lineno}: {(error.text or '').strip()}",)
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith((_OURS, "<frozen"))]
    if not frames:
        return ()
    import sysconfig  # late: few runs end here

    libraries = tuple(sysconfig.get_paths()[kind] for kind in ("stdlib", "platstdlib", "purelib", "platlib"))
    theirs = [f for f in frames if not f.filename.startswith(libraries)]
    last = (theirs or frames)[-1]
    code = linecache.getline(last.filename, last.lineno or 0).strip()
    return (f"{last.filename}:{last.lineno}, in {last.name}" + (f": {code}" if code else ""),)
