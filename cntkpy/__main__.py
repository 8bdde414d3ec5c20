"""`python -m cntkpy` and the console command: the command line, which a signal ends while it is being imported, too."""

import atexit
import gc
import os
import signal
import sys
from types import FrameType

YOUNG_OBJECTS = 400_000
"""Objects after whose creation Python looks for unused ones: more than there are before the first minibatch, or in a
check of one configuration. With its own number, 700, it does so some 400 times while modules are imported, which makes
hardly anything unused: a tenth of the time of a short run; with 50,000 four times, a fifteenth."""


def _end(number: int, frame: FrameType | None) -> None:
    """End the process: nothing has begun that would have to be cleaned up."""
    os.write(2, b"interrupted\n" if number == signal.SIGINT else b"terminated by signal SIGTERM\n")
    os._exit(128 + number)


def main() -> int:
    """Entry point of the console command: `sys.exit(main())`."""
    gc.set_threshold(YOUNG_OBJECTS, *gc.get_threshold()[1:])
    atexit.register(gc.freeze)  # else Python looks through all objects once more when it ends: 0.2 s with JAX
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):  # else somebody ignores it
            signal.signal(number, _end)
    from cntkpy.commands.cli import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
