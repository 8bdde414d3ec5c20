"""Data in every form that programs for CNTK 2.7 give: each is read the same way by whatever takes data.

The sequences that each is read as are written out by hand. An entry point shows what it has read by its values, by sums
over the samples, and by the number of samples; sequences are told from single samples by the value of the step before.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import cntkpy.compat.cntk as C
from cntkpy.cntk_config import UserError
from cntkpy.readers.errors import ArgumentError

F = np.float32
csr = scipy.sparse.csr_matrix
one_hot = C.Value.one_hot
Sequences = list[list[Any]]
"""By sequence its samples."""


class Kind:
    """An input, with functions of it that show what it was given.

    Args:
        axes: "one": no dynamic axes; "batch"; "sequence".
        shape: of a sample.
        sparse: whether it takes sparse data.
    """

    def __init__(self, axes: str, shape: tuple[int, ...], sparse: bool) -> None:
        self.axes, self.shape, self.sparse = axes, shape, sparse
        if axes == "sequence":
            self.x = C.sequence.input_variable(shape, is_sparse=sparse, name="x")
        else:
            dynamic: Any = {"dynamic_axes": []} if axes == "one" else {}
            self.x = C.input_variable(shape, is_sparse=sparse, name="x", **dynamic)
        self.dense = C.times(self.x, np.eye(shape[-1])) if sparse else self.x
        self.same = self.dense * 1
        self.before = C.sequence.past_value(self.dense) if axes == "sequence" else None
        self.square = C.reduce_sum(C.square(self.dense))
        w = C.parameter(shape, init=1)
        self.loss = C.reduce_sum((self.dense if self.before is None else self.before) * w)
        self.learner = C.sgd(self.loss.parameters, C.learning_parameter_schedule(0.0))
        self.trainer = C.Trainer(None, (self.loss, self.loss), [self.learner])
        self.tester = C.eval.Evaluator(self.loss)

    def container(self, sequences: Sequences) -> Any:
        """The sequences as a function of the input gives them."""
        arrays = [np.array(one, F).reshape(len(one), *self.shape) for one in sequences]
        if self.axes == "sequence":
            return arrays
        return arrays[0][0] if self.axes == "one" else np.concatenate(arrays)

    def shifted(self, sequences: Sequences) -> Sequences:
        """The value of the step before, of each step."""
        return [[np.zeros(self.shape), *one[:-1]] for one in sequences]

    def total(self, sequences: Sequences) -> float:
        """The sum that the loss is."""
        shown = self.shifted(sequences) if self.axes == "sequence" else sequences
        return float(sum(np.sum(sample) for one in shown for sample in one))


@cache
def kind(axes: str, shape: tuple[int, ...], sparse: bool = False) -> Kind:
    return Kind(axes, shape, sparse)


ONE, BATCH, SEQUENCE = "one", "batch", "sequence"
A23 = [[1, 2, 3], [4, 5, 6]]
IMAGE = [[[1, 2], [3, 4]]]

CASES: list[tuple[str, tuple[Any, ...], Any, Sequences | str]] = [
    # ------------------------------------------------------------------------------------ single samples
    ("an array of samples", (BATCH, (2,)), np.array([[1, 2], [3, 4], [5, 6]], F), [[[1, 2]], [[3, 4]], [[5, 6]]]),
    ("an array of one sample", (BATCH, (2,)), np.array([[2.0, 1.0]], F), [[[2, 1]]]),
    ("a sample alone", (BATCH, (2,)), np.array([1, 2], F), [[[1, 2]]]),
    ("nested lists", (BATCH, (2,)), [[1, 2], [3, 4]], [[[1, 2]], [[3, 4]]]),
    ("a list of arrays", (BATCH, (2,)), [np.array([1, 2], F), np.array([3, 4], F)], [[[1, 2]], [[3, 4]]]),
    ("a list of a list of arrays", (BATCH, (2,)), [[np.array([1, 2], F)], [np.array([3, 4], F)]], [[[1, 2]], [[3, 4]]]),
    ("whole numbers", (BATCH, (2,)), np.array([[1, 2], [3, 4]]), [[[1, 2]], [[3, 4]]]),
    ("double precision", (BATCH, (2,)), np.array([[1.5, 2.5]]), [[[1.5, 2.5]]]),
    ("truth values", (BATCH, (2,)), np.array([[True, False]]), [[[1, 0]]]),
    ("samples that are steps", (BATCH, (2,)), np.array([[[1, 2]], [[3, 4]]], F), [[[1, 2]], [[3, 4]]]),
    ("a view that is not contiguous", (BATCH, (2,)), np.array([[1, 3], [2, 4]], F).T, [[[1, 2]], [[3, 4]]]),
    ("numbers", (BATCH, ()), np.array([1, 2, 3], F), [[1], [2], [3]]),
    ("a list of numbers", (BATCH, ()), [1, 2, 3], [[1], [2], [3]]),
    ("a number", (BATCH, ()), 4, [[4]]),
    ("an array of no axes", (BATCH, ()), np.asarray(4), [[4]]),
    ("numbers that are steps", (BATCH, ()), np.array([[1], [2]], F), [[1], [2]]),
    ("columns", (BATCH, (1,)), np.array([[1], [2], [3]], F), [[[1]], [[2]], [[3]]]),
    ("one column", (BATCH, (1,)), np.array([7], F), [[[7]]]),
    ("a matrix", (BATCH, (2, 3)), np.array(A23, F), [[A23]]),
    ("a list of matrices", (BATCH, (2, 3)), [np.array(A23, F), np.array(A23[::-1], F)], [[A23], [A23[::-1]]]),
    ("matrices", (BATCH, (2, 3)), np.array([A23, A23], F), [[A23], [A23]]),
    ("an image", (BATCH, (1, 2, 2)), np.array(IMAGE, F), [[IMAGE]]),
    ("images", (BATCH, (1, 2, 2)), np.array([IMAGE, IMAGE], F), [[IMAGE], [IMAGE]]),
    ("a sparse matrix for a dense input", (BATCH, (2,)), csr([[0, 1], [2, 0]]), [[[0, 1]], [[2, 0]]]),
    ("a sparse matrix", (BATCH, (3,), True), csr([[0, 1, 0], [2, 0, 0]]), [[[0, 1, 0]], [[2, 0, 0]]]),
    ("a list of sparse rows", (BATCH, (3,), True), [csr([0, 1, 0]), csr([2, 0, 0])], [[[0, 1, 0]], [[2, 0, 0]]]),
    ("classes", (BATCH, (3,), True), one_hot([1, 0], 3), [[[0, 1, 0]], [[1, 0, 0]]]),
    ("an array of classes", (BATCH, (3,), True), one_hot(np.array([1, 0]), 3), [[[0, 1, 0]], [[1, 0, 0]]]),
    ("lists of one class", (BATCH, (3,), True), one_hot([[1], [0]], 3), [[[0, 1, 0]], [[1, 0, 0]]]),
    ("no class", (BATCH, (3,), True), one_hot([C.Value.ONE_HOT_SKIP, 2], 3), [[[0, 0, 0]], [[0, 0, 1]]]),
    ("a Value of samples", (BATCH, (2,)), C.Value(np.array([[1, 2], [3, 4]], F)), [[[1, 2]], [[3, 4]]]),
    ("a Value of steps", (BATCH, (2,)), C.Value(np.array([[[1, 2]], [[3, 4]]], F)), [[[1, 2]], [[3, 4]]]),
    ("sequences of samples", (BATCH, (2,)), np.ones((4, 3, 2), F), "data of shape (4, 3, 2), .* shape (2,)"),
    ("a list of sequences of samples", (BATCH, (2,)), [np.ones((3, 2), F)], "(3, 2)|3 steps, .* shape (2,)"),
    ("too many elements", (BATCH, (2,)), np.ones((3, 3), F), "data of shape (3, 3) .* shape (2,)"),
    ("a sample with too few elements", (BATCH, (2,)), np.ones(3, F), "data of shape (3,) .* shape (2,)"),
    ("items of several sizes", (BATCH, (2,)), [[1, 2], [3]], "item of shape (1,) .* shape (2,)"),
    ("flat matrices", (BATCH, (2, 3)), np.ones((4, 6), F), "data of shape (4, 6) .* shape (2, 3)"),
    ("transposed matrices", (BATCH, (2, 3)), np.ones((4, 3, 2), F), "data of shape (4, 3, 2) .* shape (2, 3)"),
    ("images without their channel", (BATCH, (1, 2, 2)), np.ones((5, 2, 2), F), "(5, 2, 2) .* shape (1, 2, 2)"),
    ("numbers for columns", (BATCH, (1,)), np.ones(3, F), "data of shape (3,) .* shape (1,)"),
    ("a list of numbers for columns", (BATCH, (1,)), [np.asarray(2)], "item of shape () .* shape (1,)"),
    ("dense data for a sparse input", (BATCH, (3,), True), np.eye(3), "dense data of shape (3, 3) .* shape (3,)"),
    ("a sparse matrix of other rows", (BATCH, (2,)), csr(np.eye(3)), "matrix of shape (3, 3) .* shape (2,)"),
    ("an array of objects", (BATCH, (2,)), np.array([np.ones(2), None], object), "an array of object is not data"),
    ("a text", (BATCH, (2,)), "text", "'text' is not data"),
    ("a flag without sequences", (BATCH, (2,)), (np.ones((1, 2), F), [True]), "for the input 'x', .* no sequence axis"),
    # ------------------------------------------------------------------------------------ sequences
    ("an array is one sequence", (SEQUENCE, (2,)), np.array([[1, 2], [3, 4], [5, 6]], F), [[[1, 2], [3, 4], [5, 6]]]),
    ("as many steps as elements", (SEQUENCE, (2,)), np.array([[1, 2], [3, 4]], F), [[[1, 2], [3, 4]]]),
    ("a step alone", (SEQUENCE, (2,)), np.array([1, 2], F), [[[1, 2]]]),
    ("sequences of equal length", (SEQUENCE, (2,)), np.array([[[1, 2], [3, 4]], [[5, 6], [7, 8]]], F),
     [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]),
    ("a list of sequences", (SEQUENCE, (2,)), [np.array([[1, 2], [3, 4]], F), np.array([[5, 6]], F)],
     [[[1, 2], [3, 4]], [[5, 6]]]),
    ("a list of one sequence", (SEQUENCE, (2,)), [np.array([[1, 2], [3, 4]], F)], [[[1, 2], [3, 4]]]),
    ("a list of steps", (SEQUENCE, (2,)), [np.array([1, 2], F), np.array([3, 4], F)], [[[1, 2]], [[3, 4]]]),
    ("a list of steps and sequences", (SEQUENCE, (2,)), [np.array([1, 2], F), np.array([[3, 4], [5, 6]], F)],
     [[[1, 2]], [[3, 4], [5, 6]]]),
    ("nested lists of steps", (SEQUENCE, (2,)), [[1, 2], [3, 4]], [[[1, 2]], [[3, 4]]]),
    ("nested lists of sequences", (SEQUENCE, (2,)), [[[1, 2], [3, 4]], [[5, 6]]], [[[1, 2], [3, 4]], [[5, 6]]]),
    ("lists of arrays", (SEQUENCE, (2,)), [[np.array([1, 2], F)], [np.array([3, 4], F), np.array([5, 6], F)]],
     [[[1, 2]], [[3, 4], [5, 6]]]),
    ("flags", (SEQUENCE, (2,)), (np.array([[1, 2], [3, 4]], F), [True, True]), [[[1, 2]], [[3, 4]]]),
    ("flags of a list", (SEQUENCE, (2,)), ([np.array([[1, 2], [3, 4]], F)], [True]), [[[1, 2], [3, 4]]]),
    ("no flags", (SEQUENCE, (2,)), (np.array([[1, 2], [3, 4]], F), None), [[[1, 2], [3, 4]]]),
    ("numbers in sequence", (SEQUENCE, ()), np.array([1, 2, 3], F), [[1, 2, 3]]),
    ("sequences of numbers", (SEQUENCE, ()), np.array([[1, 2, 3], [4, 5, 6]], F), [[1, 2, 3], [4, 5, 6]]),
    ("lists of numbers", (SEQUENCE, ()), [[1, 2], [3]], [[1, 2], [3]]),
    ("a list of single numbers", (SEQUENCE, ()), [1, 2], [[1], [2]]),
    ("a column is one sequence", (SEQUENCE, (1,)), np.array([[1], [2], [3]], F), [[[1], [2], [3]]]),
    ("sequences of columns", (SEQUENCE, (1,)), np.array([[[1], [2]], [[3], [4]]], F), [[[1], [2]], [[3], [4]]]),
    ("a list of vectors for columns", (SEQUENCE, (1,)), [np.array([1], F), np.array([2, 3], F)], [[[1]], [[2], [3]]]),
    ("a list of equal vectors for columns", (SEQUENCE, (1,)), [np.array([1, 2], F)] * 2, [[[1], [2]], [[1], [2]]]),
    ("a sequence of matrices", (SEQUENCE, (2, 3)), np.array([A23, A23], F), [[A23, A23]]),
    ("sequences of matrices", (SEQUENCE, (2, 3)), np.array([[A23], [A23]], F), [[A23], [A23]]),
    ("a matrix alone", (SEQUENCE, (2, 3)), np.array(A23, F), [[A23]]),
    ("one sparse sequence", (SEQUENCE, (3,), True), csr([[0, 1, 0], [2, 0, 0]]), [[[0, 1, 0], [2, 0, 0]]]),
    ("sparse sequences", (SEQUENCE, (3,), True), [csr([[0, 1, 0], [0, 0, 1]]), csr([3, 0, 0])],
     [[[0, 1, 0], [0, 0, 1]], [[3, 0, 0]]]),
    ("a sparse matrix by columns", (SEQUENCE, (3,), True), [scipy.sparse.csc_matrix([[0, 1, 0]])], [[[0, 1, 0]]]),
    ("sequences of classes", (SEQUENCE, (3,), True), one_hot([[1], [2, 0]], 3), [[[0, 1, 0]], [[0, 0, 1], [1, 0, 0]]]),
    ("classes in sequence", (SEQUENCE, (3,), True), one_hot([1, 2], 3), [[[0, 1, 0], [0, 0, 1]]]),
    ("rows of classes", (SEQUENCE, (3,), True), one_hot(np.array([[1, 2], [0, 0]]), 3),
     [[[0, 1, 0], [0, 0, 1]], [[1, 0, 0], [1, 0, 0]]]),
    ("classes of samples of two axes", (SEQUENCE, (2, 3), True), one_hot([[1, 0, 2, 2], [0, 1]], (2, 3)),
     [[[[0, 1, 0], [1, 0, 0]], [[0, 0, 1], [0, 0, 1]]], [[[1, 0, 0], [0, 1, 0]]]]),
    ("a Value of one sequence", (SEQUENCE, (2,)), C.Value(np.array([[1, 2], [3, 4]], F)), [[[1, 2], [3, 4]]]),
    ("a Value of sequences", (SEQUENCE, (2,)), C.Value(np.array([[[1, 2], [3, 4]]] * 2, F)), [[[1, 2], [3, 4]]] * 2),
    ("a Value of a list", (SEQUENCE, (2,)), C.Value([np.array([[1, 2], [3, 4]], F), np.array([[5, 6]], F)]),
     [[[1, 2], [3, 4]], [[5, 6]]]),
    ("a Value with flags", (SEQUENCE, (2,)), C.Value(np.array([[1, 2], [3, 4]]), [True] * 2), [[[1, 2]], [[3, 4]]]),
    ("three axes more", (SEQUENCE, (2,)), np.ones((5, 4, 3, 2), F), "(5, 4, 3, 2), with 3 axes .* shape (2,)"),
    ("two axes more of an item", (SEQUENCE, (2,)), [np.ones((4, 3, 2), F)], "items of shape (4, 3, 2) .* shape (2,)"),
    ("other elements", (SEQUENCE, (2,)), np.ones((2, 3), F), "data of shape (2, 3) .* shape (2,)"),
    ("numbers in sequence for columns", (SEQUENCE, (1,)), np.ones((2, 3), F), "data of shape (2, 3) .* shape (1,)"),
    ("one number for a sequence of columns", (SEQUENCE, (1,)), [1.0, 2.0], "item of shape () .* shape (1,)"),
    ("a sequence without steps", (SEQUENCE, (2,)), np.ones((0, 2)), "(0, 2), a sequence without steps, .* shape (2,)"),
    ("a list with an empty sequence", (SEQUENCE, (2,)), [np.ones((1, 2)), np.ones((0, 2))], "0 steps (number 1 .*(2,)"),
    ("dense and sparse items", (SEQUENCE, (2,)), [np.ones((1, 2), F), csr([[1, 2]])], "dense and sparse items"),
    ("sequences as objects", (SEQUENCE, (2,)), np.array([np.ones((1, 2)), None], object), "of object is not data"),
    ("flags for a Value", (SEQUENCE, (2,)), (one_hot([[0]], 2), [True]), "truth values go with arrays and lists"),
    ("flags that are numbers", (SEQUENCE, (2,)), (np.ones((1, 2), F), [1]), "a pair of data has truth values"),
    ("too few flags", (SEQUENCE, (2,)), (np.ones((3, 2), F), [True]), "1 truth values for 3 sequences"),
    # ------------------------------------------------------------------------------------ one value
    ("the value", (ONE, (2,)), np.array([1, 2], F), [[[1, 2]]]),
    ("the value as a list", (ONE, (2,)), [1, 2], [[[1, 2]]]),
    ("a list of lists is the value", (ONE, (2, 3)), A23, [[A23]]),
    ("a number is the value", (ONE, ()), 3, [[3]]),
    ("the value with a batch axis", (ONE, (2,)), np.array([[1, 2]], F), [[[1, 2]]]),
    ("the value with both axes", (ONE, (2,)), np.array([[[1, 2]]], F), [[[1, 2]]]),
    ("several values", (ONE, (2,)), np.ones((3, 2), F), "data of shape (3, 2) .* shape (2,)"),
]  # fmt: skip


def check(found: Any, expected: Any, what: str) -> None:
    """Whether values have the container, the shapes and the numbers that are expected."""
    assert isinstance(found, list) == isinstance(expected, list), what
    for a, b in zip(*((one if isinstance(one, list) else [one]) for one in (found, expected)), strict=True):
        assert a.shape == b.shape, what
        np.testing.assert_array_equal(a, b, err_msg=what)


def by_values(run: Callable[[Any, Any, Any], Any]) -> Callable[[Kind, Any, Sequences | None], None]:
    """Check what a function of the input gives, and the step before of sequences."""

    def act(k: Kind, data: Any, expected: Sequences | None) -> None:
        found = run(k.same, k.x, data)
        assert expected is not None
        check(found, k.container(expected), "values")
        if k.before is not None:
            check(run(k.before, k.x, data), k.container(k.shifted(expected)), "the step before")

    return act


def by_gradient(k: Kind, data: Any, expected: Sequences | None) -> None:
    found = k.square.grad({k.x: data}, wrt=[k.x])
    assert expected is not None
    check(found, k.container([[2 * np.array(sample) for sample in one] for one in expected]), "gradient")


def by_backward(k: Kind, data: Any, expected: Sequences | None) -> None:
    state, _ = k.same.forward({k.x: data}, keep_for_backward=k.same.outputs)
    assert expected is not None
    ones = k.container([[np.ones(k.shape) for _ in one] for one in expected])
    check(k.same.backward(state, {k.same.output: ones}, [k.x])[k.x], ones, "gradient")


def by_training(k: Kind, data: Any, expected: Sequences | None) -> None:
    trained, values = k.trainer.train_minibatch({k.x: data}, outputs=[k.same])
    assert trained
    assert expected is not None
    check(values[k.same], k.container(expected), "outputs")
    count = k.trainer.previous_minibatch_sample_count
    assert count == sum(map(len, expected))
    assert k.trainer.previous_minibatch_loss_average * count == pytest.approx(k.total(expected))


def by_tests(tester: str) -> Callable[[Kind, Any, Sequences | None], None]:
    def act(k: Kind, data: Any, expected: Sequences | None) -> None:
        found = getattr(k, tester).test_minibatch({k.x: data})
        assert expected is not None
        assert found * sum(map(len, expected)) == pytest.approx(k.total(expected))

    return act


class Source(C.io.UserMinibatchSource):
    """Gives a minibatch once."""

    def __init__(self, k: Kind, value: Any) -> None:
        self.x = C.io.StreamInformation("x", 0, "sparse" if k.sparse else "dense", F, k.shape)
        self.value: Any = value
        super().__init__()

    def stream_infos(self) -> list[Any]:
        return [self.x]

    def next_minibatch(self, *_: Any, **__: Any) -> dict[Any, Any]:
        value, self.value = self.value, None
        return {} if value is None else {self.x: C.io.MinibatchData(value, len(value), 1, True)}


def by_session(k: Kind, data: Any, expected: Sequences | None) -> None:
    value = C.Value.create(k.x, data)
    source = Source(k, value)
    trainer = C.Trainer(None, (k.loss, k.loss), [k.learner])
    C.training_session(trainer, source, 100, {k.x: source.x}, max_samples=100).train()
    assert expected is not None
    assert trainer.total_number_of_samples_seen == sum(map(len, expected))
    assert trainer.previous_minibatch_loss_average * sum(map(len, expected)) == pytest.approx(k.total(expected))


ENTRIES: dict[str, Callable[[Kind, Any, Sequences | None], None]] = {
    "eval": by_values(lambda f, x, data: f.eval({x: data})),
    "eval of the data alone": by_values(lambda f, x, data: f.eval(data)),
    "eval by name": by_values(lambda f, x, data: f.eval({"x": data})),
    "forward": by_values(lambda f, x, data: f.forward({x: data})[1][f.output]),
    "values for another function": by_values(lambda f, x, data: f.eval({x: (x * 1).eval({x: data}, as_numpy=False)})),
    "Value.create": by_values(lambda f, x, data: f.eval({x: C.Value.create(x, data)})),
    "asvalue": by_values(lambda f, x, data: f.eval({x: C.asvalue(x, data)})),
    "MinibatchData": by_values(
        lambda f, x, data: f.eval({x: C.io.MinibatchData(C.Value.create(x, data), 1, 1, False)})
    ),
    "grad": by_gradient,
    "backward": by_backward,
    "train_minibatch": by_training,
    "test_minibatch": by_tests("trainer"),
    "Evaluator": by_tests("tester"),
    "training_session": by_session,
}
"""Whatever takes data."""

QUICK = ("eval", "forward", "Value.create", "grad", "train_minibatch", "test_minibatch")
"""The entries that are tried by default; the others are `thorough`."""

SPARSE_HAS_NONE = ("grad", "backward", "values for another function")
"""What sparse inputs do not have: gradients; and their values are dense."""

VALUES = ("Value.create", "asvalue", "MinibatchData", "training_session")
"""What makes a value of data; flags are another argument there."""


@pytest.mark.parametrize(
    "entry", [one if one in QUICK else pytest.param(one, marks=pytest.mark.thorough) for one in ENTRIES]
)
@pytest.mark.sampled
def test_every_entry_reads_data_alike(entry: str) -> None:
    for name, (axes, shape, *sparse), data, expected in CASES:
        k, what = kind(axes, shape, *sparse), f"{entry}: {name}"
        if (k.sparse and entry in SPARSE_HAS_NONE) or (isinstance(data, tuple) and entry in VALUES):
            continue
        if isinstance(expected, str):
            with pytest.raises(ValueError, match=re.sub(r"([()])", r"\\\1", expected)):
                ENTRIES[entry](k, data, None)
            continue
        try:
            ENTRIES[entry](k, data, expected)
        except Exception as error:
            raise AssertionError(f"{what}: {error}") from error


def test_there_are_many_forms_of_data() -> None:
    names = [name for name, *_ in CASES]
    assert len(names) == len(set(names)) > 100


# ---------------------------------------------------------------------------------------------- what comes back


def test_values_come_back_in_the_container_of_the_output() -> None:
    """Of the examples of CNTK's manual: lists for sequences, arrays for batches, the bare value for neither."""
    x = C.sequence.input_variable((3, 2))
    data = np.reshape(np.arange(24, dtype=F), (1, 4, 3, 2))
    (found,) = C.sequence.past_value(x).eval({x: data})
    check(found, np.concatenate([np.zeros((1, 3, 2)), data[0, :3]]), "past_value")
    check(C.sequence.first(x).eval({x: data}), data[:, 0], "first")
    check(C.sequence.last(x).eval({x: data}), data[:, 3], "last")
    (found,) = C.sequence.broadcast_as(C.sequence.last(x), C.sequence.is_first(x)).eval({x: data})
    check(found, np.stack([data[0, 3]] * 4), "broadcast_as")
    check(C.minus([1, 2, 3], [4, 5, 6]).eval(), np.array([-3, -3, -3]), "minus")
    a, b = C.input_variable(2), C.input_variable(2)
    found = C.squared_error(a, b).eval({a: np.array([[2.0, 1.0]], F), b: np.array([[4.0, 6.0]], F)})
    check(found, np.array([29]), "squared_error")
    v = C.input_variable(shape=(3,))
    _, values = C.reciprocal(v).forward({v: [[1, 2, 4]]})
    check(next(iter(values.values())), np.array([[1, 0.5, 0.25]]), "forward")
    root = C.input_variable(shape=(1,), needs_gradient=True)
    check(C.sqrt(root).grad({root: np.array([[1], [4], [16]], F)}), np.array([[0.5], [0.25], [0.125]]), "grad")


