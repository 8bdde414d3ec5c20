"""A signal ends a run with its state saved, wherever it arrives; what does not come back is ended after a while."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import waited_for

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")

CONFIG = """\
command = train
train = [
    action = train
    modelPath = run/m
    SimpleNetworkBuilder = [ layerSizes = 2:3:2 ; trainingCriterion = CrossEntropyWithSoftmax
        evalCriterion = ErrorPrediction ; applyMeanVarNorm = false ]
    SGD = [ maxEpochs = 1000 ; epochSize = 40 ; minibatchSize = 4 ; learningRatesPerMB = 0.1
        checkpointEveryMinutes = MINUTES ]
    reader = [ READER file = t.ctf
        input = [ features = [ dim = 2 ; format = dense ] ; labels = [ dim = 2 ; format = dense ] ] ]
]
"""
PROGRAM = """\
import gc, os, signal, sys, time
from pathlib import Path
from cntkpy.trainers.fronts.config.partial import SavedEpoch

NUMBER = {number}
calls = 0

def send():
    global send
    send = lambda: None
    Path("sent").touch()
    os.kill(os.getpid(), NUMBER)
    for _ in range(10000):  # the handler runs here
        pass

def at_a_boundary():
    pass

{moment}
on_stack = SavedEpoch.on_stack

def watched(self, run):
    global calls
    calls += 1
    if calls == 3:
        at_a_boundary()
    on_stack(self, run)

SavedEpoch.on_stack = watched
from cntkpy.commands.cli import main
sys.exit(main(["configFile=m.cntk"]))
"""
MOMENTS = {
    "garbage collection": """
gc.callbacks.append(lambda phase, info: send() if calls == 3 else None)
at_a_boundary = gc.collect
""",
    "__del__": """
class Held:
    def __del__(self):
        send()

def at_a_boundary():
    Held()
""",
    "compilation": """
import jax
jax.monitoring.register_event_duration_secs_listener(lambda event, *_, **__: send() if calls == 3 else None)

def at_a_boundary():
    jax.jit(lambda x: x * 3 + 1)(jax.numpy.ones(7))
""",
    "save": """
sync = os.fsync

def slow_sync(file):
    if calls >= 3:
        send()
    sync(file)

os.fsync = slow_sync
""",
}
SLOW = f"""\
import time
from pathlib import Path
from cntkpy.readers.formats.text.options import create_text_reader


{waited_for.SOURCE}

class Slow:
    def __init__(self, reader):
        self.reader, self.number = reader, 0

    def __getattr__(self, name):
        return getattr(self.reader, name)

    def get_minibatch(self):
        self.number += 1
        if self.number == 10:
            until_waited_for()
            Path("asleep").touch()
            while True:
                try:
                    time.sleep(1000)
                except BaseException:
                    pass
        return self.reader.get_minibatch()


def create(section, precision):
    return Slow(create_text_reader(section, precision))
"""


def start(folder: Path, number: int, moment: str = "", reader: str = "", minutes: float = 0) -> subprocess.Popen[str]:
    text = CONFIG.replace("READER", reader).replace("MINUTES", str(minutes))
    (folder / "m.cntk").write_text(text)
    (folder / "t.ctf").write_text(
        "".join(f"|features {k % 7} {k % 3} |labels {k % 2} {1 - k % 2}\n" for k in range(400))
    )
    program = PROGRAM.format(number=int(number), moment=moment)
    return subprocess.Popen([sys.executable, "-c", program], cwd=folder, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize(
    "moment", [pytest.param(name, marks=[] if name == "save" else pytest.mark.thorough) for name in MOMENTS]
)
@pytest.mark.parametrize("number", [signal.SIGTERM])
def test_wherever_a_signal_arrives(moment: str, number: int, tmp_path: Path) -> None:
    process = start(tmp_path, number, MOMENTS[moment], minutes=0.00001 if moment == "save" else 0)
    log = process.communicate(timeout=100)[1]
    assert (tmp_path / "sent").exists(), log
    assert process.returncode == 128 + number, log
    assert ".partial; start the same command again" in log
    assert list((tmp_path / "run").glob("m.*.partial"))
    assert "Traceback" not in log
    assert "Exception ignored" not in log


AT_THE_START = """
    def start_minibatch_loop(self, size, epoch, *more):
        if epoch == 1:
            self.number = 1000
            self.get_minibatch()
        self.reader.start_minibatch_loop(size, epoch, *more)

    def get_minibatch(self):
"""


def asleep(folder: Path, number: int, source: str = SLOW) -> subprocess.Popen[str]:
    """A run whose reader sleeps."""
    (folder / "slow.py").write_text(source)
    process = start(folder, number, reader="readerType = create ; module = slow ;")
    until = time.monotonic() + 100
    while not (folder / "asleep").exists() and process.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(number)
    return process


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_while_a_reader_sleeps(number: int, tmp_path: Path) -> None:
    process = asleep(tmp_path, number)
    log = process.communicate(timeout=28)[1]
    assert process.returncode == 128 + number, log
    assert ".partial; start the same command again" in log
    assert list((tmp_path / "run").glob("m.*.partial"))
    assert "Traceback" not in log


@pytest.mark.thorough
def test_before_the_first_minibatch_of_an_epoch(tmp_path: Path) -> None:
    """Nothing of the epoch is there to be saved: the checkpoint of the epoch before has everything."""
    source = SLOW.replace("\n    def get_minibatch(self):\n", AT_THE_START).replace(
        "self.number == 10", "self.number >= 1000"
    )
    assert "epoch == 1" in source
    process = asleep(tmp_path, signal.SIGTERM, source)
    log = process.communicate(timeout=28)[1]
    assert process.returncode == 143, log
    assert "Traceback" not in log
    assert "defect" not in log
    assert (tmp_path / "run" / "m.0.ckp").exists() or (tmp_path / "run" / "m.0").exists(), log
    assert not list((tmp_path / "run").glob("m.*.partial"))


STUCK = """
from cntkpy.cntk_config.base.stopping import UNSAVED

