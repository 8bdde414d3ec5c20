"""Shares of minibatches; several devices in one process; model averaging and block momentum against NumPy."""

import json
import math
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.files.model_file import load_model
from cntkpy.readers.minibatch import Layout, Minibatch
from cntkpy.readers.registry import create_reader
from cntkpy.trainers.parallel import rendezvous
from cntkpy.trainers.parallel.reading import SharedReader, part_of

RATE = float(np.float32(0.01))
"""Rates are stored in single precision, as in CNTK."""

LINEAR = """\
command = train
precision = double
modelPath = $RunDir$/m
train = [ action = train
    NDLNetworkBuilder = [ run = net ]
    net = [
        x = Input(2)
        y = Input(1)
        w = Parameter(1, 2, init=fixedValue, value=0)
        z = Times(w, x)
        cost = SquareError(y, z)
        FeatureNodes = (x)
        LabelNodes = (y)
        CriterionNodes = (cost)
        OutputNodes = (z)
    ]
    SGD = [ maxEpochs = 2 ; minibatchSize = 6 ; learningRatesPerSample = 0.01 ; momentumPerMB = 0
        ParallelTrain = [ $method$ ] ]
    reader = [ file = data.ctf ; randomize = false
        input = [ x = [ dim = 2 ; format = dense ] ; y = [ dim = 1 ; format = dense ] ] ]
]
"""


FILTERING = "blockSize=12;blockLearningRate=0.9;blockMomentum"
ETA = f"AsTimeConstant={-12 / math.log(0.6)!r}"
RUNS = {
    "one": ("*1", "DataParallelSGD"),
    "two": ("*2", "dataparallelsgd;DataParallelSGD=[gradientBits=1];syncPerfStats=3"),
    "three": ("all", "DataParallelSGD;parallelizationStartEpoch=2", "traceLevel=1"),
    "averaging": ("*2", "ModelAveragingSGD;ModelAveragingSGD=[blockSizePerWorker=6];syncPerfStats=2"),
    "blockTrue": ("*2", f"BlockMomentumSGD;BlockMomentumSGD=[{FILTERING}PerSync=0.6;useNesterovMomentum=true]"),
    "blockFalse": ("*2", f"BlockMomentumSGD;BlockMomentumSGD=[{FILTERING}{ETA};useNesterovMomentum=false]"),
    "long": ("*2", f"BlockMomentumSGD;BlockMomentumSGD=[{FILTERING}AsTimeConstant=1e30]"),
}
"""`deviceId`, `parallelizationMethod` and more words of the runs that the tests look at."""

BLOCKS = ("blockTrue", "blockFalse")
"""Those of which only thorough tests ask."""

MANY = """
import json, sys
from cntkpy.commands.runner.run import run
json.dump([run(words) for words in json.load(sys.stdin)], sys.stdout)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data, and the results of all runs but those of `BLOCKS`."""
    path = tmp_path_factory.mktemp("parallel")
    numbers = np.random.default_rng(1)
    x = numbers.normal(size=(26, 2)).round(3)
    y = (x @ [1.0, -2.0] + numbers.normal(size=26)).round(3)
    np.savez(path / "data.npz", x=x, y=y)
    (path / "data.ctf").write_text("".join(f"|x {a} {b} |y {c}\n" for (a, b), c in zip(x, y, strict=True)))
    (path / "main.cntk").write_text(LINEAR)
    run_in_one_process(path, [words_of(name) for name in RUNS if name not in BLOCKS])
    return path


@pytest.fixture(scope="module")
def folder_with_blocks(folder: Path) -> Path:
    """The same with the results of `BLOCKS`, one of which continues where another has ended."""
    words = [words_of(name) for name in BLOCKS]
    run_in_one_process(folder, [[*words[0], "train=[SGD=[maxEpochs=1]]", "modelPath=$RunDir$/m.1"], *words])
    return folder


def words_of(name: str) -> list[str]:
    device, method, *more = RUNS[name]
    given = [f"RunDir={name}", f"stderr={name}/log", f"deviceId={device}", f"method=parallelizationMethod={method}"]
    return ["configFile=main.cntk", *given, *more]


