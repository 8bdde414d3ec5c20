"""Where the reader of a test stops: not before the run waits for it."""

import inspect


def until_waited_for() -> None:
    """Return when the main thread has nothing to do but to wait for the reader's thread, which calls this.

    Minibatches that were read before are trained, or are in a stack that is not full.
    """
    import sys
    import threading
    import time

    main = threading.main_thread().ident
    waits = 0  # how often running it was found waiting; for 10 ms it does so while there is something to take
    while waits < 10:
        function = sys._current_frames()[main].f_code.co_name
        waits = waits + 1 if function == "wait" else 0
        time.sleep(0.02)


SOURCE = inspect.getsource(until_waited_for)
"""Its text, for modules of readers that a test writes."""
