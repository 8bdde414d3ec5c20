"""Several processes train together: the numbers of one process, whatever starts them; what happens when one dies."""

import contextlib
import ipaddress
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import waited_for

from cntkpy.cntk_config.base.diagnostics import ConfigError, UserError
from cntkpy.commands.cli import main
from cntkpy.commands.runner import launch
from cntkpy.commands.runner.launch import _free_port
from cntkpy.networks.files.model_file import load_model
from cntkpy.trainers.checkpoints.checkpoint import Checkpoint
from cntkpy.trainers.parallel.launchers import find_meeting

CONFIG = """\
command = sequences:frames:test
precision = double
deviceId = cpu
parallel = DataParallelSGD
SGD = [ maxEpochs = 2 ; minibatchSize = 24 ; learningRatesPerMB = 0.3 ; momentumPerMB = 0.9
    ParallelTrain = [ parallelizationMethod = $parallel$ ] ]
input = [ x = [ dim = 3 ; format = dense ] ; s = [ dim = 40 ; format = sparse ] ; y = [ dim = 2 ; format = dense ] ]
frames = [ action = train ; modelPath = $RunDir$/frames
    NDLNetworkBuilder = [ run = net ]
    net = [
        x = Input(3)
        s = SparseInput(40)
        y = Input(2)
        W = Parameter(4, 3)
        E = Parameter(4, 40)
        a = Times(W, x)
        b = Times(E, s)
        ab = Plus(a, b)
        h = Tanh(ab)
        V = Parameter(2, 4)
        z = Times(V, h)
        ce = CrossEntropyWithSoftmax(y, z)
        err = ClassificationError(y, z)
        FeatureNodes = (x:s)
        LabelNodes = (y)
        CriterionNodes = (ce)
        EvalNodes = (err)
        OutputNodes = (z)
    ]
    reader = [ file = frames.ctf ; randomize = true ; chunkSizeInBytes = 1500 ; input = $input$ ]
]
sequences = [ action = train ; modelPath = $RunDir$/sequences
    NDLNetworkBuilder = [ run = net ]
    net = [
        x = Input(3)
        y = Input(2)
        W = Parameter(4, 3)
        R = Parameter(4, 4)
        past = PastValue(4, h)
        a = Times(W, x)
        b = Times(R, past)
        ab = Plus(a, b)
        h = Tanh(ab)
        V = Parameter(2, 4)
        z = Times(V, h)
        ce = CrossEntropyWithSoftmax(y, z)
        FeatureNodes = (x)
        LabelNodes = (y)
        CriterionNodes = (ce)
        OutputNodes = (z)
    ]
    reader = [ file = sequences.ctf ; randomize = true ; chunkSizeInBytes = 2000 ; input = $input$ ]
    cvReader = [ file = sequences.ctf ; randomize = false ; input = $input$ ]
]
test = [ action = test ; modelPath = $RunDir$/frames ; minibatchSize = 50
    reader = [ file = frames.ctf ; input = $input$ ] ]
"""

OWN_READING = "SGD=[ParallelTrain=[distributedMBReading=false]]"
"""Every worker reads everything and takes its part."""

ENDLESS = ["command=frames", "SGD=[maxEpochs=100000]"]

SILENCE = "10"
"""Seconds after which workers count as lost where one is killed or stopped; enough for a busy machine."""

STARTED: list[subprocess.Popen] = []