def run_in_one_process(path: Path, runs: list[list[str]]) -> None:
    """Of whose CPU XLA makes three devices. All but `long` end well."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=3"
    env = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", MANY],
        input=json.dumps(runs),
        cwd=path,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert json.loads(done.stdout) == [2 * ("RunDir=long" in words) for words in runs], done.stderr


def weights(folder: Path, run: str) -> np.ndarray:
    """What a run has learned."""
    value = load_model(str(folder / run / "m"), "double")["w"].value
    assert value is not None
    return value.reshape(-1)


def log_of(folder: Path, run: str) -> str:
    return (folder / run / "log").read_text()


def blocks(folder: Path, block: int):
    """Epoch after epoch and block after block, what each of two workers gets: lists of (x, y) in minibatches.

    26 samples in minibatches of 6; a minibatch of fewer than 6 is padded at its end. Worker 0 has the first half.
    """
    with np.load(folder / "data.npz") as data:
        x, y = data["x"], data["y"]
    for _ in range(2):
        minibatches, count = [], 0
        for first in range(0, 26, 6):
            part = slice(first, min(first + 6, 26))
            minibatches.append([(x[part][:3], y[part][:3]), (x[part][3:], y[part][3:])])
            count += len(x[part])
            if count >= block or part.stop == 26:
                yield minibatches
                minibatches, count = [], 0


def local(weights: np.ndarray, minibatches, worker: int) -> np.ndarray:
    """SGD of one worker on its parts of some minibatches: square error has the gradient 2 (w x - y) x."""
    for parts in minibatches:
        x, y = parts[worker]
        weights = weights - RATE * 2 * ((x @ weights - y) @ x)
    return weights


@pytest.mark.thorough
def test_model_averaging(folder: Path) -> None:
    model = np.zeros(2)
    for minibatches in blocks(folder, 12):
        counts = np.array([sum(len(parts[k][0]) for parts in minibatches) for k in range(2)])
        models = np.array([local(model, minibatches, k) for k in range(2)])
        model = counts @ models / counts.sum()
    np.testing.assert_allclose(weights(folder, "averaging"), model, rtol=1e-10)


@pytest.mark.thorough
@pytest.mark.parametrize("nesterov", [True, False])
def test_block_momentum(folder_with_blocks: Path, nesterov: bool) -> None:
    """Blockwise model update filtering: eta 0.6, zeta 0.9; with Nesterov's form resumed after the first epoch."""
    model, change, start = np.zeros(2), np.zeros(2), np.zeros(2)
    for minibatches in blocks(folder_with_blocks, 12):
        mean = np.mean([local(start, minibatches, k) for k in range(2)], axis=0)
        change = 0.6 * change + 0.9 * (mean - start)
        model = model + change
        start = model + 0.6 * change if nesterov else model
    np.testing.assert_allclose(weights(folder_with_blocks, f"block{nesterov}"), start, rtol=1e-10)
    line = "BlockMomentumSGD: momentum 0.6 after every 12 samples of all workers."
    assert log_of(folder_with_blocks, f"block{nesterov}").count(line) == 1


@pytest.mark.thorough
def test_a_block_momentum_of_one_is_refused(folder: Path) -> None:
    assert re.search(r"blockMomentumAsTimeConstant: .* too long for blocks of 12.*\n +--> ", log_of(folder, "long"))


def test_devices_of_one_process_and_the_first_parallel_epoch(folder: Path) -> None:
    """Synchronous SGD on 2 and 3 devices is that on one, whichever epoch begins it; fewer bits give one warning."""
    one = weights(folder, "one")
    np.testing.assert_allclose(weights(folder, "two"), one, rtol=1e-12)
    np.testing.assert_allclose(weights(folder, "three"), one, rtol=1e-12)
    assert log_of(folder, "two").count("WARNING: gradientBits below 64 is accepted") == 1
    assert [line for line in log_of(folder, "three").splitlines() if "Starting minibatch loop" in line] == [
        "Starting minibatch loop.",
        "Starting minibatch loop, DataParallelSGD training (myRank = 0, numNodes = 3, numGradientBits = 64).",
    ]


def test_what_the_log_says_of_devices_and_workers(folder: Path) -> None:
    for run, devices in (("one", "CPU"), ("two", "2 CPU devices"), ("three", "3 CPU devices")):
        assert log_of(folder, run).count(f"Model has 5 nodes. Using {devices}.") == 1
        assert log_of(folder, run).count("There is one worker: ParallelTrain has no effect.") == (run == "one")


def test_a_machine_without_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "no-such-machine.invalid")
    with pytest.raises(UserError, match=r"'no-such-machine\.invalid', has no address") as told:
        rendezvous.join(rendezvous.Rendezvous(0, 2, coordinator="192.0.2.1:1"), on_lost=sys.exit)
    assert "/etc/hosts" in str(told.value.hint)


@pytest.mark.parametrize("mode", [0o777, 0o755, None])
def test_a_socket_where_others_may_come(mode: int | None, tmp_path: Path) -> None:
    """Who can write to its folder can put a socket of his own there. None: there is no such folder."""
    folder = tmp_path / "open"
    if mode is not None:
        folder.mkdir()
        folder.chmod(mode)
    with pytest.raises(UserError, match=r"others can open the folder .*open, or it is missing") as told:
        rendezvous.join(rendezvous.Rendezvous(0, 2, coordinator=f"unix:{folder}/worker0"), on_lost=sys.exit)
    assert "chmod 700" in str(told.value.hint)
    assert mode is None or not list(folder.iterdir())


