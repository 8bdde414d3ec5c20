"""Console output of a sweep: a line for every trial that ends, and on a terminal what the others have come to."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol

from cntkpy.cntk_config.base.diagnostics import printable

REFRESHES_PER_SECOND = 2


class Console(Protocol):
    """Console of a sweep."""

    def say(self, text: str) -> None:
        """Print a line."""
        ...

    def show(self, text: str) -> None:
        """Show the running trials, in place of the text before."""
        ...


class Lines:
    """Lines only, on standard output."""

    def say(self, text: str) -> None:
        """See `Console`."""
        print(printable(text), flush=True)

    def show(self, text: str) -> None:
        """See `Console`; nothing is shown."""


@contextmanager
def console() -> Generator[Console]:
    """The terminal, with a line at its end that changes; or lines where there is none."""
    if not (sys.stdout.isatty() and sys.stderr.isatty()):
        yield Lines()
        return
    import rich.console
    from rich.text import Text

    screen = rich.console.Console(soft_wrap=False)

    class Terminal:
        def say(self, text: str) -> None:
            screen.print(Text(printable(text)), soft_wrap=True)

        def show(self, text: str) -> None:
            status.update(Text(printable(text), no_wrap=True, overflow="ellipsis"))

    with screen.status("", refresh_per_second=REFRESHES_PER_SECOND) as status:
        yield Terminal()
