"""What ends long work from inside when the run is asked to stop."""


class Stopped(BaseException):
    """The run was asked to stop; not an `Exception`, so that nothing takes it for an error that it may pass over."""