def at_a_boundary():
    UNSAVED.set()
    send()
    while True:
        try:
            time.sleep(1000)
        except BaseException:
            pass
"""


@pytest.mark.thorough
def test_what_does_not_come_back_is_named_and_ended(tmp_path: Path) -> None:
    sooner = "from cntkpy.commands.context import interrupt; interrupt.WARN_SECONDS, interrupt.KILL_SECONDS = 1.0, 3.0"
    process = start(tmp_path, signal.SIGTERM, sooner + STUCK)
    log = process.communicate(timeout=100)[1]
    assert process.returncode == 143, log
    assert "still waiting" in log
    assert "in at_a_boundary" in log
    assert "has not stopped within 3 s" in log


@pytest.mark.thorough
def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    process = start(tmp_path, signal.SIGINT, STUCK)
    until = time.monotonic() + 100
    while not (tmp_path / "sent").exists() and process.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(1.3)
    process.send_signal(signal.SIGINT)
    log = process.communicate(timeout=28)[1]
    assert process.returncode == 130, log
    assert "a second signal" in log


@pytest.mark.thorough
def test_the_same_signal_twice_at_once_saves_the_state(tmp_path: Path) -> None:
    """`timeout` sends its signal to the process and then to the group of processes."""
    process = asleep(tmp_path, signal.SIGINT)
    process.send_signal(signal.SIGINT)
    log = process.communicate(timeout=28)[1]  # after 30 s it is killed
    assert process.returncode == 130, log
    assert list((tmp_path / "run").glob("m.*.partial")), log


SENDS = """\
import os
import signal
from pathlib import Path
from cntkpy.readers.formats.text.options import create_text_reader
from cntkpy.trainers.step.reading import WrappedReader


class Sends(WrappedReader):
    number = 0

    def get_minibatch(self):
        Sends.number += 1
        if Sends.number == int(Path("when").read_text()):
            os.kill(os.getpid(), signal.SIGTERM)
        return super().get_minibatch()


def create(section, precision):
    return Sends(create_text_reader(section, precision))
"""
PHASES = """\
command = train
input = [ features = [ dim = 2 ; format = dense ] ; labels = [ dim = 2 ; format = dense ] ]
train = [
    action = train
    modelPath = run/m
    SimpleNetworkBuilder = [ layerSizes = 2:3:2 ; trainingCriterion = CrossEntropyWithSoftmax
        evalCriterion = ErrorPrediction ; applyMeanVarNorm = true ]
    SGD = [ maxEpochs = 3 ; minibatchSize = 4 ; learningRatesPerMB = 0.1 ; momentumPerMB = 0.9
        AutoAdjust = [ autoAdjustLR = searchBeforeEpoch ; numMiniBatch4LRSearch = 2 ] ]
    reader = [ readerType = create ; module = sends ; file = t.ctf ; randomize = false ; input = $input$ ]
    cvReader = [ readerType = create ; module = sends ; file = t.ctf ; randomize = false ; input = $input$ ]
]
"""
LINES = "".join(f"|features {k % 7} {k % 3} |labels {k % 2} {1 - k % 2}\n" for k in range(20))


def phases(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], when: int
) -> tuple[int, str]:
    """Train in this process; a SIGTERM arrives with that minibatch. Returns the exit status and the log."""
    from cntkpy.commands.runner.run import run

    for name, text in {"m.cntk": PHASES, "t.ctf": LINES, "sends.py": SENDS, "when": str(when)}.items():
        (folder / name).write_text(text)
    monkeypatch.chdir(folder)
    monkeypatch.delitem(sys.modules, "sends", raising=False)
    capfd.readouterr()
    status = run(["configFile=m.cntk"])
    return status, capfd.readouterr().err


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("when", "message", "resumed"),
    [
        (3, "training has not begun; start the same command again", "No PreCompute nodes"),
        (20, "the state before is saved in run/m.1; start the same command again", "Starting from checkpoint"),
        (-2, "the state at the end of the epoch is saved in run/m.2.partial", "Resuming after minibatch 5 "),
    ],
    ids=["precompute", "search", "validation"],
)
def test_outside_of_epochs(
    when: int,
    message: str,
    resumed: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """A signal while nodes are computed before training, while a rate is searched, while the cvReader is read."""
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    whole.mkdir()
    stopped.mkdir()
    status, log = phases(whole, monkeypatch, capfd, 0)
    assert status == 0, log
    number = sys.modules["sends"].Sends.number
    status, log = phases(stopped, monkeypatch, capfd, when if when > 0 else number + when)
    assert status == 143, log
    assert message in log
    status, log = phases(stopped, monkeypatch, capfd, 0)
    assert status == 0, log
    assert resumed in log or when == 3
    assert (stopped / "run/m").read_bytes() == (whole / "run/m").read_bytes()
    assert not list((stopped / "run").glob("*.partial"))