def test_statistics(folder: Path) -> None:
    """5 minibatches and 3 blocks an epoch, two epochs of 26 samples; `syncPerfStats` 3 and 2."""
    text = r"Parallel training statistics: (\d+) of \1 samples by this process; time = .*; samplesPerSecond = "
    for run, lines in (("two", 2), ("averaging", 3)):
        counts = [int(n) for n in re.findall(text, log_of(folder, run))]
        assert len(counts) <= lines
        assert 26 <= sum(counts) <= 52


def test_a_part_of_a_minibatch() -> None:
    """Parts are consecutive slots; together they are the whole."""
    sequences = np.array([[0, 0, 0, 3], [1, 1, 0, 2], [2, 2, 0, 1], [3, 2, 1, 3], [4, 3, 0, 3]])
    layout = Layout(3, 4, sequences)
    dense = np.arange(24.0).reshape(3, 4, 2)
    sparse = scipy.sparse.csr_matrix(np.arange(36).reshape(12, 3) % 5)
    whole = Minibatch({"x": dense, "s": sparse}, {"x": layout, "s": layout}, ["a", "b", "c", "d", "e"])
    for size in (1, 2, 3, 5):
        parts = [part_of(whole, rank, size) for rank in range(size)]
        assert [key for part in parts for key in part.keys] == whole.keys
        assert {part.columns_together for part in parts} == {12}
        np.testing.assert_array_equal(np.concatenate([part.streams["x"] for part in parts], axis=1), dense)
        rows = [part.streams["s"].toarray().reshape(3, part.layout.S, 3) for part in parts]
        np.testing.assert_array_equal(np.concatenate(rows, axis=1).reshape(12, 3), sparse.toarray())
        np.testing.assert_array_equal(np.concatenate([part.layout.mask for part in parts], axis=1), layout.mask)


@pytest.mark.parametrize("randomize", ["true", "false"])
@pytest.mark.parametrize("reads_share", [True, False])
@pytest.mark.parametrize("workers", [2, 3])
def test_parts_make_up_the_minibatches_of_one_process(
    tmp_path: Path, randomize: str, reads_share: bool, workers: int
) -> None:
    """As many for every worker, some of them empty; the samples and the cells of the whole ones, in order."""
    lengths = np.random.default_rng(2).integers(1, 7, size=30)
    (tmp_path / "d.ctf").write_text("".join(f"{i} |x {i}\n" for i, n in enumerate(lengths) for _ in range(n)))
    section = f"file={tmp_path}/d.ctf;randomize={randomize};chunkSizeInBytes=60;input=[x=[dim=1;format=dense]]"

    def read(reader) -> list[Minibatch]:
        reader.start_minibatch_loop(9, 1, 70)
        minibatches = []
        while (minibatch := reader.get_minibatch()) is not None:
            minibatches.append(minibatch)
        reader.close()
        return minibatches

    whole = read(create_reader(section, "double"))
    parts = []
    for rank in range(workers):
        reader = SharedReader(create_reader(section, "double"), rank, workers, reads_share)
        assert reader.reads_share is reads_share
        reader.active = True
        parts.append(read(reader))
    assert {len(part) for part in parts} == {len(whole)}
    for minibatch, *shares in zip(whole, *parts, strict=True):
        assert sorted(key for share in shares for key in share.keys) == sorted(minibatch.keys)
        assert sum(share.num_samples for share in shares) == minibatch.num_samples
        assert {share.columns_together for share in shares} == {minibatch.layout.T * minibatch.layout.S}


def test_sums_over_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small arrays of one type go together; large ones and those of another type go by themselves."""
    import jax

    from cntkpy.trainers.parallel import reduction
    from cntkpy.trainers.parallel.process_group import AXIS

    monkeypatch.setattr(reduction, "MAX_ELEMENTS_JOINED", 6)
    sent: list[list[int]] = []
    real = jax.lax.psum

    def psum(tree, axis):
        sent.append([leaf.size for leaf in jax.tree.leaves(tree)])
        return real(tree, axis)

    monkeypatch.setattr(jax.lax, "psum", psum)
    arrays = {"a": np.arange(12.0).reshape(2, 2, 3), "b": np.ones((2, 4)), "large": np.ones((2, 7)), "c": np.ones(2)}
    arrays["integers"] = np.array([[1, 2], [3, 4]])
    found = jax.vmap(reduction.SumsByJax().summed, axis_name=AXIS)(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], np.broadcast_to(array.sum(axis=0), array.shape))
    assert sent == [[6 + 4 + 1, 2, 7]]
