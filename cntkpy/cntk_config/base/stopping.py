"""Stop long work when the run is asked to stop, after saving what has to be saved."""

import threading


class Stopped(BaseException):
    """The run was asked to stop; not an `Exception`, so that nothing takes it for an error that it may pass over."""


UNSAVED = threading.Event()
"""Set while this process holds work that is in no file yet, or is writing it: a signal leaves it time to save that."""
