"""Each row of the table of rules of docs/rules-of-functions.md has the value that it says."""

import ast
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntkpy.compat.cntk as C
from cntkpy.cntk_config.base.diagnostics import UserError

PAGE = Path(__file__).parents[2] / "docs" / "rules-of-functions.md"
HEADER = "| program | rule of CNTK 2.7 | value |"


def rows() -> list[tuple[str, str]]:
    """Programs and values of the table."""
    lines = PAGE.read_text("utf-8").split(HEADER)[1].splitlines()[2:]
    table = [line for line in lines if line.startswith("|")]
    cells = [re.fullmatch(r"\| `(.*?)` \| .* \| `(.*?)` \|", line) for line in table]
    assert all(cells), [line for line, cell in zip(table, cells, strict=True) if not cell]
    return [(cell[1], cell[2]) for cell in cells if cell]


def plain(value: Any) -> Any:
    """Arrays as lists."""
    if isinstance(value, list | tuple):
        return type(value)(map(plain, value))
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def close(found: Any, expected: Any) -> None:
    """Values are equal, numbers to four digits."""
    if isinstance(expected, list | tuple):
        assert isinstance(found, type(expected)) and len(found) == len(expected), (found, expected)
        for one, other in zip(found, expected, strict=True):
            close(one, other)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-4, abs=1e-7)
    else:
        assert found == expected


@pytest.mark.parametrize(("program", "value"), rows())
@pytest.mark.sampled
def test_a_rule_of_the_table_holds(program: str, value: str) -> None:
    x, y = (C.input_variable(2, needs_gradient=True, name=name) for name in "xy")
    names = {"C": C, "np": np, "x": x, "y": y, "picture": C.input_variable((1, 4, 4), name="picture")}
    names["words"] = C.sequence.input_variable(2)
    close(plain(eval(program, names)), ast.literal_eval(value))


@pytest.mark.parametrize("weights", [[1, -1.0], [0.0, 0.0], [1.0, float("nan")]])
def test_classes_are_drawn_by_weights_from_0_on(weights: list[float]) -> None:
    for draw in (C.random_sample, C.random_sample_inclusion_frequency):
        with pytest.raises(UserError, match="weights of classes are numbers from 0 on"):
            draw(weights, 1, True)


def test_unpooling_refuses_what_is_no_pooling_of_its_picture() -> None:
    small, picture = C.input_variable((1, 3, 3)), C.input_variable((1, 4, 4))
    with pytest.raises(UserError, match="unpooling has the windows"):
        C.unpooling(small, picture, C.MAX_UNPOOLING, (2, 2), (2, 2), [True])


def test_a_dropout_rate_is_changed_after_the_first_computation() -> None:
    x = C.input_variable((100, 100))
    d, data = C.dropout(x, 0.1), np.ones((1, 100, 100), np.float32)

    def kept(rate: float) -> float:
        d.set_attribute("dropoutRate", rate)
        return np.count_nonzero(d.forward({x: data}, d.outputs, d.outputs)[1][d.output]) / 1e4

    assert [round(kept(rate), 1) for rate in (0.5, 0.0, 0.2)] == [0.5, 1.0, 0.8]
    d.set_attribute("rngSeed", 2**40 + 5)
    assert d.attributes["rngSeed"] == 2**40 + 5
    with pytest.raises(UserError, match="a dropout rate lies from 0 to 1"):
        d.set_attribute("dropoutRate", 1.5)


def test_a_trainer_takes_a_changed_dropout_rate() -> None:
    x, w = C.input_variable(1000), C.parameter(1000, init=0.0)
    d = C.dropout(x, 0.5)
    loss = C.reduce_sum(d * w)
    trainer, data = C.Trainer(loss, (loss, None), [C.sgd([w], 1.0)]), {x: np.ones((1, 1000), np.float32)}
    trainer.train_minibatch(data)
    assert 400 < np.count_nonzero(w.value) < 600
    before = w.value
    d.set_attribute("dropoutRate", 0.0)
    trainer.train_minibatch(data)
    assert (w.value == before - 1).all()


def test_a_filter_without_a_count_is_the_same_applied_to_a_placeholder() -> None:
    picture, kernel = C.input_variable((1, 12, 4, 4)), C.constant(1.0, (1, 5, 1, 1))
    data = np.random.default_rng(1).normal(size=(2, 1, 12, 4, 4)).astype(np.float32)
    now, later = C.convolution(kernel, picture), C.convolution(kernel, C.placeholder())(picture)
    assert now.shape == later.shape == (1, 12, 4, 4)
    np.testing.assert_allclose(later.eval({picture: data}), now.eval({picture: data}))
    wide = C.input_variable((64, 2, 2))
    normal = C.local_response_normalization(C.placeholder(), 3, 1.0, 1.0, 0.5)(wide)
    assert normal.shape == (64, 2, 2)


def test_a_default_for_no_layer() -> None:
    """P32: libraries ask for defaults without a layer."""
    from cntkpy.compat.cntk.default_options import default_options, default_override_or, get_default_override

    assert get_default_override(None, init=default_override_or(3)) == 3
    with default_options(init=4):
        assert get_default_override(None, init=default_override_or(3)) == 4
    assert get_default_override(None, init=5) == 5


def test_one_sample_for_each_sequence_meets_all_its_steps() -> None:
    """P20: `sequence * sample` broadcasts by itself, in values, gradients, recurrences and models."""
    s, n = C.sequence.input_variable(3), C.input_variable(3)
    steps, single = [np.ones((2, 3), np.float32), 2 * np.ones((3, 3), np.float32)], np.float32([[1, 2, 3], [4, 5, 6]])
    data = {s: steps, n: single}
    expected = [one * row for one, row in zip(steps, single, strict=True)]
    for f in (s * n, n * s):
        assert [axis.name for axis in f.dynamic_axes] == ["defaultBatchAxis", "defaultDynamicAxis"]
        for found, wanted in zip(f.eval(data), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(C.reduce_sum(s * n).grad(data, [n]), [[2, 2, 2], [6, 6, 6]])
    assert [one.shape for one in C.splice(s, n).eval(data)] == [(2, 6), (3, 6)]
    summed = C.layers.Recurrence(lambda h, x: h + x * n)(s).eval(data)
    np.testing.assert_array_equal(summed[0], np.cumsum(expected[0], axis=0))
    static = C.input_variable(3, dynamic_axes=[])
    np.testing.assert_array_equal((s + static).eval({s: steps, static: single[0]})[1], steps[1] + single[0])


def test_sequences_on_different_axes_say_what_to_write_in_python() -> None:
    """W10: no words of configurations."""
    a = C.sequence.input_variable(3, name="a")
    b = C.sequence.input_variable(3, sequence_axis=C.Axis("other"), name="b")
    with pytest.raises(UserError, match="mixes two time axes") as error:
        _ = a + b
    assert "reconcile_dynamic_axes(b, a)" in str(error.value.hint) and "BS." not in str(error.value.hint)
    c = C.sequence.input_variable(3, name="c")
    with pytest.raises(UserError, match="different lengths") as error:
        (a + c).eval({a: [np.ones((2, 3))], c: [np.ones((3, 3))]})
    text = f"{error.value} {error.value.hint}"
    assert "sequence.input_variable(shape, sequence_axis=Axis('" in text and "dynamicAxis" not in text