def test_a_function_of_inputs_without_dynamic_axes_has_one_value_among_others() -> None:
    c, p, s = C.input_variable(2, dynamic_axes=[]), C.input_variable(2), C.sequence.input_variable(2)
    for other, data in ((p, [[1, 2], [3, 4]]), (s, [[[1, 2], [3, 4]], [[5, 6]]])):
        both = C.combine([c * 2, other * 2])
        assert both.outputs[0].dynamic_axes == ()
        found = both.eval({c: [1, 2], other: data})
        check(found[both.outputs[0]], np.array([2, 4]), "the value")
        state, _ = both.forward({c: [1, 2], other: data}, keep_for_backward=both.outputs)
        assert both.backward(state, {both.outputs[0]: np.array([1, 10])}, [c])[c].tolist() == [2, 20]


def test_values_know_their_axes() -> None:
    """What a function gave as a Value is read in the same way by inputs of other axes, or refused."""
    p, s, c = C.input_variable(2), C.sequence.input_variable(2), C.input_variable(2, dynamic_axes=[])
    batch = (p * 1).eval({p: [[1, 2], [3, 4]]}, as_numpy=False)
    check((s * 1).eval({s: batch}), [np.array([[1, 2]]), np.array([[3, 4]])], "samples as sequences")
    assert batch.mask.tolist() == [[2], [2]]
    steps = (s * 1).eval({s: np.array([[1, 2], [3, 4]])}, as_numpy=False)
    assert steps.mask.tolist() == [[2, 1]]
    with pytest.raises(ValueError, match=r"sequences of 2 steps, .* shape \(2,\)"):
        (p * 1).eval({p: steps})
    single = (c * 1).eval({c: [1, 2]}, as_numpy=False)
    for x in (p, s, c):
        assert np.ravel((x * 1).eval({x: single})).tolist() == [1, 2]
    gradient = (p * p).grad({p: [[1, 2], [3, 4]]}, as_numpy=False)
    assert gradient.mask.tolist() == [[2], [2]]
    w = C.parameter(2, init=1)
    assert (p * w).grad({p: [[1, 2], [3, 4]]}, wrt=[w], as_numpy=False).asarray().tolist() == [4, 6]
    _, values = (s * 1).forward({s: [[[1, 2], [3, 4]], [[5, 6]]]}, as_numpy=False)
    (value,) = values.values()
    assert value.mask.tolist() == [[2, 1], [2, 0]]


