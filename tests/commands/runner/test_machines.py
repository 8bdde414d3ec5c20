"""Training on several machines: each has a network namespace, a host name, and a link to a switch.

One worker is killed, one is cut off, one has a slow link; the run ends with an error that names the worker, and fewer
workers go on from the checkpoint. The bytes that a step sends are compared with those of a ring all-reduce.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from benchmarks.scaling import Link, all_reduce_seconds
from cntkpy.networks.files.model_file import load_model
from cntkpy.trainers.checkpoints.checkpoint import Checkpoint

PORT = 29400
SILENCE = 8
"""Seconds without a sign of life after which a worker counts as lost."""

CONFIG = """\
command = train
deviceId = cpu
precision = double
train = [ action = train ; modelPath = $RunDir$/net ; randomSeed = 3
    SimpleNetworkBuilder = [ layerSizes = 100:$hidden$:2 ; trainingCriterion = CrossEntropyWithSoftmax
        evalCriterion = ClassificationError ; layerTypes = Tanh ]
    SGD = [ maxEpochs = 2 ; epochSize = 0 ; minibatchSize = 30 ; learningRatesPerSample = 0.01 ; momentumPerMB = 0.9
        ParallelTrain = [ parallelizationMethod = DataParallelSGD ; distributedMBReading = true ] ]
    reader = [ readerType = CNTKTextFormatReader ; file = data.ctf ; randomize = true ; chunkSizeInBytes = 9000
        input = [ features = [ alias = x ; dim = 100 ; format = dense ]
            labels = [ alias = y ; dim = 2 ; format = dense ] ] ]
]
"""
ENDLESS = "train=[SGD=[maxEpochs=100000]]"


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def _namespaces() -> bool:
    """Whether this process may make network namespaces, with links between them."""
    name = f"cntkpy-{os.getpid()}"
    try:
        _ip("netns", "add", name)
        _ip("-n", name, "link", "add", "br0", "type", "bridge")
    except (OSError, subprocess.CalledProcessError):
        return False
    finally:
        with contextlib.suppress(OSError):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return True


pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(sys.platform != "linux" or not _namespaces(), reason="needs root and network namespaces"),
]


class Machines:
    """Machines that reach each other at `10.97.0.(k + 1)`.

    Args:
        count: how many.
        folder: the configuration, the data and the files that runs write.
    """

    def __init__(self, count: int, folder: Path) -> None:
        self.count, self.folder, self.prefix = count, folder, f"cntkpy-{os.getpid()}"
        self.started: list[subprocess.Popen[bytes]] = []
        hosts = ["127.0.0.1 localhost", *(f"10.97.0.{k + 1} machine{k}" for k in range(count))]
        (folder / "hosts").write_text("\n".join(hosts) + "\n")
        switch = f"{self.prefix}-switch"
        _ip("netns", "add", switch)
        _ip("-n", switch, "link", "add", "br0", "type", "bridge")
        _ip("-n", switch, "link", "set", "br0", "up")
        for k in range(count):
            name = f"{self.prefix}-{k}"
            _ip("netns", "add", name)
            _ip("link", "add", f"v{k}", "netns", name, "type", "veth", "peer", "name", f"p{k}", "netns", switch)
            _ip("-n", switch, "link", "set", f"p{k}", "master", "br0")
            _ip("-n", switch, "link", "set", f"p{k}", "up")
            _ip("-n", name, "addr", "add", f"10.97.0.{k + 1}/24", "dev", f"v{k}")
            _ip("-n", name, "link", "set", f"v{k}", "up")
            _ip("-n", name, "link", "set", "lo", "up")

    def start(self, run: str, *words: str, workers: int | None = None) -> list[subprocess.Popen[bytes]]:
        """A worker on each of the first machines; what they print is in `<run>.<machine>`."""
        count = workers or self.count
        found: list[subprocess.Popen[bytes]] = []
        for k in range(count):
            inside = f'hostname machine{k} && mount --bind hosts /etc/hosts && exec "$@"'
            command = [
                "ip",
                "netns",
                "exec",
                f"{self.prefix}-{k}",
                "unshare",
                "--uts",
                "--mount",
                "sh",
                "-c",
                inside,
                "-",
            ]
            command += [
                sys.executable,
                "-m",
                "cntkpy",
                "configFile=main.cntk",
                f"RunDir={run}",
                f"stderr={run}/log",
                *words,
            ]
            variables = {
                "CNTKPY_WORKERS": str(count),
                "CNTKPY_RANK": str(k),
                "JAX_COORDINATOR_ADDRESS": f"10.97.0.1:{PORT}",
                "CNTKPY_LOST_AFTER": str(SILENCE),
            }
            with (self.folder / f"{run}.{k}").open("a") as console:
                found.append(
                    subprocess.Popen(
                        command, cwd=self.folder, stdout=console, stderr=console, env=os.environ | variables
                    )
                )
        self.started += found
        return found

    def cut_off(self, machine: int) -> None:
        """Take the machine's cable out."""
        _ip("-n", f"{self.prefix}-switch", "link", "set", f"p{machine}", "down")

    def join_again(self, machine: int) -> None:
        """Put the cable back."""
        _ip("-n", f"{self.prefix}-switch", "link", "set", f"p{machine}", "up")

    def slow_down(self, machine: int, rate: str) -> None:
        """Let the machine's link carry so much per second, in both directions."""
        for name, device in ((f"{self.prefix}-{machine}", f"v{machine}"), (f"{self.prefix}-switch", f"p{machine}")):
            shape = ["tbf", "rate", rate, "burst", "16k", "latency", "400ms"]
            subprocess.run(["tc", "-n", name, "qdisc", "replace", "dev", device, "root", *shape], check=True)

    def sent(self, machine: int) -> int:
        """Bytes that the machine has sent, headers of Ethernet, IP and TCP included."""
        path = f"/sys/class/net/v{machine}/statistics/tx_bytes"
        done = subprocess.run(
            ["ip", "netns", "exec", f"{self.prefix}-{machine}", "cat", path], check=True, capture_output=True
        )
        return int(done.stdout)

    def said(self, run: str) -> str:
        """What all workers of a run have printed and logged."""
        logs = [*self.folder.glob(f"{run}/log*"), *self.folder.glob(f"{run}.[0-9]")]
        return "\n".join(path.read_text() for path in logs)

    def close(self) -> None:
        """End what runs, and take the machines away."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.wait(60)
        for name in (f"{self.prefix}-switch", *(f"{self.prefix}-{k}" for k in range(self.count))):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Callable[..., Machines]]:
    """Makes machines with data of 600 frames."""
    random = np.random.default_rng(1)
    x = random.normal(size=(600, 100))
    rows = (f"|x {' '.join(f'{v:.3f}' for v in row)} |y {int(row[0] > 0)} {int(row[0] <= 0)}\n" for row in x)
    (tmp_path / "data.ctf").write_text("".join(rows))
    made: list[Machines] = []

    def make(count: int, hidden: int = 20) -> Machines:
        (tmp_path / "main.cntk").write_text(CONFIG.replace("$hidden$", str(hidden)))
        made.append(Machines(count, tmp_path))
        return made[-1]

    yield make
    for one in made:
        one.close()


def ends(processes: list[subprocess.Popen[bytes]], seconds: float = 300) -> list[int]:
    """The exit statuses of workers."""
    end = time.monotonic() + seconds
    return [process.wait(max(1.0, end - time.monotonic())) for process in processes]


def after(log: Path, text: str, seconds: float = 200) -> None:
    """Wait until a log has a text."""
    end = time.monotonic() + seconds
    while not (log.exists() and text in log.read_text()):
        assert time.monotonic() < end, log.read_text() if log.exists() else f"no {log}"
        time.sleep(0.05)


def epochs_done(folder: Path) -> int:
    """How many epochs are finished; every file is whole."""
    for file in folder.glob("net*"):
        Checkpoint.load(str(file)) if file.suffix == ".ckp" else load_model(str(file), "double")
    return max(int(path.suffix[1:]) for path in folder.glob("net.*") if path.suffix[1:].isdigit())


def go_on(found: Machines, run: str, workers: int, done: int) -> int:
    """So many workers train for two epochs more than are done; returns how many are done then."""
    statuses = ends(found.start(run, f"train=[SGD=[maxEpochs={done + 2}]]", workers=workers))
    assert statuses == [0] * workers, found.said(run)
    finished = re.findall(r"Finished Epoch\[ *(\d+) of", (found.folder / run / "log").read_text())
    assert finished == [str(done + 1), str(done + 2)]
    return done + 2


def test_two_machines_have_the_numbers_of_one_process_and_a_slow_link_too(machines) -> None:
    found = machines(2)
    assert ends(found.start("two")) == [0, 0], found.said("two")
    found.slow_down(1, "4mbit")
    assert ends(found.start("slow")) == [0, 0], found.said("slow")
    subprocess.run(
        [sys.executable, "-m", "cntkpy", "configFile=main.cntk", "RunDir=one", "stderr=one/log"],
        cwd=found.folder,
        check=True,
    )
    one, *others = (load_model(str(found.folder / run / "net"), "double") for run in ("one", "two", "slow"))
    for node in one.nodes.values():
        if node.value is not None:
            for other in others:
                np.testing.assert_allclose(other[node.name].value, node.value, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("lost", [1, 0])
def test_a_killed_worker_ends_the_run_and_fewer_go_on(machines, lost: int) -> None:
    found = machines(4)
    workers = found.start("run", ENDLESS)
    after(found.folder / "run" / "log", "Finished Epoch[ 2 ")
    workers[lost].send_signal(signal.SIGKILL)
    begun = time.monotonic()
    statuses = ends(workers)
    assert time.monotonic() - begun < SILENCE + 45
    assert statuses[lost] == -signal.SIGKILL
    assert all(status != 0 for status in statuses)
    if lost:
        assert re.search(rf"EXCEPTION occurred: worker {lost} of 4 \(process \d+ on machine{lost}\)", found.said("run"))
    done = go_on(found, "run", 3, epochs_done(found.folder / "run"))
    go_on(found, "run", 2, done)


def test_a_machine_that_is_cut_off_ends_the_run_on_both_sides(machines) -> None:
    found = machines(2)
    workers = found.start("run", ENDLESS)
    after(found.folder / "run" / "log", "Finished Epoch[ 2 ")
    found.cut_off(1)
    assert ends(workers, 200) == [1, 1], found.said("run")
    assert re.search(
        r"EXCEPTION occurred: worker 1 of 2 \(process \d+ on machine1\)", (found.folder / "run" / "log").read_text()
    )
    assert re.search(r"EXCEPTION occurred: worker 0 of 2 \(process \d+ on machine0\)", found.said("run"))
    found.join_again(1)
    go_on(found, "run", 2, epochs_done(found.folder / "run"))


def seconds_of_an_epoch(log: Path) -> float:
    """The shortest of a run."""
    return min(float(found) for found in re.findall(r"epochTime=([\d.e-]+)s", log.read_text()))


@pytest.mark.parametrize("count", [2, 4])
def test_a_step_sends_what_a_ring_sends_and_takes_as_long(machines, count: int) -> None:
    """2 (K - 1) / K times the gradients is the least that each of K workers sends; headers and plans add a little.

    Over slow links a step takes the seconds that `benchmarks/scaling.py` computes.
    """
    found, sizes = machines(count, hidden=2000), []
    for epochs in (1, 3):
        before, run = found.sent(1), f"run{epochs}"
        assert ends(found.start(run, f"train=[SGD=[maxEpochs={epochs}]]")) == [0] * count, found.said(run)
        sizes.append(found.sent(1) - before)
    steps = 600 // 30
    gradients = 8 * (100 * 2000 + 2000 + 2000 * 2 + 2)
    ratio = (sizes[1] - sizes[0]) / (2 * steps) / (gradients * 2 * (count - 1) / count)
    assert 1.0 <= ratio < 1.15
    for machine in range(count):
        found.slow_down(machine, "80mbit")
    assert ends(found.start("slow", "train=[SGD=[maxEpochs=3]]")) == [0] * count, found.said("slow")
    seconds = [seconds_of_an_epoch(found.folder / run / "log") for run in ("run3", "slow")]
    expected = steps * all_reduce_seconds(count, gradients, Link("", 80e6, 50e-6))
    assert 0.9 < (seconds[1] - seconds[0]) / expected < 1.4
