"""Data become batches and sequences by CNTK's rule, and every entry point has the same rule (C1, C5)."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import cntkpy.compat.cntk as C
from cntkpy.cntk_config import UserError
from cntkpy.networks.builders.python import layers
from cntkpy.networks.builders.python.functions.function import Function
from cntkpy.networks.builders.python.functions.variables import input_variable, parameter, sequence_input
from cntkpy.networks.builders.python.operations import operators, reductions
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
from cntkpy.readers.data_api.batches import InputAxes, batch_of, check_sample
from cntkpy.readers.data_api.value import axes_of
from cntkpy.readers.errors import ArgumentError
from cntkpy.trainers.fronts.cntk2 import functions, learners, values
from cntkpy.trainers.fronts.cntk2.session import Feed, TrainingSession
from cntkpy.trainers.fronts.cntk2.tester import Tester
from cntkpy.trainers.fronts.cntk2.trainer import Trainer

assert values
assert functions

F = np.float32
NOTHING, BATCH, SEQUENCE = 0, 1, 2
"""The dynamic axes of an input."""


def numbers(*shape: int) -> np.ndarray:
    return np.arange(1, 1 + int(np.prod(shape)), dtype=F).reshape(shape)


def matrix(*shape: int) -> Any:
    return scipy.sparse.csr_matrix(numbers(*shape))


CASES: dict[str, tuple[tuple[int, ...], int, Any, list[int] | str]] = {
    # sequence inputs
    "one sequence": ((2,), SEQUENCE, numbers(3, 2), [3]),
    "one sequence of one step": ((2,), SEQUENCE, numbers(1, 2), [1]),
    "one step": ((2,), SEQUENCE, numbers(2), [1]),
    "sequences of equal length": ((2,), SEQUENCE, numbers(4, 3, 2), [3] * 4),
    "sequences of one step": ((2,), SEQUENCE, numbers(4, 1, 2), [1] * 4),
    "as many steps as elements": ((2,), SEQUENCE, numbers(2, 2), [2]),
    "a list of sequences": ((2,), SEQUENCE, [numbers(3, 2), numbers(1, 2)], [3, 1]),
    "a list of equal sequences": ((2,), SEQUENCE, [numbers(3, 2), numbers(3, 2)], [3, 3]),
    "a list of one sequence": ((2,), SEQUENCE, [numbers(3, 2)], [3]),
    "a list of steps": ((2,), SEQUENCE, [numbers(2), numbers(2), numbers(2)], [1] * 3),
    "a list of steps and sequences": ((2,), SEQUENCE, [numbers(2), numbers(3, 2)], [1, 3]),
    "nested lists": ((2,), SEQUENCE, [[[1, 2], [3, 4], [5, 6]], [[7, 8]]], [3, 1]),
    "nested lists of steps": ((2,), SEQUENCE, [[1, 2], [3, 4]], [1, 1]),
    "a list of lists of arrays": ((2,), SEQUENCE, [[numbers(2), numbers(2)], [numbers(2)]], [2, 1]),
    "whole numbers": ((2,), SEQUENCE, np.array([[1, 2], [3, 4]]), [2]),
    "double precision": ((2,), SEQUENCE, np.array([[1.0, 2.0], [3.0, 4.0]]), [2]),
    "a sequence of images": ((2, 3), SEQUENCE, numbers(4, 2, 3), [4]),
    "sequences of images": ((2, 3), SEQUENCE, numbers(5, 4, 2, 3), [4] * 5),
    "a list of images": ((2, 3), SEQUENCE, [numbers(2, 3)] * 2, [1, 1]),
    "a matrix of rows": ((2,), SEQUENCE, matrix(3, 2), [3]),
    "a list of matrices": ((2,), SEQUENCE, [matrix(3, 2), matrix(1, 2)], [3, 1]),
    "classes": ((2,), SEQUENCE, Value.one_hot([[0, 1, 1], [0]], 2), [3, 1]),
    "classes without sequences": ((2,), SEQUENCE, Value.one_hot([0, 1, 1], 2), [3]),
    "a value of an array": ((2,), SEQUENCE, Value(numbers(3, 2)), [3]),
    "a value of more axes": ((2,), SEQUENCE, Value(numbers(4, 3, 2)), [3] * 4),
    "a value of a list": ((2,), SEQUENCE, Value([numbers(3, 2), numbers(1, 2)]), [3, 1]),
    "a value of equal sequences": ((2,), SEQUENCE, Value([numbers(3, 2), numbers(3, 2)]), [3, 3]),
    "numbers in sequence": ((), SEQUENCE, numbers(4), [4]),
    "a number": ((), SEQUENCE, 3.0, [1]),
    "sequences of numbers": ((), SEQUENCE, numbers(4, 3), [3] * 4),
    "a list of numbers": ((), SEQUENCE, [1.0, 2.0], [1, 1]),
    "lists of numbers": ((), SEQUENCE, [[1.0, 2.0], [3.0]], [2, 1]),
    "a column of numbers": ((), SEQUENCE, numbers(4, 1), [1] * 4),
    "a column": ((1,), SEQUENCE, numbers(4, 1), [4]),
    "a column without its axis": ((1,), SEQUENCE, numbers(4), r"data of shape (4,) .* shape (1,)"),
    "columns": ((1,), SEQUENCE, numbers(4, 3, 1), [3] * 4),
    "columns without their axis": ((1,), SEQUENCE, numbers(4, 3), r"data of shape (4, 3) .* shape (1,)"),
    "a list of columns without their axis": ((1,), SEQUENCE, [numbers(4), numbers(2)], [4, 2]),
    "other elements in sequence": ((2,), SEQUENCE, numbers(2, 3), r"data of shape (2, 3) .* shape (2,)"),
    "three axes": ((2,), SEQUENCE, numbers(5, 4, 3, 2), r"data of shape (5, 4, 3, 2), with 3 axes .* shape (2,)"),
    "three axes of a list": ((2,), SEQUENCE, [numbers(4, 3, 2)], r"items of shape (4, 3, 2) .* shape (2,)"),
    "fewer axes": ((2, 3), SEQUENCE, numbers(3), r"data of shape (3,) .* shape (2, 3)"),
    "flat images": ((2, 3), SEQUENCE, numbers(4, 6), r"data of shape (4, 6) .* shape (2, 3)"),
    "a matrix of other rows": ((2,), SEQUENCE, matrix(2, 3), r"matrix of shape (2, 3) .* shape (2,)"),
    "other items": ((2,), SEQUENCE, [numbers(2, 2), numbers(3)], r"item of shape (3,) .* shape (2,)"),
    "mixed items": ((2,), SEQUENCE, [numbers(2, 2), matrix(2, 2)], r"dense and sparse items"),
    "a text": ((2,), SEQUENCE, "text", r"is not data for the input"),
    "an array of objects": ((2,), SEQUENCE, np.array([numbers(2), None], object), r"an array of object is not data"),
    # inputs without a sequence axis
    "samples": ((2,), BATCH, numbers(3, 2), [1] * 3),
    "one sample": ((2,), BATCH, numbers(2), [1]),
    "samples as steps": ((2,), BATCH, numbers(3, 1, 2), [1] * 3),
    "a list of samples": ((2,), BATCH, [numbers(2)] * 3, [1] * 3),
    "a list of samples as steps": ((2,), BATCH, [numbers(1, 2)] * 3, [1] * 3),
    "a nested list of samples": ((2,), BATCH, [[1, 2], [3, 4]], [1, 1]),
    "one image": ((2, 3), BATCH, numbers(2, 3), [1]),
    "images": ((2, 3), BATCH, numbers(4, 2, 3), [1] * 4),
    "rows": ((2,), BATCH, matrix(3, 2), [1] * 3),
    "a list of rows": ((2,), BATCH, [matrix(1, 2)] * 3, [1] * 3),
    "classes of samples": ((2,), BATCH, Value.one_hot([0, 1, 1], 2), [1] * 3),
    "classes of steps": ((2,), BATCH, Value.one_hot([[0], [1]], 2), [1] * 2),
    "classes of one sequence": ((2,), BATCH, Value.one_hot([[0, 1, 1]], 2), [1] * 3),
    "a value of samples": ((2,), BATCH, Value(numbers(3, 2)), [1] * 3),
    "a value of a list of samples": ((2,), BATCH, Value([numbers(2), numbers(2)]), [1] * 2),
    "numbers": ((), BATCH, numbers(4), [1] * 4),
    "one number": ((), BATCH, 3.0, [1]),
    "a list of single numbers": ((), BATCH, [1, 2, 3], [1] * 3),
    "numbers as steps": ((), BATCH, numbers(4, 1), [1] * 4),
    "columns of samples": ((1,), BATCH, numbers(4, 1), [1] * 4),
    "samples without their axis": ((1,), BATCH, numbers(4), r"data of shape (4,) .* shape (1,)"),
    "steps of samples": ((2,), BATCH, numbers(3, 4, 2), r"shape (3, 4, 2), sequences of 4 steps, .* shape (2,)"),
    "a list of sequences of samples": ((2,), BATCH, [numbers(3, 2), numbers(1, 2)], r"of 3 steps.* shape (2,)"),
    "rows of sequences": ((2,), BATCH, [matrix(3, 2)], r"of 3 steps.* shape (2,)"),
    "classes in sequence": ((2,), BATCH, Value.one_hot([[0, 1], [1, 1]], 2), r"of 2 steps.* shape (2,)"),
    "other elements": ((2,), BATCH, numbers(3), r"data of shape (3,) .* shape (2,)"),
    "axes in another order": ((2, 3), BATCH, numbers(4, 3, 2), r"data of shape (4, 3, 2) .* shape (2, 3)"),
    "flat samples": ((2, 3), BATCH, numbers(4, 6), r"data of shape (4, 6) .* shape (2, 3)"),
    # inputs without dynamic axes
    "the value": ((2,), NOTHING, numbers(2), [1]),
    "the value as a list": ((2,), NOTHING, [1, 2], [1]),
    "a number alone": ((), NOTHING, 2.0, [1]),
    "values": ((2,), NOTHING, numbers(3, 2), r"data of shape (3, 2) .* shape (2,)"),
}


def made(shape: tuple[int, ...], dynamic: int) -> Function:
    if dynamic == SEQUENCE:
        return sequence_input(shape, name="x")
    return input_variable(shape, name="x", dynamic_axes=[] if dynamic == NOTHING else None)


class Found(Exception):
    """Ends an entry point once its minibatch is there."""


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The lengths of the sequences of each minibatch that is made."""
    from cntkpy.trainers.fronts.cntk2 import data

    found: list[list[int]] = []
    make = data.Arguments.minibatch

    def minibatch(self: data.Arguments, given: Any, **how: Any) -> Any:
        result = make(self, given, **how)
        found.append(result.layouts[next(one.node.name for one in self.inputs)].sequences[:, 3].tolist())
        raise Found

    monkeypatch.setattr(data.Arguments, "minibatch", minibatch)
    return found


