"""`python -m cntkpy` and the console command: the command line, which a signal ends while it is being imported, too."""

import os
import signal
import sys
from types import FrameType


def _end(number: int, frame: FrameType | None) -> None:
    """End the process: nothing has begun that would have to be cleaned up."""
    os.write(2, b"interrupted\n" if number == signal.SIGINT else b"terminated by signal SIGTERM\n")
    os._exit(128 + number)


def main() -> int:
    """Entry point of the console command: `sys.exit(main())`."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):  # else somebody ignores it
            signal.signal(number, _end)
    from commands.cli import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
