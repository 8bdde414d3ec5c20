"""Several processes train together: the numbers of one process, whatever starts them; what happens when one dies."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cntk_config.diagnostics import ConfigError
from commands.workers import find_meeting
from networks.model_file import load_model
from trainers.checkpoint import Checkpoint

CONFIG = """\
command = frames:sequences:test
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

LONG = ["command=frames", "traceLevel=1", "SGD=[maxEpochs=100000;ParallelTrain=[distributedMBReading=false]]"]


STARTED: list[subprocess.Popen] = []


@pytest.fixture(autouse=True)
def nothing_is_left_running() -> Iterator[None]:
    """Whatever a test that fails has started is ended."""
    yield
    while STARTED:
        process = STARTED.pop()
        if process.poll() is None:
            process.terminate()
            process.wait(60)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Configuration and data; the run of one process in `one`, its log in `one/log`."""
    pytest.importorskip("jax")
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


def start(folder: Path, run: str, *words: str, before: tuple[str, ...] = (), workers: int = 1) -> subprocess.Popen:
    """A run with its files in a folder of its own; what it prints is in `<run>.console`."""
    many = ["run", "--workers", str(workers)] if workers > 1 else []
    command = [*before, sys.executable, "-m", "cntkpy", *many, "configFile=main.cntk", f"RunDir={run}"]
    with (folder / f"{run}.console").open("a") as console:
        process = subprocess.Popen([*command, f"stderr={run}/log", *words], cwd=folder, stdout=console, stderr=console)
    STARTED.append(process)
    return process


def results(log: Path) -> list[list[float]]:
    """The numbers of the lines that end an epoch or an evaluation, times left out."""
    lines = [line for line in log.read_text().splitlines() if "Finished Epoch" in line or "Final Results" in line]
    return [[float(n) for n in re.findall(r" [=*] ([-+.\de]+)", line)] for line in lines]


def check_equal(folder: Path, run: str) -> None:
    """The log and the checkpoint are those of one process; the averages that lines show have nine digits only."""
    assert results(folder / run / "log") == results(folder / "one" / "log")
    for name in ("frames", "sequences"):
        one, other = (load_model(str(folder / part / name), "double") for part in ("one", run))
        for node in one.nodes.values():
            if node.value is not None:
                np.testing.assert_allclose(other[node.name].value, node.value, rtol=1e-9, atol=1e-12)
        first, second = (Checkpoint.load(str(folder / part / f"{name}.ckp")) for part in ("one", run))
        np.testing.assert_allclose(second.reference, first.reference, rtol=1e-9)
        for parameter, state in first.update_state.items():
            np.testing.assert_allclose(second.update_state[parameter]["v"], state["v"], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("workers", [2, 4])
def test_the_numbers_of_one_process(folder: Path, workers: int) -> None:
    run = f"workers{workers}"
    assert start(folder, run, workers=workers).wait(500) == 0, (folder / f"{run}.console").read_text()
    check_equal(folder, run)
    assert results(folder / run / "log.rank1") == results(folder / "one" / "log")
    assert "WARNING" not in (folder / run / "log").read_text()


def test_mpiexec(folder: Path) -> None:
    mpiexec = shutil.which("mpiexec")
    if mpiexec is None:
        pytest.skip("there is no mpiexec on this machine (Debian: apt-get install openmpi-bin)")
    more = ("--allow-run-as-root", "--oversubscribe") if "Open" in _version(mpiexec) else ()
    done = start(folder, "mpi", "SGD=[ParallelTrain=[distributedMBReading=false]]",
                 before=(mpiexec, *more, "-n", "2"))  # fmt: skip
    assert done.wait(300) == 0, (folder / "mpi.console").read_text()
    check_equal(folder, "mpi")


def _version(mpiexec: str) -> str:
    return subprocess.run([mpiexec, "--version"], capture_output=True, text=True, check=False).stdout


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


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc")
@pytest.mark.parametrize("rank", [1, 0])
def test_a_killed_worker_ends_the_others(folder: Path, rank: int) -> None:
    """Nothing is left running, the message names the worker, files are whole, and another number of workers goes on."""
    run = f"killed{rank}"
    process = start(folder, run, *LONG, workers=3)
    log = folder / run / "log"
    _wait_for(lambda: log.exists() and "Finished Epoch[ 3 " in log.read_text())
    children = _children(process)
    assert len(children) == 3
    os.kill(children[rank], signal.SIGKILL)
    assert process.wait(200) == 1
    assert (
        f"worker {rank} of 3 (process {children[rank]}) was killed by SIGKILL"
        in (folder / f"{run}.console").read_text()
    )
    assert not any(Path(f"/proc/{child}").exists() for child in children)
    if rank:
        assert re.search(r"EXCEPTION occurred: worker 1 of 3 \(process \d+ on .*\)", log.read_text())
    saved = max((p for p in (folder / run).glob("frames.*") if p.suffix[1:].isdigit()), key=lambda p: int(p.suffix[1:]))
    load_model(str(saved), "double")
    Checkpoint.load(f"{saved}.ckp")
    before = int(saved.suffix[1:])
    assert not list((folder / run).glob("*.tmp"))

    again = start(folder, run, "command=frames", f"SGD=[maxEpochs={before + 2}]", workers=2)
    assert again.wait(300) == 0, (folder / f"{run}.console").read_text()
    assert f"Loading network from '{run}/frames.{before}'" in log.read_text()
    assert len(results(log)) == 2


def test_a_stopped_run_goes_on(folder: Path) -> None:
    """A signal saves the state of all workers inside the epoch; the result is that of an undisturbed run."""
    words = ["command=sequences", "SGD=[epochSize=6000]"]
    process = start(folder, "stopped", *words, workers=2)
    log = folder / "stopped" / "log"
    _wait_for(lambda: log.exists() and (folder / "stopped" / "sequences.0").exists())
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    assert process.wait(200) == 130, (folder / "stopped.console").read_text()
    again = start(folder, "stopped", *words, workers=2)
    assert again.wait(300) == 0
    assert start(folder, "undisturbed", *words, workers=2).wait(300) == 0
    for name in ("sequences", "sequences.ckp"):
        one, other = ((folder / run / name).read_bytes() for run in ("stopped", "undisturbed"))
        assert one == other


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

    open_mpi = {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "1",
                "OMPI_MCA_ess_base_jobid": "1531576321"}  # fmt: skip
    far = find_meeting(open_mpi | {"OMPI_COMM_WORLD_LOCAL_SIZE": "2"})
    assert far is not None
    assert (far.rank, far.local_rank, far.coordinator) == (3, 1, None)  # several machines: JAX asks Open MPI
    near = find_meeting(open_mpi | {"OMPI_COMM_WORLD_LOCAL_SIZE": "4"})
    assert near is not None
    assert (
        near.coordinator
        == find_meeting(open_mpi | {"OMPI_COMM_WORLD_LOCAL_SIZE": "4", "OMPI_COMM_WORLD_RANK": "0"}).coordinator
    )  # type: ignore[union-attr]
    assert str(near.coordinator).startswith("127.0.0.1:")

    mpich = {"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"}
    assert str(find_meeting(mpich).coordinator).startswith("127.0.0.1:")  # type: ignore[union-attr]
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


def test_the_sample(cntkpy_process) -> None:
    """The sample configuration, as its first lines say, by two workers."""
    pytest.importorskip("jax")
    root = Path(__file__).resolve().parents[2]
    got = cntkpy_process("run", "--workers", "2", f"configFile={root}/sample_configs/parallel.cntk",
                         f"SampleDir={root}/sample_configs", "RunDir=output", "deviceId=cpu")  # fmt: skip
    assert got.code == 0, got.err
    found = re.search(r"^Final Results: .*EvalClassificationError = ([0-9.]+) \* 397;", got.err, re.MULTILINE)
    assert found is not None
    assert float(found[1]) < 0.12
