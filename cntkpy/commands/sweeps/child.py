"""The process of a trial: `python -m cntkpy.commands.sweeps.child WORDS...` runs a classic command line.

It ends when the sweep that has started it is killed: it gets SIGTERM then, after which it saves its state.
"""

import os
import signal
import sys
import threading
from contextlib import suppress


def _end_with_parent() -> None:
    """End like the sweep, however that ends: the standard input is a pipe whose other end only the sweep has open."""
    parent = os.dup(0)
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 - a device
        os.dup2(nothing.fileno(), 0)
    threading.Thread(target=_wait_for, args=(parent,), name="cntkpy-parent", daemon=True).start()


def _wait_for(parent: int) -> None:
    with suppress(OSError):
        while os.read(parent, 1):
            pass
    signal.raise_signal(signal.SIGTERM)


def _main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until the run has handlers of its own
    _end_with_parent()
    from cntkpy.commands.runner.run import main

    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(_main())
