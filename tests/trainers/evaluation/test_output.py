"""The text of `write`: the worked example of the specification, byte for byte, and every option."""

from pathlib import Path

import numpy as np
import pytest

from cntkpy.trainers.evaluation.output import Format, NodeWriter

STEPS = np.array([[0.25, 0.75], [1.0, 0.0]])


def written(values: np.ndarray, shape: tuple[int, ...] = (2,), name: str = "post", **options: object) -> str:
    return NodeWriter(name, shape, Format(**options)).minibatch([values])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "0.250000 0.750000\n1.000000 0.000000\n"),
        ({"transpose": False}, "0.250000 1.000000\n0.750000 0.000000\n"),
        ({"kind": "category"}, "1\n0\n"),
        ({"kind": "category", "labels": ("no", "yes")}, "yes\nno\n"),
        (
            {
                "sequence_prologue": "%d/%s <",
                "sequence_epilogue": ">\\n",
                "element_separator": ",",
                "sample_separator": ";",
                "precision": ".2",
            },
            "0/post <0.25,0.75;1.00,0.00>\n",
        ),
        ({"kind": "sparse", "sample_separator": "\\s"}, "0.250000[0;0] [0;1] 0.750000[1;0]\n"),
        ({"kind": "sparse", "transpose": False}, "0.250000[0;0] 0.750000[1;0] [0;1]\n"),
        (
            {"kind": "sparse", "labels": ("no", "yes"), "sample_separator": "\\s"},
            "0.250000[0=no;0] [0=no;1] 0.750000[1=yes;0]\n",
        ),
        ({"precision": "8.3"}, "   0.250    0.750\n   1.000    0.000\n"),
        ({"precision": "-6.1"}, "0.2    0.8   \n1.0    0.0   \n"),
        ({"kind": "category", "labels": ("no", "yes"), "precision": "5.2"}, "   ye\n   no\n"),
    ],
)
def test_one_sequence_of_two_steps(options: dict[str, object], expected: str) -> None:
    assert written(STEPS, **options) == expected


def test_two_frames_are_two_sequences() -> None:
    writer = NodeWriter("post", (2,), Format())
    assert writer.minibatch([STEPS[:1], STEPS[1:]]) == "0.250000 0.750000\n1.000000 0.000000\n"


def test_placeholders_count_minibatches_and_sequences() -> None:
    layout = Format(sequence_prologue="%s %d of %n [%x] ", sequence_separator="--\\n", sample_separator="\\t")
    writer = NodeWriter("z", (2, 1), layout)
    assert writer.minibatch([STEPS, STEPS[:1]]) == (
        "z 0 of 0 [2 1 2] 0.250000 0.750000\t1.000000 0.000000\n--\nz 1 of 0 [2 1 1] 0.250000 0.750000\n"
    )
    assert writer.minibatch([STEPS[1:]]).startswith("z 0 of 1 ")


def test_tensor_subscripts_without_transpose() -> None:
    values = np.array([[1.0, 2.0, 3.0, 4.0]])
    assert written(values, (2, 2), transpose=False) == (
        "[0,0]\t1.000000\n[1,0]\t2.000000\n[0,1]\t3.000000\n[1,1]\t4.000000\n"
    )


def test_negative_zero_and_ties() -> None:
    assert written(np.array([[-0.0, 0.0]])) == "0.000000 0.000000\n"
    assert written(np.array([[0.5, 0.5]]), kind="category") == "1\n"


def test_label_file_of_another_size_gives_indices(caplog: pytest.LogCaptureFixture) -> None:
    writer = NodeWriter("z", (2,), Format(kind="category", labels=("a", "b", "c")))
    assert [writer.minibatch([STEPS]) for _ in range(4)] == ["1\n0\n"] * 4
    assert len(caplog.records) == 5
    assert "3 labels" in caplog.text


def test_percent_signs_are_data() -> None:
    assert written(STEPS[:1], element_separator=" % ") == "0.250000 % 0.750000\n"
    assert written(STEPS[:1], element_separator="%%") == "0.250000%%0.750000\n"


@pytest.mark.parametrize("text", ["", ".4", "12.6", "-10.2", "+08", " .3", "#.0", "6.", ".4l"])
def test_widths_and_precisions_of_printf(text: str) -> None:
    from cntkpy.cntk_config import parse

    layout = Format.read(parse(f'format=[precisionFormat="{text}"]').section("format"))
    expected = f"%{layout.precision}f" % 0.25
    assert written(STEPS[:1], precision=layout.precision).startswith(expected)


@pytest.mark.parametrize("text", ["q", "*", "%", "4f", ".4g", "1.2.3", "100000", ".99999"])
def test_what_printf_does_not_know_is_refused(text: str) -> None:
    from cntkpy.cntk_config import ConfigError, parse

    with pytest.raises(ConfigError, match="no width and precision of printf"):
        Format.read(parse(f'format=[precisionFormat="{text}"]').section("format"))


def test_format_section(tmp_path: Path) -> None:
    from cntkpy.cntk_config import ConfigError, parse

    labels = tmp_path / "labels.txt"
    labels.write_text(" no \nyes\n")
    section = parse(f'elementSeparator="," ; format=[type=category;labelMappingFile="{labels}"]').section("format")
    layout = Format.read(section)
    assert layout.kind == "category" and layout.labels == ("no", "yes") and layout.element_separator == ","
    with pytest.raises(ConfigError, match="category"):
        Format.read(parse("format=[type=Category]").section("format"))
    labels.write_text("no\n\nyes\n")
    with pytest.raises(ConfigError, match=r"labels.txt:2"):
        Format.read(section)
    labels.write_bytes(b"\xef\xbb\xbfa\xc2\x85b\r\n \xe2\x80\xa8 \n\xe9t\xe9\n")  # U+0085, U+2028, Latin-1
    assert Format.read(section).labels == ("a\x85b", "\u2028", "\udce9t\udce9")
    assert Format.read(None) == Format()