def a_loss(x: Function) -> Function:
    w = parameter(x.shape, init=1.0)
    return reductions.reduce_sum(operators.element_times(w, x))


def a_trainer(x: Function) -> Trainer:
    loss = a_loss(x)
    return Trainer(loss, loss, learners.sgd(loss.parameters, 0.1))


class Source(UserMinibatchSource):
    """Gives the same data once."""

    def __init__(self, x: Function, data: Any) -> None:
        kind = "sparse" if is_sparse(data) else "dense"
        self.x = StreamInformation("x", 0, kind, F, x.shape)
        self.data: Any = data
        super().__init__()

    def stream_infos(self) -> list[StreamInformation]:
        return [self.x]

    def next_minibatch(
        self, num_samples: int, number_of_workers: int = 1, worker_rank: int = 0, device: Any = None
    ) -> dict[StreamInformation, MinibatchData]:
        return {self.x: MinibatchData(self.data, 1, 1, True)}


def is_sparse(data: Any) -> bool:
    one = data[0] if isinstance(data, list) else data
    return one.is_sparse if isinstance(one, Value) else scipy.sparse.issparse(one)


def by_feed(x: Function, data: Any) -> None:
    source = Source(x, data)
    Feed(a_trainer(x), source, {x: source.x}).next(100)


