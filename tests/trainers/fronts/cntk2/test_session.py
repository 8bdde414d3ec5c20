"""Training sessions: how far they go, what they print, what they save, how they continue."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cntkpy.networks.builders.python import layers
from cntkpy.networks.builders.python.functions.graph import set_seed
from cntkpy.networks.builders.python.functions.variables import input_variable, sequence_input
from cntkpy.networks.builders.python.operations import operators
from cntkpy.readers import (
    CTFDeserializer,
    MinibatchData,
    MinibatchSource,
    MinibatchSourceFromData,
    StreamDef,
    StreamDefs,
    StreamInformation,
    UserMinibatchSource,
    Value,
)
from cntkpy.readers.errors import ArgumentError
from cntkpy.trainers.fronts.cntk2 import learners, schedules
from cntkpy.trainers.fronts.cntk2.progress import ProgressPrinter, ProgressWriter
from cntkpy.trainers.fronts.cntk2.session import (
    CheckpointConfig,
    CrossValidationConfig,
    DataUnit,
    TestConfig,
    TrainingSession,
)
from cntkpy.trainers.fronts.cntk2.trainer import Trainer
from cntkpy.trainers.fronts.cntk2.values import evaluate

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(90, 8)).astype(np.float32)
Y = np.eye(3, dtype=np.float32)[(X @ RANDOM.normal(size=(8, 3))).argmax(axis=1)]
LINE = (
    r"Finished Epoch\[{} of 10\]: \[Training\] loss = \d\.\d{{6}} \* {}, metric = \d+\.\d\d% \* {} \d+\.\d{{3}}s "
    r"\( *\d+\.\d samples/s\);"
)


def parts(writers=(), rate=0.1, dropout=0.0):
    x, y = input_variable(8, name="x"), input_variable(3, name="y")
    hidden = layers.Dense(6, activation=operators.tanh, init=layers.glorot_uniform(seed=1))(x)
    z = layers.Dense(3, init=layers.glorot_uniform(seed=2))(operators.dropout(hidden, dropout))
    loss, errors = operators.cross_entropy_with_softmax(z, y), operators.classification_error(z, y)
    trainer = Trainer(z, (loss, errors), learners.momentum_sgd(z.parameters, rate, 0.9), list(writers))
    return trainer, x, y, z


def ctf(tmp_path: Path, **options):
    path = tmp_path / "data.ctf"
    path.write_text(
        "".join(
            f"|x {' '.join(map(str, a.tolist()))} |y {' '.join(map(str, b.tolist()))}\n"
            for a, b in zip(X, Y, strict=True)
        )
    )
    streams = StreamDefs(x=StreamDef(field="x", shape=8), y=StreamDef(field="y", shape=3))
    return MinibatchSource(CTFDeserializer(str(path), streams), **options)


def test_lines_of_a_session(capsys) -> None:
    trainer, x, y, _ = parts([ProgressPrinter(tag="Training", num_epochs=10)])
    source = MinibatchSourceFromData({"x": X, "y": Y})
    session = TrainingSession(
        trainer, source, 7, {x: source.streams.x, y: source.streams.y}, max_samples=80, progress_frequency=20
    )
    session.train()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    for number, line in enumerate(lines, 1):
        assert re.fullmatch(LINE.format(number, 20, 20), line), line
    assert trainer.total_number_of_samples_seen == 80


def test_a_session_trains_what_minibatches_train(tmp_path) -> None:
    one, x, y, z = parts()
    source = ctf(tmp_path, max_sweeps=3, randomization_seed=5)
    TrainingSession(one, source, 16, {x: source.streams.x, y: source.streams.y}).train()
    other, x2, y2, z2 = parts()
    source = ctf(tmp_path, max_sweeps=3, randomization_seed=5)
    while found := source.next_minibatch(16, {x2: source.streams.x, y2: source.streams.y}):
        other.train_minibatch(found)
    assert one.total_number_of_samples_seen == 270
    assert one.total_number_of_sweeps == 3
    for a, b in zip(z.parameters, z2.parameters, strict=True):
        np.testing.assert_allclose(a.value, b.value, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    "frequency, lines", [((1, DataUnit.sweep), 3), ((4, DataUnit.minibatch), 5), (100, 3), (None, 1)]
)
@pytest.mark.sampled
def test_frequencies(tmp_path, capsys, frequency, lines) -> None:
    trainer, x, y, _ = parts([ProgressPrinter()])
    source = ctf(tmp_path, max_sweeps=3)
    TrainingSession(trainer, source, 15, {x: source.streams.x, y: source.streams.y}, None, frequency).train()
    assert len(capsys.readouterr().out.splitlines()) == lines


def test_cross_validation_and_test(tmp_path, capsys) -> None:
    trainer, x, y, _ = parts([ProgressPrinter(test_freq=1)])
    source, other = ctf(tmp_path, max_sweeps=2), ctf(tmp_path, max_sweeps=1, randomize=False)
    seen = []
    cv = CrossValidationConfig(other, (1, DataUnit.sweep), 40, lambda *result: seen.append(result))
    streams = {x: source.streams.x, y: source.streams.y}
    test = TestConfig(ctf(tmp_path, max_sweeps=1, randomize=False), 90)
    TrainingSession(trainer, source, 15, streams, cv_config=cv, test_config=test).train()
    assert [(index, samples, count) for index, _, samples, count in seen] == [(0, 90, 3), (1, 90, 3)]
    out = capsys.readouterr().out
    assert re.search(r"^Finished Evaluation \[3\]: Minibatch\[1-1\]: metric = \d+\.\d\d% \* 90;$", out, re.M)
    assert " Minibatch[   2-   2]: metric = " in out


def test_a_callback_ends_training(tmp_path) -> None:
    trainer, x, y, _ = parts()
    source = ctf(tmp_path)
    cv = CrossValidationConfig(ctf(tmp_path, max_sweeps=1), 30, 90, lambda *result: False)
    streams = {x: source.streams.x, y: source.streams.y}
    TrainingSession(trainer, source, 10, streams, max_samples=1000, cv_config=cv).train()
    assert trainer.total_number_of_samples_seen == 30


@pytest.mark.parametrize("frequency", [None, sys.maxsize, (sys.maxsize, DataUnit.minibatch)])
@pytest.mark.sampled
def test_a_cross_validation_without_frequency_is_at_the_end(tmp_path, frequency) -> None:
    trainer, x, y, _ = parts()
    source, seen = ctf(tmp_path, max_sweeps=2), []
    other = ctf(tmp_path, max_sweeps=1)

    def callback(*result):
        seen.append((trainer.total_number_of_samples_seen, result[0], *result[2:]))

    streams = {x: source.streams.x, y: source.streams.y}
    cv = CrossValidationConfig(other, frequency, 40, callback)
    TrainingSession(trainer, source, 15, streams, cv_config=cv).train()
    assert seen == [(180, 0, 90, 3)]
    TrainingSession(trainer, source, 15, streams, cv_config=CrossValidationConfig(other, 0, 40, callback)).train()
    alone = CrossValidationConfig(callback=callback, frequency=frequency)
    TrainingSession(trainer, source, 15, streams, cv_config=alone).train()
    assert seen[1:] == [(180, 0, 0, 0)]
    TrainingSession(trainer, source, 15, streams, cv_config=CrossValidationConfig()).train()


class Numbers(UserMinibatchSource):
    """A source of a program, whose position is the number of samples that it has given out."""

    def __init__(self, count: int) -> None:
        self.count, self.at, self.restored = count, 0, []
        names = [("x", X.shape[1:]), ("y", Y.shape[1:])]
        self.infos = [StreamInformation(name, at, "dense", np.float32, shape) for at, (name, shape) in enumerate(names)]
        super().__init__()

    def stream_infos(self):
        return self.infos

    def next_minibatch(self, num_samples, number_of_workers=1, worker_rank=0, device=None):
        here = slice(self.at, min(self.at + num_samples, self.count))
        self.at = here.stop
        data = [X[here], Y[here]]
        return (
            {
                one: MinibatchData(Value(each), len(each), len(each), False)
                for one, each in zip(self.infos, data, strict=True)
            }
            if len(data[0])
            else {}
        )

    def get_checkpoint_state(self):
        return {"at": self.at}

    def restore_from_checkpoint(self, checkpoint):
        self.restored.append(dict(checkpoint))
        self.at = checkpoint["at"]


def test_sources_of_programs_are_restored(tmp_path) -> None:
    """When a session continues, the data of training; before every evaluation, its data."""

    def trained(samples: int, other: Numbers, frequency=None) -> tuple[Numbers, list[int], list]:
        trainer, x, y, z = parts()
        source, evaluated = Numbers(90), []
        session = TrainingSession(
            trainer,
            source,
            10,
            {x: source.streams.x, y: source.streams.y},
            samples,
            checkpoint_config=CheckpointConfig(tmp_path / "m", 20),
            cv_config=CrossValidationConfig(other, frequency, 20, lambda *found: evaluated.append(found[2])),
        )
        session.train()
        return source, evaluated, [one.value for one in z.parameters]

    other = Numbers(50)
    other.at = 10
    first, evaluated, _ = trained(30, other)
    assert (first.restored, first.at, evaluated, other.restored) == ([], 30, [40], [{"at": 10}])
    other = Numbers(50)
    second, evaluated, found = trained(70, other, 20)
    assert (second.restored, second.at, evaluated) == ([{"at": 30}], 70, [50, 50])
    assert other.restored == [{"at": 0}] * 2
    for name in ("m", "m.ckp"):
        (tmp_path / name).unlink()
    _, _, whole = trained(70, Numbers(50))
    for one, same in zip(found, whole, strict=True):
        np.testing.assert_array_equal(one, same)


class Dies(ProgressWriter):
    """Kills the process after this many minibatches."""

    def __init__(self, after):
        super().__init__(frequency=1)
        self.after = after

    def on_training(self, interval, epoch, minibatches):
        self.after -= 1
        if self.after == 0:
            import os
            import signal

            os.kill(os.getpid(), signal.SIGKILL)


def run(folder: str, after: int) -> None:
    """A session in a process of its own; writes the parameters to a file."""
    path = Path(folder)
    trainer, x, y, z = parts([Dies(after)], dropout=0.3)
    source = ctf(path)
    streams = {x: source.streams.x, y: source.streams.y}
    checkpoint = CheckpointConfig(path / "m", 100)
    TrainingSession(trainer, source, 16, streams, max_samples=600, checkpoint_config=checkpoint).train()
    np.savez(path / "end.npz", *[one.value for one in z.parameters], np.array(trainer.totals.numbers()))


def process(folder: Path, after: int) -> int:
    folder.mkdir(exist_ok=True)
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import test_session; "
        f"test_session.run({str(folder)!r}, {after})"
    )
    return subprocess.run([sys.executable, "-c", code], check=False, timeout=300).returncode


@pytest.mark.thorough
def test_a_killed_session_goes_on_bit_for_bit(tmp_path) -> None:
    assert process(tmp_path / "whole", -1) == 0
    assert process(tmp_path / "killed", 21) == -9
    assert (tmp_path / "killed" / "m.ckp").exists()
    assert not (tmp_path / "killed" / "end.npz").exists()
    assert process(tmp_path / "killed", -1) == 0
    with np.load(tmp_path / "whole" / "end.npz") as whole, np.load(tmp_path / "killed" / "end.npz") as killed:
        for name in whole:
            np.testing.assert_array_equal(whole[name], killed[name])


def test_wrong_sessions(tmp_path) -> None:
    trainer, x, y, _ = parts()
    source = ctf(tmp_path)
    streams = {x: source.streams.x, y: source.streams.y}
    with pytest.raises(ArgumentError, match="the session has no end"):
        TrainingSession(trainer, source, 16, streams)
    with pytest.raises(ArgumentError, match="no stream for the input 'y'"):
        TrainingSession(trainer, source, 16, {x: source.streams.x}, max_samples=1)
    with pytest.raises(
        ArgumentError, match=r"samples of shape \(3,\) for the input 'x' .*, whose samples have the shape \(8,\)"
    ):
        TrainingSession(trainer, source, 16, {x: source.streams.y, y: source.streams.x}, max_samples=1)
    with pytest.raises(ArgumentError, match="not a minibatch size"):
        TrainingSession(trainer, source, 0, streams, max_samples=1)
    wrong = {
        "-3 is not a frequency": {"progress_frequency": -3},
        "'a' is not a frequency": {"progress_frequency": "a"},
        r"\(5,\) is not a frequency": {"progress_frequency": (5,)},
        "max_samples is a whole number from 0 on, not '40'": {"max_samples": "40"},
        "the source of minibatches is a MinibatchSourceBase, not None": {"mb_source": None},
        "model_inputs_to_streams is a Mapping, not None": {"model_inputs_to_streams": None},
        "the stream of the input '.' is a StreamInformation, not '.'": {"model_inputs_to_streams": {x: "x", y: "y"}},
        "the trainer of a session is a Trainer, not None": {"trainer": None},
        "checkpoint_config is a CheckpointConfig, not 'm'": {"checkpoint_config": "m"},
        "cv_config is a CrossValidationConfig, not 3": {"cv_config": 3},
    }
    given = {
        "trainer": trainer,
        "mb_source": source,
        "mb_size": 16,
        "model_inputs_to_streams": streams,
        "max_samples": 1,
    }
    for message, change in wrong.items():
        with pytest.raises(ArgumentError, match=message):
            TrainingSession(**given | change)


WRONG_CONFIGS = {
    "'x' is not a frequency": lambda: CheckpointConfig("m", "x"),  # pyright: ignore[reportArgumentType]
    "a text or a path, not None": lambda: CheckpointConfig(None),  # pyright: ignore[reportArgumentType]
    "a callback is a function, not 3": lambda: CrossValidationConfig(callback=3),  # pyright: ignore
    "takes four arguments": lambda: CrossValidationConfig(callback=lambda a: True),  # pyright: ignore
    "needs data, or a callback": lambda: CrossValidationConfig(frequency=10),
    "not a minibatch size": lambda: CrossValidationConfig(minibatch_size=0),
    "a criterion is a Function, not 'e'": lambda: CrossValidationConfig(criterion="e"),  # pyright: ignore
    "the source of minibatches is a MinibatchSourceBase, not 'x'": lambda: TestConfig("x"),  # pyright: ignore
}


@pytest.mark.parametrize("message", WRONG_CONFIGS)
def test_wrong_configs(message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        WRONG_CONFIGS[message]()


def test_a_callback_may_evaluate_by_itself(tmp_path) -> None:
    trainer, x, y, _ = parts()
    source, seen = ctf(tmp_path), []
    config = CrossValidationConfig(frequency=30, callback=lambda *given: bool(seen.append(given)) or len(seen) < 2)
    TrainingSession(
        trainer, source, 10, {x: source.streams.x, y: source.streams.y}, max_samples=90, cv_config=config
    ).train()
    assert (seen, trainer.total_number_of_samples_seen) == ([(0, 0, 0, 0), (1, 0, 0, 0)], 60)


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("what", ["looked at before", "overwritten after"])
@pytest.mark.sampled
def test_data_of_a_source_that_programs_look_at_train_the_same(tmp_path, storage: str, what: str) -> None:
    def trained(look: bool) -> tuple[list[np.ndarray], list[float]]:
        set_seed(1)
        trainer, x, y, z = parts(dropout=0.2)
        path = tmp_path / "data.ctf"
        path.write_text("".join(f"|x {k % 8}:{k / 8} |y {k % 3}:1\n" for k in range(60)))
        streams = StreamDefs(
            x=StreamDef(field="x", shape=8, is_sparse=storage == "sparse"),
            y=StreamDef(field="y", shape=3, is_sparse=storage == "sparse"),
        )
        if storage == "dense":
            path.write_text(
                "".join(f"|x {' '.join([str(k / 60)] * 8)} |y {'1 0 0' if k % 3 else '0 0 1'}\n" for k in range(60))
            )
        source = MinibatchSource(CTFDeserializer(str(path), streams), max_sweeps=2, randomization_seed=5)
        losses = []
        while found := source.next_minibatch(7, {x: source.streams.x, y: source.streams.y}):
            if look and what == "looked at before":
                assert found[x].shape[0] == found[x].number_of_samples
            trainer.train_minibatch(found)
            if look and what == "overwritten after":
                data = found[x].asarray()
                (data.data if storage == "sparse" and not isinstance(data, np.ndarray) else data)[:] = np.nan
            if trainer.total_number_of_updates % 5 == 0:
                losses.append(trainer.previous_minibatch_loss_average)
        return [one.value for one in z.parameters], losses

    (ours, first), (theirs, second) = trained(False), trained(True)
    assert first == second
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)


def truncated(tmp_path: Path, **options):
    """Sequences of 7 to 13 steps in pieces of 5, and a recurrent network for them."""
    path = tmp_path / "sequences.ctf"
    lengths = [7, 13, 8, 11, 9, 12, 10, 7]
    path.write_text(
        "".join(
            f"{k} |x {(k + t) % 3 - 1} |y {t % 2} {1 - t % 2}\n"
            for k, length in enumerate(lengths)
            for t in range(length)
        )
    )
    streams = StreamDefs(x=StreamDef(field="x", shape=1), y=StreamDef(field="y", shape=2))
    source = MinibatchSource(CTFDeserializer(str(path), streams), truncation_length=5, **options)
    x, y = sequence_input(1), sequence_input(2)
    z = layers.Sequential([layers.Recurrence(layers.RNNStep(3)), layers.Dense(2)])(x)
    trainer = Trainer(z, operators.cross_entropy_with_softmax(z, y), learners.sgd(z.parameters, 0.1))
    return trainer, source, {x: source.streams.x, y: source.streams.y}, sum(lengths)


def test_progress_loses_no_truncated_sequences(tmp_path) -> None:
    trainer, source, streams, count = truncated(tmp_path, max_sweeps=2)
    TrainingSession(trainer, source, 15, streams, progress_frequency=20).train()
    assert trainer.total_number_of_samples_seen == 2 * count


def test_truncated_minibatches_of_another_size_begin_anew(tmp_path) -> None:
    trainer, source, streams, count = truncated(tmp_path, max_sweeps=2, randomize=False)
    sizes = schedules.Schedule([10, 20, 10], 1, 30)
    TrainingSession(trainer, source, sizes, streams).train()
    assert count < trainer.total_number_of_samples_seen < 2 * count, "the source drops what it has begun"
    assert np.isfinite(trainer.previous_minibatch_loss_average)


@pytest.mark.parametrize("looks", [False, True])
def test_a_loop_goes_on_with_truncated_sequences_as_a_session_does(tmp_path, looks) -> None:
    found = []
    for session in (True, False):
        set_seed(1)
        trainer, source, streams, count = truncated(tmp_path, max_sweeps=2, randomize=False)
        if session:
            TrainingSession(trainer, source, 15, streams).train()
        else:
            while data := source.next_minibatch(15, input_map=streams):
                if looks:
                    values = [one.data.as_sequences() for one in data.values()]
                    given = {key: one for key, one in data.items() if key in trainer.model.arguments}
                    shapes = [one.shape for one in evaluate(trainer.model, given, [trainer.model])]
                    assert shapes == [(len(one), 2) for one in values[0]]
                trainer.train_minibatch(data)
        assert trainer.total_number_of_samples_seen == 2 * count
        found.append([one.value for one in trainer.model.parameters])
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
