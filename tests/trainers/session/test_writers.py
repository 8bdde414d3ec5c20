"""Writers beside the printer: event files of TensorBoard, the program's own."""

import sys
import types

import pytest

from cntk_config import UserError
from trainers.log.totals import Totals
from trainers.session.progress import ProgressPrinter
from trainers.session.tensorboard import TensorBoardProgressWriter


class Recorder:
    """Stands for tensorboardX."""

    def __init__(self, folder):
        self.folder, self.values = folder, []

    def add_scalar(self, name, value, step):
        self.values.append((name, value, step))

    def flush(self):
        self.values.append("flush")

    def close(self):
        self.values.append("close")


def test_values_for_tensorboard(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", types.SimpleNamespace(SummaryWriter=Recorder))
    writer = TensorBoardProgressWriter(2, "logs")
    for count in (1, 2):
        writer.after_update(count, lambda count=count: Totals.of_loss(3.0 * count, 1.0 * count, 10 * count, count))
    writer.after_epoch(Totals.of_loss(6.0, 2.0, 20, 2), True)
    writer.write("norm", 3)
    writer.close()
    assert writer._writer.values == [
        ("minibatch/avg_loss", 0.3, 2),
        ("minibatch/avg_metric", 0.1, 2),
        ("summary/avg_loss", 0.3, 1),
        ("summary/avg_metric", 0.1, 1),
        "flush",
        ("norm", 3.0, 2),
        "close",
    ]


def test_event_files(tmp_path) -> None:
    pytest.importorskip("tensorboardX")
    writer = TensorBoardProgressWriter(None, str(tmp_path))
    writer.after_epoch(Totals.of_loss(6.0, 2.0, 20, 2), True)
    writer.close()
    assert list(tmp_path.glob("events.out.tfevents*"))


def test_the_package_is_missing(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(UserError, match="tensorboardX, which is not installed"):
        TensorBoardProgressWriter()


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