ENTRIES: dict[str, Callable[[Function, Any], Any]] = {
    "eval": lambda x, data: (x * 2.0).eval({x: data}),
    "eval without a name": lambda x, data: (x * 2.0).eval(data),
    "eval by name": lambda x, data: (x * 2.0).eval({"x": data}),
    "call": lambda x, data: (x * 2.0)(data) if not isinstance(data, float) else (x * 2.0).eval(data),
    "forward": lambda x, data: (x * 2.0).forward({x: data}),
    "grad": lambda x, data: a_loss(x).grad({x: data}, wrt=[x]),
    "train_minibatch": lambda x, data: a_trainer(x).train_minibatch({x: data}),
    "train_minibatch of one input": lambda x, data: a_trainer(x).train_minibatch(data),
    "test_minibatch": lambda x, data: a_trainer(x).test_minibatch({x: data}),
    "Evaluator": lambda x, data: Tester(a_loss(x)).test_minibatch({x: data}),
}
"""Whatever takes data."""


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.sampled
def test_every_entry_has_the_rule(entry: str, seen: list[list[int]]) -> None:
    for name, (shape, dynamic, data, expected) in CASES.items():
        check(f"{entry}, {name}", lambda x, data=data: ENTRIES[entry](x, data), made(shape, dynamic), expected, seen)


