"""Characters that the console can show."""

from __future__ import annotations

import io
import os
import sys


def show_everything() -> None:
    """Let standard output and error take every text; a character that they cannot show is written as in Python.

    Into a file or a pipe, Windows would write the code page of the system. What `cntkpy show` prints is a
    configuration, which is UTF-8, so it is UTF-8 there unless `PYTHONIOENCODING` says otherwise.
    """
    for stream in (sys.stdout, sys.stderr):
        if not isinstance(stream, io.TextIOWrapper):
            continue
        if sys.platform == "win32" and not stream.isatty() and not os.environ.get("PYTHONIOENCODING"):
            stream.reconfigure(encoding="utf-8")
        stream.reconfigure(errors="backslashreplace")
