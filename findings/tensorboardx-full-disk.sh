#!/usr/bin/env bash
# tensorboardX writes events in a thread. When the disk is full the thread ends with a traceback; add_scalar says nothing,
# and from the eleventh value on it waits for ever, because its queue has room for ten.
# Exit status: 0 while that is so, 1 where it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q "tensorboardX==2.6.4" >/dev/null 2>&1
cd "$folder"
cat >try.py <<'END'
import resource
import signal
import sys
import threading
from importlib.metadata import version

from tensorboardX import SummaryWriter

print("tensorboardX", version("tensorboardX"))
ended = []
threading.excepthook = lambda found: ended.append("%s: %s" % (found.exc_type.__name__, found.exc_value))
writer = SummaryWriter("runs")
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))  # stands for a disk without room
step = 0


def late(*_):
    print("the thread has ended: %s" % ended)
    print("add_scalar(%d) waits for 10 s and raises nothing" % step)
    sys.stdout.flush()
    import os

    os._exit(0 if ended else 1)


signal.signal(signal.SIGALRM, late)
for step in range(20000):
    signal.alarm(10)
    writer.add_scalar("x", 1.0, step)
    signal.alarm(0)
print("all values were taken")
sys.exit(1)
END
"$folder/venv/bin/python" try.py