def test_a_source_of_minibatches_has_the_rule(seen: list[list[int]]) -> None:
    for name, (shape, dynamic, data, expected) in CASES.items():
        if isinstance(data, float | str) or name in ("an array of objects", "mixed items") or ragged(data):
            continue  # no Value is made of it
        check(name, lambda x, data=data: by_feed(x, data), made(shape, dynamic), expected, seen)


def ragged(data: Any) -> bool:
    """Whether it is a list of steps and sequences, or of numbers: a `Value` is made of sequences."""
    if not isinstance(data, list) or is_sparse(data):
        return False
    ranks = {np.ndim(one) if not isinstance(one, list) else len(np.shape(one)) for one in data}
    return 0 in ranks or len({np.shape(one)[1:] for one in data}) > 1


def check(what: str, act: Callable[[Function], Any], x: Function, expected: list[int] | str, seen: list[Any]) -> None:
    seen.clear()
    if isinstance(expected, list):
        with pytest.raises(Found):
            act(x)
        assert seen == [expected], what
    else:
        pattern = re.sub(r"([()])", r"\\\1", expected)
        with pytest.raises(ValueError, match=pattern):
            act(x)


@pytest.mark.parametrize("make", [Value.create, C.asvalue], ids=["Value.create", "asvalue"])
@pytest.mark.sampled
def test_values_are_made_by_the_rule(make: Callable[..., Value]) -> None:
    for name, (shape, dynamic, data, expected) in CASES.items():
        x = made(shape, dynamic)
        if isinstance(expected, str):
            with pytest.raises(ValueError, match=re.sub(r"([()])", r"\\\1", expected)):
                make(x, data)
            continue
        value = make(x, data)
        found = [1] * len(value) if dynamic != SEQUENCE else [one.shape[0] for one in value.as_sequences()]
        assert (found if dynamic else [1]) == expected, name
        if dynamic == SEQUENCE:
            assert value.mask.sum(axis=1).tolist() == [one + 1 for one in expected], name
        for a, b in zip(flat((x * 2.0).eval({x: value})), flat((x * 2.0).eval({x: data})), strict=True):
            np.testing.assert_array_equal(a, b)


def flat(found: Any) -> list[np.ndarray]:
    return found if isinstance(found, list) else [found]


# ------------------------------------------------------------------------------------------------ what comes out


def test_a_bare_array_is_one_sequence() -> None:
    """C1: the value of the next step is that of the same sequence."""
    s = C.sequence.input_variable(2)
    data = np.array([[1, 1], [2, 2], [3, 3]], F)
    (found,) = C.sequence.future_value(s).eval({s: data})
    np.testing.assert_array_equal(found, [[2, 2], [3, 3], [0, 0]])
    found = C.sequence.last(s).eval({s: np.stack([data, 10 * data])})
    np.testing.assert_array_equal(found, [[3, 3], [30, 30]])


def test_one_sample_is_a_batch_of_one() -> None:
    """C5."""
    p = C.input_variable(2)
    np.testing.assert_array_equal((p + 1).eval({p: np.array([1, 2], F)}), [[2, 3]])
    np.testing.assert_array_equal(C.square(p).grad({p: np.array([1, 2], F)}, wrt=[p]), [[2, 4]])


def test_values_have_the_form_of_the_output() -> None:
    p, s = C.input_variable(2), C.sequence.input_variable(2)
    data = [numbers(3, 2), numbers(1, 2)]
    assert [one.shape for one in (s + 1).eval({s: data})] == [(3, 2), (1, 2)]
    assert [one.shape for one in (s + 1).eval({s: numbers(1, 1, 2)})] == [(1, 2)]
    assert C.sequence.first(s).eval({s: data}).shape == (2, 2)
    assert (p + 1).eval({p: numbers(3, 1, 2)}).shape == (3, 2)
    assert C.plus([1, 2], 3).eval().tolist() == [4, 5]
    both = C.combine([s + 1, C.sequence.first(s)]).eval({s: data})
    assert [type(one) for one in both.values()] == [list, np.ndarray]
    value = (s + 1).eval({s: data}, as_numpy=False)
    assert [len(one) for one in value.as_sequences(s)] == [3, 1]
    np.testing.assert_array_equal((s - 1).eval({s: value})[0], data[0])
    assert [one.shape for one in (s * s).grad({s: data})] == [(3, 2), (1, 2)]