@pytest.fixture(autouse=True)
def nothing_is_left_running() -> Iterator[None]:
    """Whatever a test that fails has started is ended."""
    yield
    while STARTED:
        process = STARTED.pop()
        if process.poll() is None:
            process.kill()  # its workers end when it is gone
            process.wait(60)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Configuration and data; the run of one process in `one`, its log in `one/log`."""
    path = tmp_path_factory.mktemp("workers")
    numbers = np.random.default_rng(5)

    def line(sequence: int) -> str:
        x = numbers.normal(size=3)
        label = int(x[0] > 0)
        words = " ".join(f"{k}:1" for k in sorted(set(numbers.integers(40, size=2))))
        return f"{sequence} |x {' '.join(f'{v:.3f}' for v in x)} |s {words} |y {1 - label} {label}\n"

    (path / "frames.ctf").write_text("".join(line(i) for i in range(150)))
    (path / "sequences.ctf").write_text("".join(line(i) for i in range(40) for _ in range(numbers.integers(1, 9))))
    (path / "main.cntk").write_text(CONFIG)
    done = start(path, "one")
    assert done.wait(300) == 0, (path / "one.console").read_text()
    return path


def start(
    folder: Path,
    run: str,
    *words: str,
    before: tuple[str, ...] = (),
    workers: int = 1,
    config: str = "main.cntk",
    environment: dict[str, str] | None = None,
) -> subprocess.Popen:
    """A run with its files in a folder of its own; what it prints is in `<run>.console`."""
    many = ["run", "--workers", str(workers)] if workers > 1 else []
    command = [*before, sys.executable, "-m", "cntkpy", *many, f"configFile={config}", f"RunDir={run}"]
    with (folder / f"{run}.console").open("a") as console:
        process = subprocess.Popen(
            [*command, f"stderr={run}/log", *words],
            cwd=folder,
            stdout=console,
            stderr=console,
            env=os.environ | (environment or {}),
        )
    STARTED.append(process)
    return process


def results(log: Path) -> list[list[float]]:
    """The numbers of the lines that end an epoch or an evaluation, times left out."""
    lines = [line for line in log.read_text().splitlines() if "Finished Epoch" in line or "Final Results" in line]
    return [[float(n) for n in re.findall(r" [=*] ([-+.\de]+)", line)] for line in lines]


def check_equal(folder: Path, run: str) -> None:
    """The log and the checkpoint are those of one process; the averages that lines show have nine digits only."""
    for name in ("frames", "sequences"):
        one, other = (load_model(str(folder / part / name), "double") for part in ("one", run))
        for node in one.nodes.values():
            if node.value is not None:
                np.testing.assert_allclose(other[node.name].value, node.value, rtol=1e-9, atol=1e-12)
        first, second = (Checkpoint.load(str(folder / part / f"{name}.ckp")) for part in ("one", run))
        np.testing.assert_allclose(second.values["reference"], first.values["reference"], rtol=1e-9)
        for parameter, state in first.updates.items():
            np.testing.assert_allclose(second.updates[parameter]["v"], state["v"], rtol=1e-9, atol=1e-12)


@pytest.fixture(scope="module")
def two(folder: Path) -> Path:
    """The run of two workers, each of which reads its share."""
    assert start(folder, "two", workers=2).wait(500) == 0, (folder / "two.console").read_text()
    return folder / "two"


@pytest.mark.thorough
def test_the_numbers_of_one_process(folder: Path, two: Path) -> None:
    check_equal(folder, "two")
    assert results(two / "log") == results(folder / "one" / "log")
    assert results(two / "log.rank1") == results(folder / "one" / "log")
    assert "WARNING" not in (two / "log").read_text()


@pytest.mark.thorough
def test_workers_compile_once(folder: Path, tmp_path: Path) -> None:
    """A second run takes all programs of the first, in each worker, and calls its own sums by them."""
    environment = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path), "JAX_LOG_COMPILES": "1"}
    for run in ("empty", "filled"):
        assert start(folder, run, workers=2, environment=environment).wait(500) == 0
        told = "".join(path.read_text() for path in [folder / f"{run}.console", *(folder / run).glob("log*")])
        assert ("Finished XLA compilation" in told) == (run == "empty")
        check_equal(folder, run)


@pytest.mark.thorough
def test_four_workers_that_read_everything(folder: Path) -> None:
    words = ["command=sequences:frames", "traceLevel=1", OWN_READING]
    assert start(folder, "four", *words, workers=4).wait(500) == 0, (folder / "four.console").read_text()
    check_equal(folder, "four")
    assert results(folder / "four" / "log") == results(folder / "one" / "log")[:-1]
    assert "numNodes = 4" in (folder / "four" / "log").read_text()
    assert "distributed reading" not in (folder / "four" / "log").read_text()


WIDE = """\
command = wide:test
precision = double
deviceId = cpu
modelPath = $RunDir$/wide
input = [ features = [ alias = x ; dim = 3 ; format = dense ] ; labels = [ alias = y ; dim = 2 ; format = dense ] ]
wide = [ action = train
    SimpleNetworkBuilder = [ layerSizes = 3:8192:2 ; layerTypes = Sigmoid ; trainingCriterion = CrossEntropyWithSoftmax
        evalCriterion = ErrorPrediction ; applyMeanVarNorm = false ]
    SGD = [ maxEpochs = 2 ; minibatchSize = 3600 ; learningRatesPerMB = 0.3 ; momentumPerMB = 0.9
        ParallelTrain = [ parallelizationMethod = DataParallelSGD ] ]
    reader = [ file = many.ctf ; randomize = true ; chunkSizeInBytes = 3000 ; input = $input$ ]
]
test = [ action = test ; minibatchSize = 3600 ; reader = [ file = many.ctf ; input = $input$ ] ]
"""


@pytest.mark.thorough
def test_workers_of_unequal_shares_of_frames(folder: Path) -> None:
    """Of a wide layer: the numbers of one process."""
    lines = (folder / "frames.ctf").read_text().splitlines()
    frames = [re.sub(r"^\d+ |\|s [^|]*", "", line) for line in lines]
    (folder / "many.ctf").write_text("".join(f"{frames[i % len(frames)]}\n" for i in range(7200)))
    (folder / "wide.cntk").write_text(WIDE)
    for run, workers in (("wide1", 1), ("wide2", 2)):
        process = start(folder, run, config="wide.cntk", workers=workers)
        assert process.wait(300) == 0, (folder / f"{run}.console").read_text()
    assert results(folder / "wide2" / "log") == results(folder / "wide1" / "log")
    one, two = (load_model(str(folder / run / "wide"), "double") for run in ("wide1", "wide2"))
    for node in one.nodes.values():
        if node.value is not None:
            np.testing.assert_allclose(two[node.name].value, node.value, rtol=1e-9, atol=1e-12)


def _children(process: subprocess.Popen) -> list[int]:
    """The workers that a run has started, in order of their ranks."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == process.pid:
                variables = dict(v.split("=", 1) for v in (folder / "environ").read_text().split("\0") if "=" in v)
                found[int(variables["CNTKPY_RANK"])] = int(folder.name)
        except (OSError, KeyError):  # ended meanwhile, or not yet itself
            continue
    return [found[rank] for rank in sorted(found)]


