"""Other processes: whether they run, and how a signal is passed on to them."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any


def start_of(process: int) -> str | None:
    """When a process of this machine was started, in the system's own count; None: it does not run, or nobody knows.

    Only Linux says it without another program. It is asked where a file system has no locks.
    """
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None


def pass_on(process: subprocess.Popen[Any], number: int) -> None:
    """Send a signal that this process got to one that it has started.

    Ctrl-C reaches all processes of a console by itself on Windows, and of a terminal elsewhere. Windows has no other
    signals between processes: the process ends at once there.
    """
    if process.poll() is not None:
        return
    if number == signal.SIGINT:
        if sys.platform != "win32" and not (sys.stdin is not None and sys.stdin.isatty()):
            process.send_signal(number)
    else:
        process.terminate()


def name_of_end(status: int) -> str:
    """Return the name of the signal that has ended a process, of its status below 0."""
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"