def test_an_input_without_dynamic_axes_has_one_value() -> None:
    c, p = C.input_variable(2, dynamic_axes=[]), C.input_variable(2)
    assert (c.dynamic_axes, (c * p).dynamic_axes) == ((), p.dynamic_axes)
    assert (c * 2).eval({c: [1, 2]}).tolist() == [2, 4]
    product = c * p
    assert product.eval({c: [1, 2], p: numbers(3, 2)}).tolist() == [[1, 4], [3, 8], [5, 12]]
    gradients = product.grad({c: [1, 2], p: numbers(3, 2)}, wrt=[c, p])
    assert gradients[c].tolist() == [9, 12]
    assert gradients[p].tolist() == [[1, 2]] * 3


def test_other_numbers_of_sequences_are_refused() -> None:
    s, p = C.sequence.input_variable(2, name="s"), C.input_variable(2, name="p")
    function = C.sequence.last(s) + p
    assert function.eval({s: numbers(3, 2), p: numbers(2)}).tolist() == [[6, 8]]
    with pytest.raises(ArgumentError, match=r"input 's' has 1 sequence in .* input 'p' has 3"):
        function.eval({s: numbers(3, 2), p: numbers(3, 2)})


def test_flags_belong_to_the_rows_of_an_array() -> None:
    """With flags the first axis of an array counts the sequences, as in a list."""
    s = sequence_input(2, name="s")
    trainer = a_trainer(s)
    for begins in (True, False):
        trainer.train_minibatch(({s: numbers(2, 3, 2)}, [begins] * 2))
        assert trainer.previous_minibatch_sample_count == 6
    with pytest.raises(ArgumentError, match="1 truth values for 3 sequences"):
        trainer.train_minibatch({s: (numbers(3, 2), [True])})
    assert Value.create(s, numbers(2, 3, 2), [True, False]).mask.tolist() == [[2, 1, 1], [1, 1, 1]]


def test_dense_data_of_a_sparse_input_are_refused() -> None:
    x = input_variable(3, is_sparse=True, name="x")
    z = operators.times(x, np.eye(3))
    assert z.eval({x: scipy.sparse.csc_matrix(numbers(2, 3))}).tolist() == numbers(2, 3).tolist()
    for data in (numbers(2, 3), [numbers(3)], Value(numbers(2, 3))):
        with pytest.raises(ArgumentError, match=r"dense data of shape .* for the sparse input 'x'"):
            z.eval({x: data})


def test_numbers_of_a_file_may_have_an_axis_or_none() -> None:
    """It says neither how many dynamic axes they have, nor whether their samples have the shape () or (1,)."""
    axes = InputAxes("input", (1,), None)
    for data, lengths in (
        (numbers(3), [1] * 3),
        (numbers(3, 1), [1] * 3),
        (numbers(2, 3, 1), [3] * 2),
        ([1, 2], [1] * 2),
        (4, [1]),
        ([numbers(2), numbers(3)], [2, 3]),
        (numbers(1), [1]),
    ):
        assert batch_of(data, axes).lengths.tolist() == lengths
    with pytest.raises(ArgumentError, match=r"data of shape \(2, 3\)"):
        batch_of(numbers(2, 3), axes)


# ------------------------------------------------------------------------------------------------ sources


def test_rows_of_arrays_as_a_source_are_items() -> None:
    """Each row is a sample, or a sequence; lists are sequences; flat rows are not images."""
    s, p, image = sequence_input(2, name="s"), input_variable(2, name="p"), input_variable((1, 2), name="i")
    for x, data, steps in (
        (s, numbers(5, 2), 1),
        (s, numbers(5, 3, 2), 3),
        (s, [numbers(3, 2)] * 5, 3),
        (p, numbers(5, 2), 1),
        (s, matrix(5, 2), 1),
        (s, Value(numbers(5, 3, 2)), 3),
        (image, numbers(5, 1, 2), 1),
    ):
        source = MinibatchSourceFromData({"x": data}, max_samples=5 * (steps if isinstance(data, list) else 1))
        trainer = a_trainer(x)
        TrainingSession(trainer, source, 100, {x: source.streams.x}).train()
        assert trainer.total_number_of_samples_seen == 5 * steps
        (found,) = source.streams.values()
        again = MinibatchSourceFromData({"x": data}).next_minibatch(100)
        assert np.concatenate(flat((x * 1.0).eval({x: again[found]}))).sum() == pytest.approx(total(data), rel=1e-6)
    source = MinibatchSourceFromData({"x": numbers(5, 2)})
    with pytest.raises(ArgumentError, match=r"next_minibatch\(.*: data of shape|item of shape \(2,\).* \(1, 2\)"):
        Feed(a_trainer(image), source, {image: source.streams.x}).next(5)


