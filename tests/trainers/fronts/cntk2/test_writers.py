"""Writers beside the printer: event files of TensorBoard, the program's own."""

import io
import sys
from pathlib import Path

import numpy as np
import pytest
from event_files import events, graph, scalars
from PIL import Image

from cntkpy.cntk_config import UserError
from cntkpy.readers.errors import ArgumentError
from cntkpy.trainers.fronts.cntk2.progress import ProgressPrinter, ProgressWriter
from cntkpy.trainers.fronts.cntk2.tensorboard import TensorBoardProgressWriter
from cntkpy.trainers.log.totals import Totals
from cntkpy.training import Trainer, input_variable, layers, learners, ops


def test_values_for_tensorboard(tmp_path) -> None:
    writer = TensorBoardProgressWriter(2, tmp_path / "logs")
    for count in (1, 2):
        writer.after_update(count, lambda count=count: Totals.of_loss(3.0 * count, 1.0 * count, 10 * count, count))
    writer.after_epoch(Totals.of_loss(6.0, 2.0, 20, 2), True)
    (path,) = (tmp_path / "logs").iterdir()
    writer.write("norm", 3)
    writer.after_test(Totals.of_loss(2.0, 5.0, 10, 1))
    writer.close()
    writer.close()
    writer.write("norm", 4)
    assert scalars(path) == [
        ("minibatch/avg_loss", np.float32(0.3), 2),
        ("minibatch/avg_metric", np.float32(0.1), 2),
        ("summary/avg_loss", np.float32(0.3), 1),
        ("summary/avg_metric", np.float32(0.1), 1),
        ("norm", 3.0, 2),
        ("summary/test_avg_metric", np.float32(0.5), 1),
    ]


def test_the_package_is_missing(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(UserError, match="tensorboardX, which is not installed"):
        TensorBoardProgressWriter()


def test_only_the_first_worker_writes_events(tmp_path) -> None:
    writer = TensorBoardProgressWriter(1, tmp_path, rank=1)
    writer.after_update(1, lambda: Totals.of_loss(3.0, 1.0, 10, 1))
    writer.write("norm", 3)
    writer.flush()
    writer.close()
    assert not list(tmp_path.iterdir())


def test_the_graph_of_a_model(tmp_path) -> None:
    x = input_variable(3, name="x")
    z = layers.Dense(2, name="out")(x)
    TensorBoardProgressWriter(None, tmp_path, model=z).close()
    (path,) = tmp_path.iterdir()
    nodes = graph(path)
    assert nodes["x"] == ("InputValue", [], [3])
    assert nodes["out"][0] == "Plus" and nodes["out"][2] == [2]
    reached, waiting = set(), ["out"]
    while waiting:
        name = waiting.pop()
        reached.add(name)
        waiting += nodes[name][1]
    assert reached == set(nodes)
    with pytest.raises(ArgumentError, match="is a Function, not 3"):
        TensorBoardProgressWriter(None, tmp_path, model=3)


def test_a_folder_that_cannot_be_written(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        TensorBoardProgressWriter(None, tmp_path / "file")


class OwnNames(ProgressWriter):
    """A program's writer whose attributes have names that anybody would give them."""

    def __init__(self):
        super().__init__(1)
        self.epochs, self.tests, self.losses, self.active, self.rank, self.frequency = [], [], [], None, "r", "f"
        self.start = self.state = self.first = 0

    def on_training(self, interval, epoch, minibatches):
        self.losses.append(interval.loss)

    def on_epoch(self, totals, seconds, with_metric):
        self.epochs.append(totals.samples)

    def on_test_end(self, totals):
        self.tests.append(totals.samples)


def test_a_writer_may_have_attributes_of_its_own() -> None:
    x, y = input_variable(2), input_variable(1)
    z = layers.Dense(1)(x)
    own = OwnNames()
    trainer = Trainer(z, ops.squared_error(z, y), learners.sgd(z.parameters, 0.1), own)
    data = {x: np.ones((4, 2), np.float32), y: np.ones((4, 1), np.float32)}
    trainer.train_minibatch(data)
    trainer.summarize_training_progress()
    trainer.test_minibatch(data)
    trainer.summarize_test_progress()
    assert (len(own.losses), own.epochs, own.tests) == (1, [4], [4])


def test_a_printer_into_a_file(tmp_path) -> None:
    printer = ProgressPrinter(log_to_file=tmp_path / "log", metric_is_pct=False, test_freq=1)
    printer.after_epoch(Totals.of_loss(5.0, 2.0, 10, 1), False)
    printer.after_test_minibatch(Totals.of_loss(5.0, 2.0, 10, 1))
    printer.after_test(Totals.of_loss(5.0, 2.0, 10, 1))
    lines = (tmp_path / "log").read_text().splitlines()
    assert lines[0].startswith("Finished Epoch[1]: loss = 0.500000 * 10 ")
    assert lines[1:] == [
        " Minibatch[   1-   1]: metric = 0.200000 * 10;",
        "Finished Evaluation [1]: Minibatch[1-1]: metric = 0.200000 * 10;",
    ]


def test_other_workers_are_silent(capsys) -> None:
    ProgressPrinter(rank=1).after_epoch(Totals.of_loss(5.0, 2.0, 10, 1), False)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("value", [3, 2.5, np.float32(2), np.array(1.5), np.array([[1.5]]), np.ones((1, 1, 1))])
def test_a_value_of_a_curve_is_a_number_or_an_array_of_one(value: object, tmp_path: Path) -> None:
    """W5: `C.reduce_mean(p).eval()` is an array of one element, which NumPy 2 makes no number of."""
    TensorBoardProgressWriter(log_dir=tmp_path).write_value("curve", value, np.array([1]))


def test_other_values_of_a_curve_are_refused(tmp_path: Path) -> None:
    writer = TensorBoardProgressWriter(log_dir=tmp_path)
    with pytest.raises(ArgumentError, match=r"curve: array.* is not one number"):
        writer.write_value("curve", np.ones(2), 1)


def test_pictures(tmp_path) -> None:
    """Grey and coloured pictures, the value of an input, are in the file as PNG."""
    writer = TensorBoardProgressWriter(None, tmp_path)
    grey, coloured = input_variable((4, 5)), input_variable((3, 2, 2))
    shades = np.arange(20, dtype=np.float32).reshape(4, 5) * 13.0
    writer.write_image("grey", {grey: [shades]}, 7)
    writer.write_image("pair", {coloured: np.full((2, 3, 2, 2), 300.0)}, 8)
    with pytest.raises(ArgumentError, match=r"grey: an array \(3, 5\) of float64 is no pictures of the shape \(4, 5\)"):
        writer.write_image("grey", {grey: np.ones((3, 5))}, 9)
    with pytest.raises(ArgumentError, match="not a dict of one function"):
        writer.write_image("grey", shades, 9)
    writer.close()
    (path,) = tmp_path.iterdir()
    written = [(value.tag, value.image, event.step) for event in events(path) for value in event.summary.value]
    assert [(tag, step) for tag, _, step in written] == [("grey", 7), ("pair/0", 8), ("pair/1", 8)]
    pixels = np.asarray(Image.open(io.BytesIO(written[0][1].encoded_image_string)).convert("L"))
    assert np.array_equal(pixels, shades.astype(np.uint8))
    pixels = np.asarray(Image.open(io.BytesIO(written[2][1].encoded_image_string)))
    assert pixels.shape == (2, 2, 3) and (pixels == 255).all()