def test_inputs_of_a_model_file_keep_their_axes(tmp_path: Path) -> None:
    """A network that does not look along steps has sequences because its input says so."""
    s, p = C.sequence.input_variable(2, name="s"), C.input_variable((), name="p")
    c = C.input_variable(2, dynamic_axes=[], name="c")
    steps, plain, both = C.layers.Dense(1)(s), p * 2, C.sequence.last(C.layers.Recurrence(C.layers.RNNStep(2))(s)) + c
    for function, data in (
        (steps, {"s": np.ones((3, 2), F)}),
        (plain, {"p": np.array([1, 2, 3], F)}),
        (both, {"s": np.ones((3, 2), F), "c": [1, 2]}),
    ):
        function.save(tmp_path / "model")
        again = C.load_model(tmp_path / "model")
        axes = [{one.name: one.dynamic_axes for one in each.arguments} for each in (again, function)]
        assert axes[0] == axes[1]
        check(again.eval(data), function.eval(data), "values")
        copy = again.clone("share")
        check(copy.eval(data), function.eval(data), "values of a copy")
    with pytest.raises(
        ValueError, match=r"data of shape \(2, 2\) for the input 'c', whose samples have the shape \(2,\)"
    ):
        C.load_model(tmp_path / "model").eval({"s": np.ones((3, 2), F), "c": np.ones((2, 2))})


