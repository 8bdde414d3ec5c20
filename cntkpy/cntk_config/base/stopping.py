"""What ends long work from inside when the run is asked to stop, and what has to be saved before."""

import threading


class Stopped(BaseException):
    """The run was asked to stop; not an `Exception`, so that nothing takes it for an error that it may pass over."""


UNSAVED = threading.Event()
"""Set while this process holds work that is in no file yet, or is writing it: a signal leaves it time to save that."""