def _wait_for(condition, seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def _after(log: Path, *texts: str) -> None:
    """Wait until a log has all these texts."""
    _wait_for(lambda: log.exists() and all(text in log.read_text() for text in texts))


def _check_files(path: Path) -> int:
    """Every file is whole; returns how many epochs are done."""
    done = max(int(p.suffix[1:]) for p in path.glob("frames.*") if p.suffix[1:].isdigit())
    for file in path.glob("frames.*"):
        Checkpoint.load(str(file)) if file.suffix == ".ckp" else load_model(str(file), "double")
    return done


@pytest.mark.thorough
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc")
def test_a_lost_worker_ends_the_others(folder: Path) -> None:
    """Nothing is left running, a message names the worker, files are whole, and another number of workers continues."""
    silence = {"CNTKPY_LOST_AFTER": SILENCE}
    log, console = folder / "lost" / "log", folder / "lost.console"

    # worker 1 of 3 is killed; by the way: as many threads compute in each as numCPUThreads says, at most the cores
    process = start(folder, "lost", *ENDLESS, "numCPUThreads=3", workers=3, environment=silence)
    _after(log, "Finished Epoch[ 3 ")
    children = _children(process)
    assert len(children) == 3
    assert [_computing_threads(child) for child in children] == [min(3, os.cpu_count() or 1)] * 3
    os.kill(children[1], signal.SIGKILL)
    assert process.wait(200) == 1
    assert f"worker 1 of 3 (process {children[1]}) was killed by SIGKILL" in console.read_text()
    assert re.search(rf"EXCEPTION occurred: worker 1 of 3 \(process {children[1]} on .*\)", log.read_text())
    assert not any(Path(f"/proc/{child}").exists() for child in children)
    done = _check_files(folder / "lost")

    # worker 0 of 2 is killed, which keeps what the workers tell each other
    process = start(folder, "lost", *ENDLESS, workers=2, environment=silence)
    _after(log, f"Loading network from 'lost/frames.{done}'", f"Finished Epoch[ {done + 2} ")
    children = _children(process)
    assert [_computing_threads(child) for child in children] == [max(1, len(os.sched_getaffinity(0)) // 2)] * 2
    os.kill(children[0], signal.SIGKILL)
    assert process.wait(200) == 1
    assert f"worker 0 of 2 (process {children[0]}) was killed by SIGKILL" in console.read_text()
    assert not any(Path(f"/proc/{child}").exists() for child in children)
    done = _check_files(folder / "lost")

    # worker 0 of 2 hangs, and nobody watches over them
    together = silence | {"CNTKPY_WORKERS": "2", "JAX_COORDINATOR_ADDRESS": f"127.0.0.1:{_free_port()}"}
    zero, one = (start(folder, "lost", *ENDLESS, environment=together | {"CNTKPY_RANK": rank}) for rank in "01")
    _after(log, f"Loading network from 'lost/frames.{done}'", f"Finished Epoch[ {done + 2} ")
    os.kill(zero.pid, signal.SIGSTOP)
    assert one.wait(200) == 1
    told = (folder / "lost" / "log.rank1").read_text()
    assert re.search(rf"EXCEPTION occurred: worker 0 of 2 \(process {zero.pid} on .*\), which .* not answered", told)
    zero.kill()
    done = _check_files(folder / "lost")

    again = start(folder, "lost", "command=frames", f"SGD=[maxEpochs={done + 2}]")
    assert again.wait(300) == 0, console.read_text()
    assert f"Loading network from 'lost/frames.{done}'" in log.read_text()
    assert len(results(log)) == 2


def _computing_threads(process: int) -> int:
    """Threads of XLA's pool in a process."""
    names = [(task / "comm").read_text() for task in Path(f"/proc/{process}/task").iterdir()]
    return sum("XLAEigen" in name for name in names)


def test_the_launcher_kills_what_does_not_end(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture) -> None:
    monkeypatch.setattr(launch, "GRACE", 0.0)
    hangs = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    fails = subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])
    STARTED.extend([hangs, fails])
    assert launch._watch([hangs, fails], [], silence=600.0) == 3
    told = capfd.readouterr().err
    assert f"worker 1 of 2 (process {fails.pid}) ended with exit status 3; the others end" in told
    assert f"worker 0 of 2 (process {hangs.pid}) has not ended and is killed" in told
    assert hangs.returncode == -signal.SIGKILL


def test_workers_are_told_a_socket_that_is_removed(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    """Its folder is open to this user only; its name is in their environment, which others cannot read."""
    program = tmp_path / "worker.py"
    program.write_text(
        "import os, pathlib\nname = os.environ['JAX_COORDINATOR_ADDRESS'].removeprefix('unix:')\n"
        "pathlib.Path(name).touch()\nos.write(1, f'{name}\\n'.encode())\n"
    )
    assert launch.launch([str(program)], 2) == 0
    (name,) = set(capfd.readouterr().out.split())
    assert stat.S_IMODE(Path(name).parent.stat().st_mode) == 0o700
    assert not Path(name).exists()


def test_one_process_runs_a_program(tmp_path: Path, capfd: pytest.CaptureFixture, monkeypatch) -> None:
    """`cntkpy run program.py` passes arguments and the exit status on, and starts no group of workers (N3)."""
    monkeypatch.chdir(tmp_path)
    program = "import os, sys, cntk\nprint(sys.argv, 'JAX_COORDINATOR_ADDRESS' in os.environ)\nsys.exit(7)\n"
    Path("program.py").write_text(program)
    assert main(["run", "program.py", "--epochs", "3", "rate=2"]) == 7
    assert capfd.readouterr() == ("['program.py', '--epochs', '3', 'rate=2'] False\n", "")
    Path("program.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    assert main(["run", "program.py"]) == 128 + signal.SIGKILL
    assert main(["run", "gone.py"]) == 2
    assert "there is no program gone.py" in capfd.readouterr().err


def _listening(process: int) -> list[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    """The addresses on which a process listens."""
    links = []
    for one in Path(f"/proc/{process}/fd").iterdir():
        with contextlib.suppress(OSError):
            links.append(str(one.readlink()))
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and f"socket:[{words[9]}]" in links:
                number = bytes.fromhex(words[1].partition(":")[0])
                address = b"".join(number[i : i + 4][::-1] for i in range(0, len(number), 4))
                one = ipaddress.ip_address(address)
                found.append(getattr(one, "ipv4_mapped", None) or one)
    return found


SLEEPY = f"""\
import os
import time
from pathlib import Path
from cntkpy.readers.formats.text.options import create_text_reader
from cntkpy.trainers.step.reading import WrappedReader

FILES = ["asleep.train", "asleep.cv"]


{waited_for.SOURCE}

class Sleepy(WrappedReader):
    def __init__(self, reader):
        super().__init__(reader)
        self.file, self.number, self.epochs = Path(FILES.pop(0)), 0, 0

    def start(self, request):
        self.number, self.epochs = 0, self.epochs + 1
        super().start(request)

    def get_minibatch(self):
        self.number += 1
        # The first epoch is read before it is trained. The evaluation sleeps in the run after the one that slept.
        is_time = self.epochs == 2 if self.file.name == "asleep.train" else Path("asleep.train").exists()
        if is_time and self.number == 6 and os.environ["CNTKPY_RANK"] == "1" and not self.file.exists():
            until_waited_for()
            self.file.touch()
            time.sleep(1000)
        return super().get_minibatch()


def create(section, precision):
    return Sleepy(create_text_reader(section, precision))
"""


@pytest.mark.thorough
def test_a_stopped_run_goes_on(folder: Path, two: Path) -> None:
    """A signal saves the state of all workers, while the reader of one of them sleeps; the result stays the same.

    It arrives inside the second epoch, then in the evaluation after it.
    """
    (folder / "sleepy.py").write_text(SLEEPY)
    sleepy = "readerType = create ; module = sleepy"
    words = ["command=sequences", f"sequences=[reader=[{sleepy}];cvReader=[{sleepy}]]", "SGD=[numMBsToShowResult=2]"]
    log = folder / "stopped" / "log"
    for asleep, saved in (("train", "after 4 minibatches"), ("cv", "at the end")):
        process = start(folder, "stopped", *words, workers=2)
        _wait_for(lambda file=f"asleep.{asleep}": (folder / file).exists())
        if Path("/proc").is_dir() and asleep == "train":
            listening = [_listening(child) for child in _children(process)]
            assert listening == [[], []]  # they meet at a socket in a folder of this user, and share memory
            _send_garbage(process)
        process.send_signal(signal.SIGINT)
        assert process.wait(28) == 130, (folder / "stopped.console").read_text()
        for one in (log, log.with_name("log.rank1")):
            assert f"interrupted: the state {saved} of the epoch is saved in stopped/sequences.1" in one.read_text()
        assert (folder / "stopped" / "sequences.1.partial").exists()
    again = start(folder, "stopped", *words, workers=2)
    assert again.wait(300) == 0
    assert "Resuming after minibatch" in log.read_text()
    assert (folder / "stopped/sequences.ckp").read_bytes() == (two / "sequences.ckp").read_bytes()
    stopped, whole = (tensors(place / "sequences") for place in (folder / "stopped", two))
    assert stopped == whole  # the settings that are kept with them name other readers


def _send_garbage(process: subprocess.Popen) -> None:
    """To where the workers of a run meet: what a stranger says changes nothing."""
    environment = Path(f"/proc/{_children(process)[0]}/environ").read_text().split("\0")
    address = next(one for one in environment if one.startswith("JAX_COORDINATOR_ADDRESS=")).partition("unix:")[2]
    assert stat.S_IMODE(Path(address).parent.stat().st_mode) == 0o700
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stranger, contextlib.suppress(ConnectionError):
        stranger.settimeout(60)
        stranger.connect(address)
        stranger.sendall(b"\xff nonsense \0" * 9999)
        while stranger.recv(9999):
            pass


@pytest.mark.thorough
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc")
def test_workers_that_cannot_share_memory(folder: Path) -> None:
    """Each has two devices, so JAX sums up: what listens for that does so on the loopback, and a warning says it."""
    environment = {"XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=2"}
    process = start(folder, "devices", "deviceId=*2", *ENDLESS, workers=2, environment=environment)
    _after(folder / "devices" / "log", "Finished Epoch[ 3 ")
    listening = [_listening(child) for child in _children(process)]
    assert all(listening), listening
    assert all(address.is_loopback for found in listening for address in found), listening
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 143
    log = (folder / "devices" / "log").read_text()
    assert log.count("what exchanges arrays between workers listens on the loopback of this machine without auth") == 1
    assert start(folder, "alone", "command=frames").wait(300) == 0
    assert results(folder / "devices" / "log")[:2] == results(folder / "alone" / "log")


def tensors(path: Path) -> dict[str, bytes]:
    """The arrays of a model file."""
    from safetensors.numpy import load_file

    return {name: value.tobytes() for name, value in load_file(path).items()}


@pytest.mark.thorough
def test_an_error_of_one_worker_is_told_to_the_others(folder: Path) -> None:
    """Only worker 1 meets the bad value; worker 0 says so, and nobody hangs."""
    lines = (folder / "frames.ctf").read_text().splitlines(keepends=True)
    (folder / "bad.ctf").write_text("".join(lines[:101]) + "101 |x 1 2 nonsense |s 1:1 |y 0 1\n" + "".join(lines[102:]))
    words = ["command=frames", "frames=[reader=[file=bad.ctf;randomize=false;maxErrors=0]]"]
    process = start(folder, "bad", *words, workers=2)
    assert process.wait(200) == 1
    told = (folder / "bad" / "log").read_text() + (folder / "bad" / "log.rank1").read_text()
    assert "nonsense" in told


def test_how_processes_were_started() -> None:
    assert find_meeting({}) is None
    assert find_meeting({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1"}) is None
    own = find_meeting({"CNTKPY_RANK": "2", "CNTKPY_WORKERS": "3", "JAX_COORDINATOR_ADDRESS": "127.0.0.1:4000"})
    assert own is not None
    assert (own.rank, own.size, own.local_rank, own.coordinator) == (2, 3, 2, "127.0.0.1:4000")

    open_mpi = {
        "OMPI_COMM_WORLD_RANK": "3",
        "OMPI_COMM_WORLD_SIZE": "4",
        "OMPI_COMM_WORLD_LOCAL_RANK": "1",
        "OMPI_MCA_ess_base_jobid": "1531576321",
    }
    far = find_meeting(open_mpi | {"OMPI_COMM_WORLD_LOCAL_SIZE": "2"})
    assert far is not None
    assert (far.rank, far.local_rank, far.coordinator) == (3, 1, None)  # several machines: JAX asks Open MPI
    near = find_meeting(open_mpi | {"OMPI_COMM_WORLD_LOCAL_SIZE": "4"})
    assert near is not None
    assert (
        near.coordinator
        == find_meeting(open_mpi | {"OMPI_COMM_WORLD_LOCAL_SIZE": "4", "OMPI_COMM_WORLD_RANK": "0"}).coordinator
    )  # type: ignore[union-attr]
    folder = Path(str(near.coordinator).removeprefix("unix:")).parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700

    mpich = {"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"}
    assert str(find_meeting(mpich).coordinator).startswith("unix:/")  # type: ignore[union-attr]
    with pytest.raises(ConfigError, match="MPICH has started 2 processes on several machines") as caught:
        find_meeting(mpich | {"MPI_LOCALNRANKS": "1"})
    assert "JAX_COORDINATOR_ADDRESS" in str(caught.value.diagnostic.hint)

    slurm = find_meeting({"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2", "SLURM_LOCALID": "0"})
    assert slurm is not None
    assert (slurm.rank, slurm.size, slurm.coordinator) == (1, 2, None)  # JAX asks Slurm


def test_parallel_train_false_leaves_every_process_alone(cntkpy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CNTKPY_RANK", "0")
    monkeypatch.setenv("CNTKPY_WORKERS", "2")
    got = cntkpy("configFile=c.cntk", files={"c.cntk": "command = ()\nparallelTrain = false\n"})
    assert got.code == 0, got.err


def test_the_number_of_workers(cntkpy) -> None:
    got = cntkpy("run", "--workers", "0", "configFile=c.cntk", files={"c.cntk": "command = ()\n"})
    assert got.code == 2
    assert "--workers is at least 1" in got.err


@pytest.mark.thorough
@pytest.mark.parametrize("launcher", ["mpiexec", "mpiexec.hydra"])
def test_the_sample(folder: Path, launcher: str) -> None:
    """The sample configuration, started by Open MPI or whatever `mpiexec` is, and by MPICH."""
    mpiexec = shutil.which(launcher)
    if mpiexec is None:
        pytest.skip(f"there is no {launcher} on this machine (Debian: apt-get install openmpi-bin, mpich)")
    version = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, check=False).stdout
    more = ("--allow-run-as-root", "--oversubscribe", "--bind-to", "none") if "Open" in version else ()
    samples = Path(__file__).resolve().parents[3] / "sample_configs"
    words = [f"SampleDir={samples}", "deviceId=cpu", "traceLevel=1"]
    process = start(folder, launcher, *words, before=(mpiexec, *more, "-n", "2"), config=f"{samples}/parallel.cntk")
    assert process.wait(300) == 0, (folder / f"{launcher}.console").read_text()
    log = (folder / launcher / "log").read_text()
    assert "numNodes = 2" in log
    found = re.search(r"^Final Results: .*EvalClassificationError = ([0-9.]+) \* 397;", log, re.MULTILINE)
    assert found is not None
    assert float(found[1]) < 0.12


def test_without_a_private_folder_workers_do_not_meet_at_a_port(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Somebody else may have taken the name of the folder: nothing listens on TCP for that."""
    from cntkpy.commands.runner import launch as launching
    from cntkpy.trainers.parallel import launchers

    for module in (launching, launchers):
        monkeypatch.setattr(module, "socket_folder", lambda: None)
    assert launching.launch(["configFile=none.cntk"], 2) == 1
    assert "the workers have no folder to meet in that only you can write to" in capsys.readouterr().err
    with pytest.raises(UserError, match="the workers have no folder to meet in that only you can write to"):
        find_meeting({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "0",
                      "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "OMPI_MCA_ess_base_jobid": "7"})  # fmt: skip