# ---------------------------------------------------------------------------------------------- arrays that are no data


def test_a_target_may_be_an_array() -> None:
    """C2: an array is a constant of its shape, also where a criterion is trained or tested."""
    x, k = C.input_variable(3), np.array([0.0, 1.0, 0.0])
    data = np.array([[1, 2, 3], [3, 2, 1]], F)
    for loss in (C.squared_error, C.cross_entropy_with_softmax, C.classification_error):
        w = C.parameter(3, init=1)
        criterion = loss(x * w, k)
        expected = criterion.eval({x: data}).mean()
        assert C.eval.Evaluator(criterion).test_minibatch({x: data}) == pytest.approx(expected)
        if loss is not C.classification_error:
            trainer = C.Trainer(None, (criterion, criterion), [C.sgd([w], C.learning_parameter_schedule(0.1))])
            trainer.train_minibatch({x: data})
            assert trainer.previous_minibatch_loss_average == pytest.approx(expected)
            assert trainer.previous_minibatch_sample_count == 2
            mean = criterion.grad({x: data}, wrt=[w])  # of the parameter after the update
            assert (w.value != 1).any(), mean


def test_parameters_and_constants_are_arrays() -> None:
    c = C.constant(3, shape=(2, 3))
    assert np.asarray(c).tolist() == [[3, 3, 3], [3, 3, 3]]
    assert np.ones_like(c).shape == (2, 3)
    assert np.asarray(C.parameter(2, init=1), np.float64).dtype == np.float64
    with pytest.raises(UserError, match="has no value of its own, so it is not an array"):
        np.asarray(c + C.input_variable(3))


