"""The process of a trial: `python -m commands.sweeps.child WORDS...` runs a classic command line.

It ends when the sweep that has started it is killed: Linux sends it SIGTERM then, after which it saves its state.
"""

import ctypes
import os
import signal
import sys

PARENT = "CNTKPY_SWEEP"
"""The environment variable with the number of the process that starts it."""
PR_SET_PDEATHSIG = 1


def _end_with_parent() -> None:
    """Ask the system for a signal when the parent ends; it may have ended already."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.environ.get(PARENT) != str(os.getppid()):
        sys.exit(128 + signal.SIGTERM)


def _main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until the run has handlers of its own
    _end_with_parent()
    from commands.runner.run import main

    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(_main())
