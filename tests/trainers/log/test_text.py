"""Numbers and lines of the log, against lines of CNTK."""

import pytest

from cntkpy.trainers.log import text
from cntkpy.trainers.log.text import Total


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("ce", 0.7123, "0.71230000"),
        ("ce", 1.234e-05, "1.23400000e-05"),
        ("ce", 0.0, "0.00000000"),
        ("ce", 1e8, "1.00000000e+08"),
        ("ce", 99999999.0, "99999999.00000000"),
        ("ce", 0.0001, "0.00010000"),
        ("errs", 0.032, "3.200%"),
        ("errs", 1e-7, "1.000e-05%"),
        ("loss", 12.0, "1.200e+03%"),
        ("Errs", 0.165, "16.500%"),
        ("errS", 0.165, "0.16500000"),
    ],
)
def test_criterion_values(name: str, value: float, expected: str) -> None:
    assert text.criterion_value(name, value) == expected


def test_totals() -> None:
    totals = [Total("ce", 178.075, 250), Total("errs", 16.0, 500)]
    assert text.totals_line(totals) == "ce = 0.71230000 * 250; errs = 3.200% * 500"
    assert str(Total("ce", 5.0, 0)) == "ce = 0.00000000 * 0"


def test_starting_epoch() -> None:
    mu = 0.9 ** (1 / 20)
    assert text.starting_epoch(1, 0.02, mu**20, 189.824) == (
        "Starting Epoch 1: learning rate per sample = 0.020000  effective momentum = 0.900000  "
        "momentum as time constant = 189.8 samples"
    )


def test_progress_lines() -> None:
    line = text.progress((2, 10), (11, 20), (40.0, 2), [Total("ce", 431.00255, 1000)], 0.08)
    assert line == (
        " Epoch[ 2 of 10]-Minibatch[  11-  20, 40.00%]: ce = 0.43100255 * 1000; "
        "time = 0.0800s; samplesPerSecond = 12500.0"
    )
    assert "Minibatch[   1-   5]: " in text.progress((1, 3), (1, 5), None, [Total("ce", 1.0, 1)], 1.0)


def test_percentages_have_enough_digits() -> None:
    assert text.percent_digits(10, 5) == 2
    assert text.percent_digits(1e6, 10) == 3
    per_epoch = (2**62 - 1) / 20
    digits = text.percent_digits(per_epoch, 5)
    line = text.progress((2, 4), (1, 5), (100 * 5 / per_epoch, digits), [Total("ce", 1.0, 1)], 1.0)
    assert "Minibatch[   1-   5, 0.000000000000002%]" in line


def test_duration() -> None:
    said = {0.2: "0 s", 99: "99 s", 100: "2 min", 5900: "98 min", 12000: "3 h 20 min"}
    assert {seconds: text.duration(seconds) for seconds in said} == said


def test_finished_epoch() -> None:
    totals = [Total("ce", 0.40118763 * 5000, 5000), Total("err", 599.0, 5000)]
    assert text.finished_epoch(2, 10, totals, 10000, 0.005, 0.481223) == (
        "Finished Epoch[ 2 of 10]: [Training] ce = 0.40118763 * 5000; err = 0.11980000 * 5000; "
        "totalSamplesSeen = 10000; learningRatePerSample = 0.005; epochTime=0.481223s"
    )
    assert text.validated_epoch(2, 10, totals) == (
        "Finished Epoch[ 2 of 10]: [Validate] ce = 0.40118763 * 5000; err = 0.11980000 * 5000"
    )


def test_pieces() -> None:
    assert text.pieces(1, 2**64 - 1) == ""
    assert text.pieces(4, 2**64 - 1) == text.pieces(4, 512) == ", with 4 subminibatch"
    assert text.pieces(1, 512) == ", with maximum 512 samples in RAM"