def total(data: Any) -> float:
    if isinstance(data, list):
        return float(sum(one.sum() for one in data))
    return float((data.asarray() if isinstance(data, Value) else data).sum())


def test_training_and_tests_take_arrays() -> None:
    x, y = input_variable(2, name="x"), input_variable(1, name="y")
    loss = operators.squared_error(layers.Dense(1)(x), y)
    learner = learners.sgd(loss.parameters, 0.01)
    assert loss.train((numbers(6, 2), numbers(6, 1)), parameter_learners=[learner]).epoch_summaries[0].samples == 6
    assert loss.test((numbers(6, 2), numbers(6, 1))).samples == 6
    with pytest.raises(ArgumentError, match=r"item of shape \(\) .* shape \(1,\)"):
        loss.test((numbers(6, 2), numbers(6)))


def test_samples_of_a_reader_have_the_axes_of_the_input(tmp_path: Path) -> None:
    """Elements in another order of axes would be other numbers; flat samples of a text file have one axis."""
    path = tmp_path / "data.ctf"
    path.write_text("|x 1 2 3 4 5 6\n|x 6 5 4 3 2 1\n")
    source = MinibatchSource(CTFDeserializer(str(path), StreamDefs(x=StreamDef(field="x", shape=6))), randomize=False)
    (found,) = source.next_minibatch(2).values()
    image = input_variable((2, 3), name="image")
    assert (image + 0).eval({image: found})[0].tolist() == [[1, 2, 3], [4, 5, 6]]
    axes = axes_of(image)
    for sample in ((2, 3), (6,), (2, 1, 3)):
        check_sample(sample, axes)
    for sample in ((3, 2), (5,), (2, 4)):
        with pytest.raises(ArgumentError, match=rf"samples of shape {re.escape(str(sample))} for .* \(2, 3\)"):
            check_sample(sample, axes)
    classes = Value.one_hot([[[1, 0]]], (2, 3))
    assert (image + 0).eval({image: classes})[0].tolist() == [[0, 1, 0], [1, 0, 0]]
    other = input_variable((3, 2), name="other")
    with pytest.raises(ArgumentError, match=r"samples of shape \(2, 3\) for the input 'other'"):
        (other + 0).eval({other: classes})


@pytest.mark.parametrize("given_value", [[5.0], [[5.0]]])
def test_only_a_number_fills_a_parameter(given_value: Any) -> None:
    w = parameter(3, init=2.0)
    w.value = 5.0
    assert w.value.tolist() == [5, 5, 5]
    with pytest.raises(UserError, match=r"a value of shape .* for a parameter of shape \(3,\)"):
        w.value = given_value
    with pytest.raises(UserError, match=r"an array of shape .* for a parameter of shape 3"):
        parameter(3, init=given_value)


# ------------------------------------------------------------------------------------------------ round trips

elements = st.floats(-100, 100, width=32)


@st.composite
def batches(draw: st.DrawFn) -> tuple[tuple[int, ...], list[np.ndarray]]:
    """The shape of a sample, and sequences of samples."""
    shape = tuple(draw(st.lists(st.integers(1, 3), max_size=2)))
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    return shape, [draw(arrays.arrays(F, (length, *shape), elements=elements)) for length in lengths]


@settings(deadline=None, max_examples=60)
@given(batches())
def test_a_batch_of_a_value_is_the_same_batch(batch: tuple[tuple[int, ...], list[np.ndarray]]) -> None:
    shape, sequences = batch
    x = sequence_input(shape)
    for given_value in (Value.create(x, sequences), Value.create(x, Value.create(x, sequences)), Value(sequences)):
        found = given_value.as_sequences(x)
        assert len(found) == len(sequences)
        for a, b in zip(found, sequences, strict=True):
            np.testing.assert_array_equal(a, b)
    lengths = {len(one) for one in sequences}
    if len(lengths) == 1:
        for a, b in zip(Value.create(x, np.stack(sequences)).as_sequences(), sequences, strict=True):
            np.testing.assert_array_equal(a, b)
    (alone,) = Value.create(x, sequences[0]).as_sequences()
    np.testing.assert_array_equal(alone, sequences[0])
