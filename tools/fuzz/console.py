"""The command line of cntkpy, called in this process."""

from __future__ import annotations

import contextlib
import io
import logging
import os
from collections.abc import Sequence


def run_words(words: Sequence[str]) -> tuple[int, str]:
    """Run cntkpy in this process, in the current folder; return the exit status and what it printed."""
    from cntkpy.commands.cli import main

    printed = io.StringIO()
    environment = dict(os.environ)
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            try:
                status = main(list(words))
            except SystemExit as end:
                status = end.code if isinstance(end.code, int) else 1
    finally:
        os.environ.clear()
        os.environ.update(environment)
        for handler in list(logging.getLogger().handlers):
            logging.getLogger().removeHandler(handler)
    return status, printed.getvalue()