def with_value(shape: tuple[int, ...], value: Any) -> None:
    C.parameter(shape).value = value


def dense(**options: Any) -> None:
    C.layers.Dense(3, **options)(C.input_variable(2))


def scaled(shape: tuple[int, ...], biases: Any) -> None:
    C.image_scaler(C.input_variable(shape), 2, biases)


@pytest.mark.parametrize(
    ("make", "given", "own"),
    [
        (lambda: C.parameter((0, 2), init=np.array([[5.0]])), "(1, 1)", "a parameter of shape (-1, 2)"),
        (lambda: C.parameter((2, 3), init=[1]), "(1,)", "a parameter of shape (2, 3)"),
        (lambda: C.parameter((2, 3), init=np.ones((3, 2))), "(3, 2)", "a parameter of shape (2, 3)"),
        (lambda: C.constant(np.arange(6), shape=(2, 3)), "(6,)", "a parameter of shape (2, 3)"),
        (lambda: with_value((2, 3), np.ones(6)), "(6,)", "a parameter of shape (2, 3)"),
        (lambda: with_value((0, 3), np.ones((2, 4))), "(2, 4)", "a parameter of shape (-1, 3)"),
        (lambda: dense(init=np.ones(6)), "(6,)", "a parameter of shape (-1, 3)"),
        (lambda: dense(init=np.ones((3, 2))), "(3, 2)", "a parameter of shape (-1, 3)"),
        (lambda: dense(init_bias=np.array([1.0])), "(1,)", "a parameter of shape (3,)"),
        (lambda: dense(init_bias=np.ones((3, 1))), "(3, 1)", "a parameter of shape (3,)"),
        (lambda: scaled((1, 2, 2), [1, 2, 3]), "(3,)", "an image of shape (1, 2, 2)"),
        (lambda: scaled((4, 2, 2), [[1, 2], [3, 4]]), "(2, 2)", "an image of shape (4, 2, 2)"),
    ],
)
def test_arrays_of_another_shape_are_refused(make: Callable[[], Any], given: str, own: str) -> None:
    with pytest.raises(UserError, match=re.escape(f"of shape {given} for {own}")):
        make()


def test_a_sparse_matrix_of_the_axes_of_a_sample_is_a_sample() -> None:
    """P22."""
    x, w = C.input_variable((2, 3), is_sparse=True), np.arange(9).reshape(3, 3).astype(np.float32)
    dense = np.float32([[[1, 0, 2], [0, 3, 0]], [[0, 0, 0], [0, 0, 1]]])
    f = C.times(x, C.constant(w))
    np.testing.assert_array_equal(f.eval({x: [scipy.sparse.csr_matrix(one) for one in dense]}), dense @ w)
    np.testing.assert_array_equal(f.eval({x: scipy.sparse.csr_matrix(dense[0])}), dense[:1] @ w)
    with pytest.raises(ArgumentError) as error:
        f.eval({x: [scipy.sparse.csr_matrix(np.ones((3, 3)))]})
    assert "each row of a sparse matrix is a sample: (n, 6), or the matrix is a sample: (2, 3)" in str(error.value.hint)
