"""Sizes that only data say, FreeDimension and sequence.unpack, against NumPy and finite differences."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntkpy.compat.cntk as C
from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.builders.python.functions import function as function_module
from cntkpy.networks.builders.python.functions.free_files import sized_with_marks
from cntkpy.networks.files.model_file import save_model
from tests.cntkpy.test_dynamic_axes import differences, same

RANDOM = np.random.default_rng(5)
PRECISIONS = pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.thorough)])
SEQUENCES = [RANDOM.normal(size=(n, 2)) for n in (3, 1, 2)]
LONGER = [RANDOM.normal(size=(n, 2)) for n in (2, 5)]


def padded(sequences: Any, value: float) -> tuple[np.ndarray, np.ndarray]:
    """Sequences as one array, and which of its steps there are."""
    steps = max(map(len, sequences))
    found = np.full((len(sequences), steps, *sequences[0].shape[1:]), float(value))
    mask = np.zeros(found.shape[:2])
    for row, known, one in zip(found, mask, sequences, strict=True):
        row[: len(one)], known[: len(one)] = one, 1
    return found, mask


# ---------------------------------------------------------------------------------------------------- sequence.unpack


@PRECISIONS
def test_unpack_has_as_many_steps_as_the_longest_sequence(dtype: Any) -> None:
    x = C.sequence.input_variable(2, dtype)
    values, mask = C.sequence.unpack(x, -7, name="rows").outputs
    assert (values.shape, mask.shape, values.name) == ((C.FreeDimension, 2), (C.FreeDimension,), "rows")
    assert len(values.dynamic_axes) == len(mask.dynamic_axes) == 1
    for data in (SEQUENCES, LONGER, SEQUENCES[1:2], SEQUENCES):
        both = C.combine([values, mask]).eval({x: data})
        same([both[values], both[mask]], padded(data, -7), dtype)


def test_unpack_of_numbers_without_a_mask() -> None:
    x = C.sequence.input_variable(())
    found = C.sequence.unpack(x, 0.5, no_mask_output=True)
    assert len(found.outputs) == 1
    same(found.eval([np.array([1.0, 2.0]), np.array([3.0])]), [[1, 2], [3, 0.5]], np.float32)
    same(found.eval([np.array([1.0])]), [[1]], np.float32)


@PRECISIONS
def test_padding_has_no_gradient(dtype: Any) -> None:
    x = C.sequence.input_variable(2, dtype)
    values = C.sequence.unpack(x, 3.0, True)
    for data in (SEQUENCES, LONGER):
        found = C.reduce_sum(C.square(values)).grad({x: data}, wrt=[x])
        same(found, [2 * one for one in data], dtype)


def test_unpack_of_what_has_no_sequence_axis_is_an_error() -> None:
    x, y = C.input_variable(2), C.sequence.input_variable(2)
    with pytest.raises(UserError, match=r"sequence\.unpack: 'Input' has no sequence axis"):
        C.sequence.unpack(x, 0).eval({x: np.ones((3, 2))})
    with pytest.raises(UserError, match="has no sequence axis"):
        C.sequence.unpack(C.sequence.last(y), 0).eval({y: SEQUENCES})
    with pytest.raises(UserError, match="padding_value is a number"):
        C.sequence.unpack(y, None)


def test_unpack_of_steps_that_are_kept_or_made() -> None:
    x, y, lengths = C.sequence.input_variable(2), C.input_variable((4, 2)), C.input_variable(())
    kept = C.sequence.gather(x, C.greater(C.slice(x, 0, 0, 1), 0))
    data = [np.array([[1.0, 2], [-1, 3], [2, 4]]), np.array([[-1.0, 0], [5, 6]])]
    same(C.sequence.unpack(kept, 0, True).eval({x: data}), padded([data[0][[0, 2]], data[1][1:]], 0)[0], np.float32)
    made, four = C.to_sequence(y, lengths), RANDOM.normal(size=(3, 4, 2))
    for counts in ([1, 3, 2], [1, 1, 1]):
        expected = padded([one[:n] for one, n in zip(four, counts, strict=True)], 0)[0]
        same(C.sequence.unpack(made, 0, True).eval({y: four, lengths: counts}), expected, np.float32)


def test_what_was_unpacked_becomes_a_sequence_again() -> None:
    x = C.sequence.input_variable(2)
    values = C.sequence.unpack(x, 9, True)
    back = C.to_sequence_like(values, x)
    same(back.eval({x: SEQUENCES}), SEQUENCES, np.float32)
    same((back + x).eval({x: LONGER}), [2 * one for one in LONGER], np.float32)
    again = C.sequence.unpack(C.to_sequence(values), 0, True)
    same(again.eval({x: LONGER}), padded(LONGER, 9)[0], np.float32)


# ------------------------------------------------------------------------------------- layers before and after it


def states_of(sequence: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The states of h' = tanh(x w + h)."""
    state, found = np.zeros(w.shape[1]), []
    for row in sequence:
        state = np.tanh(row @ w + state)
        found.append(state)
    return np.array(found)


def attended(keys: Any, queries: Any, w: np.ndarray, v: np.ndarray) -> list[np.ndarray]:
    """By step of the query the mean of all states of the keys, weighted by the softmax of how well they go with it."""
    found = []
    for one, query in zip(keys, queries, strict=True):
        states = states_of(one, w)
        scores = query @ v @ states.T
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        found.append(weights / weights.sum(axis=1, keepdims=True) @ states)
    return found


def test_attention_by_unpack_and_softmax_over_the_steps() -> None:
    """The mask lets each sequence look at its own steps only."""
    encoder, decoder = C.Axis("encoder"), C.Axis("decoder")
    x = C.sequence.input_variable(2, np.float64, sequence_axis=encoder)
    y = C.sequence.input_variable(4, np.float64, sequence_axis=decoder)
    start, between = RANDOM.normal(size=(2, 3)), RANDOM.normal(size=(4, 3))
    w, v = C.parameter(init=start, dtype=np.float64), C.parameter(init=between, dtype=np.float64)
    states = C.layers.Recurrence(lambda h, one: C.tanh(C.times(one, w) + h))(x)
    values, mask = C.sequence.unpack(states, 0).outputs
    keys, known = C.sequence.broadcast_as(values, y), C.sequence.broadcast_as(mask, y)
    scores = C.reduce_sum(keys * C.times(y, v), axis=1)
    scores = C.element_select(C.reshape(known, (-1, 1)), scores, -1e30)
    context = C.reduce_sum(C.softmax(scores, axis=0) * keys, axis=0, keepdims=False)
    assert sorted(one.shape for one in context.parameters) == [(2, 3), (4, 3)]
    queries = [RANDOM.normal(size=(n, 4)) for n in (2, 3, 1)]
    for data, asked in ((SEQUENCES, queries), (LONGER, queries[1:])):
        given = {x: data, y: asked}
        same(context.eval(given), attended(data, asked, start, between), np.float64)
        found = C.reduce_sum(C.square(context)).grad(given, wrt=[w, v])

        def total(one: np.ndarray, other: np.ndarray, data: Any = data, asked: Any = asked) -> float:
            return sum(np.square(part).sum() for part in attended(data, asked, one, other))

        of_w, of_v = differences(lambda a: total(a, between), start), differences(lambda a: total(start, a), between)
        np.testing.assert_allclose(found[w], of_w, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(found[v], of_v, rtol=1e-5, atol=1e-7)


def test_layers_after_it_have_their_parameters_before_there_are_data() -> None:
    x = C.sequence.input_variable(2)
    values = C.sequence.unpack(C.layers.Recurrence(C.layers.LSTM(3))(x), 0, True)
    z = C.layers.Dense(4, map_rank=1, activation=C.tanh, name="out")(values)
    weights = z.out.W
    assert weights.shape == (3, 4)
    hidden = values.eval({x: LONGER})
    np.testing.assert_allclose(
        z.eval({x: LONGER}), np.tanh(hidden @ weights.value + z.out.b.value), rtol=1e-5, atol=1e-6
    )
    weights.value = np.zeros((3, 4))
    np.testing.assert_array_equal(z.eval({x: SEQUENCES}), np.zeros((3, 3, 4)))


def test_forward_and_backward_of_several_lengths() -> None:
    x, w = C.sequence.input_variable(2, np.float64), C.parameter(init=np.array([[1.0], [2.0]]), dtype=np.float64)
    z = C.times(C.sequence.unpack(x, 1, True), w)
    for data in (SEQUENCES, LONGER):
        rows = padded(data, 1)[0]
        state, found = z.forward({x: data}, keep_for_backward=z.outputs)
        np.testing.assert_allclose(found[z.output], rows @ w.value)
        back = z.backward(state, {z.output: found[z.output]}, {w, x})
        np.testing.assert_allclose(back[w], np.einsum("nti,ntj->ij", rows, rows @ w.value))
        same(back[x], [one @ w.value @ w.value.T for one in data], np.float64)


# ---------------------------------------------------------------------------------------------------- FreeDimension


@PRECISIONS
def test_each_minibatch_has_a_size_of_a_free_axis(dtype: Any) -> None:
    x = C.input_variable((C.FreeDimension, 2), dtype, name="x")
    start = RANDOM.normal(size=(2, 3))
    w = C.parameter(init=start.astype(dtype))
    z = C.reduce_sum(C.tanh(C.times(x, w)), axis=0)
    assert (x.shape, z.parameters, z.arguments) == ((-3, 2), (w,), (x,))
    for size in (1, 4, 3):
        data = RANDOM.normal(size=(5, size, 2))
        inner = np.tanh(data @ start)
        np.testing.assert_allclose(z.eval({x: data}), inner.sum(axis=1, keepdims=True), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(z.eval({"x": list(data)}), inner.sum(axis=1, keepdims=True), rtol=1e-4, atol=1e-6)
        of_data, of_w = C.reduce_sum(z).grad({x: data}, wrt=[x, w]).values()
        slope = 1 - np.square(inner)
        np.testing.assert_allclose(of_data, slope @ start.T, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(of_w, np.einsum("nti,ntj->ij", data, slope), rtol=1e-4, atol=1e-5)


def test_pictures_of_any_size() -> None:
    x = C.input_variable((3, C.FreeDimension, C.FreeDimension))
    z = C.layers.Sequential([
        C.layers.Convolution2D((3, 3), 4, pad=True, init=1.0), C.layers.BatchNormalization(map_rank=1),
        C.layers.GlobalAveragePooling(), C.layers.Dense(2, init=1.0),
    ])(x)  # fmt: skip
    assert [one.shape for one in z.parameters if len(one.shape) > 1]
    for height, width in ((5, 6), (8, 4)):
        assert z.eval({x: np.ones((2, 3, height, width))}).shape == (2, 2)


def test_operators_that_need_shapes_wait_for_the_data() -> None:
    x = C.input_variable((C.FreeDimension, 4))
    joined = C.reshape(x, (-1, 2))
    for size in (2, 3):
        data = RANDOM.normal(size=(2, size, 4))
        same(joined.eval(data), data.reshape(2, -1, 2), np.float32)
        same(x[1:].eval(data), data[:, 1:], np.float32)
        same(C.transpose(x, (1, 0)).eval(data), data.transpose(0, 2, 1), np.float32)


def test_data_of_several_sizes_in_one_minibatch_are_an_error() -> None:
    x = C.input_variable((C.FreeDimension, 2), name="x")
    with pytest.raises(UserError, match=r"have the shapes \(3, 2\) and \(4, 2\)"):
        (x * 1).eval({x: [np.ones((3, 2)), np.ones((4, 2))]})
    with pytest.raises(UserError, match="too few axes"):
        (x * 1).eval({x: np.ones(2)})
    with pytest.raises(UserError, match=r"samples have the shape \(4, 2\)"):
        (x * 1).eval({x: np.ones((1, 4, 3))})
    with pytest.raises(UserError, match="there are no data for the input 'x'"):
        (x * 1).eval({})


def test_an_axis_of_size_zero_is_an_error() -> None:
    for wrong in (0, -2):
        with pytest.raises(UserError, match=r"is not (the|a) shape"):
            C.input_variable((wrong, 2))


FREE = C.FreeDimension
SAVED: dict[str, tuple[Any, Any, list[Any]]] = {
    "product": (
        C.input_variable((FREE, 2)),
        lambda x: C.softmax(C.times(x, C.parameter((2, 3), init=0.5)), axis=0),
        [(1, 3, 2), (2, 5, 2)],
    ),
    "picture": (
        C.input_variable((3, FREE, FREE)),
        C.layers.Sequential([C.layers.Convolution((3, 3), 2, pad=True), C.layers.GlobalAveragePooling()]),
        [(2, 3, 4, 5), (1, 3, 6, 6)],
    ),
    "unit matrix": (C.input_variable((FREE, FREE)), lambda x: C.eye_like(x, False), [(1, 3, 2), (2, 4, 4)]),
    "unit matrix of a batch": (
        C.input_variable(3),
        lambda x: C.eye_like(C.unpack_batch(x), False),
        [(4, 3), (2, 3)],
    ),
    "largest": (C.input_variable(FREE), lambda x: C.argmax(x, 0) + C.reduce_mean(x), [(1, 3), (2, 5)]),
    "one axis": (C.input_variable((2, FREE)), lambda x: C.reshape(x, (-1,)), [(1, 2, 3), (2, 2, 5)]),
    "padded": (C.input_variable(FREE), lambda x: C.pad(x, [(1, 1)]), [(1, 3), (2, 5)]),
}


@pytest.mark.parametrize("name", SAVED)
@pytest.mark.sampled
def test_a_model_file_keeps_free_sizes(name: str, tmp_path: Path) -> None:
    x, make, shapes = SAVED[name]
    z = make(x)
    z.save(tmp_path / "m")
    loaded = C.load_model(tmp_path / "m")
    again = loaded.clone("clone")
    again.save(tmp_path / "n")
    twice = C.load_model(tmp_path / "n")
    for shape in (*shapes, shapes[0]):
        data = RANDOM.normal(size=shape).astype(np.float32)
        for copy in (loaded, again, twice):
            np.testing.assert_allclose(copy.eval(data), z.eval({x: data}), rtol=1e-5)
    assert loaded.arguments[0].shape == x.shape and loaded.shape == z.shape


def test_a_model_file_keeps_unpacked_steps_and_is_trained(tmp_path: Path) -> None:
    x = C.sequence.input_variable(2)
    z = C.reduce_sum(C.times(C.sequence.unpack(x, 0, True), C.parameter((2, 3), init=0.5)))
    z.save(tmp_path / "m")
    loaded = C.load_model(tmp_path / "m")
    for data in (SEQUENCES, LONGER):
        values = [sequence.astype(np.float32) for sequence in data]
        np.testing.assert_allclose(loaded.eval(values), z.eval({x: values}), rtol=1e-5)
        (found,), (expected,) = loaded.parameters, z.parameters
        np.testing.assert_allclose(
            loaded.grad({loaded.arguments[0]: values}, [found]), z.grad({x: values}, [expected]), rtol=1e-5
        )


def test_what_depends_on_sizes_in_another_way_is_not_saved(tmp_path: Path) -> None:
    x = C.input_variable((1, FREE, FREE))
    z = C.layers.Sequential([C.layers.MaxPooling(2, 2), C.layers.GlobalAveragePooling()])(x)
    with pytest.raises(UserError, match=r"'kernelShape' of .* depends on the sizes of the data"):
        z.save(tmp_path / "m")
    z.clone("share", {x: C.input_variable((1, 4, 4))}).save(tmp_path / "m")
    assert C.load_model(tmp_path / "m").eval(np.ones((1, 1, 4, 4))).shape == (1, 1, 1, 1)


def test_a_model_of_free_sizes_is_applied_to_other_inputs(tmp_path: Path) -> None:
    x = C.input_variable((FREE, FREE))
    (C.eye_like(x, False) + C.reduce_sum(x)).save(tmp_path / "m")
    loaded = C.load_model(tmp_path / "m")
    data = np.zeros((1, 2, 3), np.float32)
    fixed, free = C.input_variable((2, 3)), C.input_variable((2, FREE))
    for other in (fixed, free):
        np.testing.assert_array_equal(loaded(other).eval({other: data}), np.eye(2, 3)[None])
    np.testing.assert_array_equal(loaded(fixed + 0).eval({fixed: data}), np.eye(2, 3)[None])
    with pytest.raises(UserError, match="applied to a function whose sizes only data say"):
        loaded(free + 0)


@pytest.mark.parametrize("wrong", [{"factor": 10**9}, {"of": [["nobody", 0]]}, {"of": 3}])
def test_free_sizes_of_a_damaged_file_are_refused(wrong: dict[str, Any], tmp_path: Path) -> None:
    network = sized_with_marks((C.eye_like(C.unpack_batch(C.input_variable(2)), False) * 1).roots).network
    (node,) = [node for node in network.nodes.values() if node.written.free and "kind" in node.written.free]
    size = next(size for size in node.written.free["options"]["shape"] if isinstance(size, dict))
    size |= wrong
    save_model(tmp_path / "m", network)
    with pytest.raises(UserError, match=r"the free sizes of '.*' in the model file cannot be read"):
        C.load_model(tmp_path / "m")


# ---------------------------------------------------------------------------------------------------------- training


class Summed:
    """z = sum over the steps of tanh(x w), of sequences that are unpacked, or of arrays that are padded to `steps`."""

    def __init__(self, steps: int | None = None, rate: float = 0.05, dtype: Any = np.float32) -> None:
        self.y = C.input_variable(3, dtype)
        self.x = C.sequence.input_variable(2, dtype) if steps is None else C.input_variable((steps, 2), dtype)
        self.steps = steps
        self.w = C.parameter(init=np.full((2, 3), 0.1, dtype))
        rows = C.sequence.unpack(self.x, 0, True) if steps is None else self.x
        self.z = C.reduce_sum(C.tanh(C.times(rows, self.w)), axis=0, keepdims=False)
        self.loss = C.reduce_sum(C.square(self.z - self.y))
        self.trainer = C.Trainer(self.z, (self.loss, self.loss), [C.adam([self.w], rate, 0.9)])

    def data(self, sequences: Any, targets: Any) -> dict[Any, Any]:
        """A minibatch."""
        if self.steps is None:
            return {self.x: sequences, self.y: targets}
        rows = np.zeros((len(sequences), self.steps, 2))
        found = padded(sequences, 0)[0]
        rows[:, : found.shape[1]] = found
        return {self.x: rows, self.y: targets}


def minibatches(count: int, longest: int = 4) -> list[Any]:
    """Of sequences of several lengths, with their targets."""
    random = np.random.default_rng(count)
    found = []
    for at in range(count):
        lengths = [1 + (at * 5 + k) % (1 + at % longest) for k in range(4)]
        rows = [random.normal(size=(n, 2)).astype(np.float32) for n in lengths]
        found.append((rows, random.normal(size=(4, 3)).astype(np.float32)))
    return found


@PRECISIONS
def test_training_goes_on_from_size_to_size(dtype: Any) -> None:
    """The rule's state too: the same as one network of arrays that are padded."""
    free, fixed = Summed(dtype=dtype), Summed(4, dtype=dtype)
    assert free.w.value.dtype == dtype
    close = 1e-5 if dtype == np.float32 else 1e-10
    sizes = set()
    for sequences, targets in minibatches(9):
        sizes.add(max(map(len, sequences)))
        for one in (free, fixed):
            one.trainer.train_minibatch(one.data(sequences, targets))
        assert free.trainer.previous_minibatch_loss_average == pytest.approx(
            fixed.trainer.previous_minibatch_loss_average, rel=close
        )
    assert len(sizes) > 2
    np.testing.assert_allclose(free.w.value, fixed.w.value, rtol=close)
    assert not np.allclose(free.w.value, 0.1)
    assert free.trainer.total_number_of_samples_seen == 36
    given = free.data(SEQUENCES, np.ones((3, 3)))
    assert free.trainer.test_minibatch(given) == pytest.approx(
        fixed.trainer.test_minibatch(fixed.data(SEQUENCES, np.ones((3, 3)))), rel=close
    )
    np.testing.assert_allclose(free.z.eval(given), fixed.z.eval(fixed.data(SEQUENCES, np.ones((3, 3)))), rtol=close)


@pytest.mark.thorough
def test_tests_of_other_sizes_between_minibatches_change_nothing() -> None:
    one, other = Summed(), Summed()
    for sequences, targets in minibatches(4):
        one.trainer.train_minibatch(one.data(sequences, targets))
        other.trainer.train_minibatch(other.data(sequences, targets))
        other.trainer.test_minibatch(other.data(LONGER, np.ones((2, 3))))
        _ = other.z.eval({other.x: SEQUENCES})
    np.testing.assert_array_equal(one.w.value, other.w.value)


def test_a_parameter_that_is_set_counts_in_every_size() -> None:
    one = Summed(rate=0.0)
    small, large = ([np.ones((n, 2), np.float32)] for n in (1, 2))
    for sequences in (small, large, small):
        one.trainer.train_minibatch(one.data(sequences, np.zeros((1, 3))))
    one.w.value = np.full((2, 3), 0.5)
    for sequences, steps in ((large, 2), (small, 1)):
        one.trainer.train_minibatch(one.data(sequences, np.zeros((1, 3))))
        expected = 3 * np.square(steps * np.tanh(1.0))
        assert one.trainer.previous_minibatch_loss_average == pytest.approx(expected, rel=1e-5)
        np.testing.assert_array_equal(one.w.value, np.full((2, 3), 0.5))


def test_a_checkpoint_resumes_bit_for_bit_in_any_size(tmp_path: Path) -> None:
    data = minibatches(7)
    whole = Summed()
    for number, given in enumerate(data):
        whole.trainer.train_minibatch(whole.data(*given))
        if number == 3:
            whole.trainer.save_checkpoint(tmp_path / "m", {"number": number})
    again = Summed()
    assert again.trainer.restore_from_checkpoint(tmp_path / "m") == {"number": 3}
    for given in data[4:]:
        again.trainer.train_minibatch(again.data(*given))
    np.testing.assert_array_equal(again.w.value, whole.w.value)
    assert again.trainer.total_number_of_updates == whole.trainer.total_number_of_updates == 7
    with pytest.raises(UserError, match="sizes of another network"):
        Summed(4).trainer.save_checkpoint(tmp_path / "fixed")
        again.trainer.restore_from_checkpoint(tmp_path / "fixed")


def test_outputs_of_a_training_step() -> None:
    one = Summed()
    for sequences, targets in minibatches(4):
        before = one.w.value
        done, found = one.trainer.train_minibatch(one.data(sequences, targets), outputs=[one.z])
        assert done
        rows = padded(sequences, 0)[0]
        np.testing.assert_allclose(found[one.z], np.tanh(rows @ before).sum(axis=1), rtol=1e-4, atol=1e-6)


def test_running_statistics_are_those_of_all_sizes() -> None:
    """Batch normalisation between: the same as after the same minibatches of a network for each."""
    x, y = C.input_variable((2, C.FreeDimension)), C.input_variable(2)
    z = C.reduce_sum(C.layers.BatchNormalization(map_rank=1, normalization_time_constant=0)(x), axis=1, keepdims=False)
    loss = C.reduce_sum(C.square(z - y))
    trainer = C.Trainer(z, (loss, loss), [C.sgd(z.parameters, 0.0)])
    mean = next(one for one in z.constants if "mean" in one.name.lower())
    random = np.random.default_rng(1)
    for size in (2, 3, 2):
        data = random.normal(size=(4, 2, size)).astype(np.float32)
        trainer.train_minibatch({x: data, y: np.zeros((4, 2))})
        np.testing.assert_allclose(mean.value.ravel(), data.mean(axis=(0, 2)), rtol=1e-4, atol=1e-6)


@pytest.mark.thorough
def test_train_and_test_of_functions_in_one_call() -> None:
    one = Summed()
    (sequences, targets), *_ = minibatches(1)
    rows = [np.ones((n, 2), np.float32) for n in (1, 2, 3, 2, 1, 1, 1, 1)]
    data = (rows, np.tile(targets, (2, 1)))
    order = {"y": one.y, "x": one.x}
    given = tuple(data[1] if function == order["y"] else data[0] for function in one.loss.arguments)
    before = one.loss.test(given, minibatch_size=4).loss
    done = one.loss.train(given, parameter_learners=[C.sgd([one.w], 0.01)], minibatch_size=4, max_epochs=3)
    assert done.updates > 3
    assert one.loss.test(given, minibatch_size=4).loss < before
    assert len(sequences) == 4


def test_shapes_are_known_where_no_size_counts(tmp_path: Path) -> None:
    x, lengths = C.input_variable((C.FreeDimension, 2)), C.input_variable(())
    state = C.sequence.last(C.layers.Recurrence(C.layers.GRU(3))(C.to_sequence(x, lengths)))
    assert (state.shape, len(state.dynamic_axes)) == ((3,), 1)
    pooled = C.reduce_max(x, axis=0)
    assert pooled.shape == (1, 2)
    assert (x * 2).shape == (C.FreeDimension, 2)
    assert C.transpose(x, (1, 0)).shape == (2, C.FreeDimension)
    np.testing.assert_array_equal((x * 2)[1:].eval(np.ones((1, 3, 2))), np.full((1, 2, 2), 2))
    C.logging.graph.plot(x * 2, str(tmp_path / "x.dot"))
    data, counts = np.ones((2, 5, 2)), [3.0, 5.0]
    assert state.eval({x: data, lengths: counts}).shape == (2, 3)
    steps = C.layers.Recurrence(C.layers.GRU(3))(C.to_sequence(x, lengths))
    assert C.sequence.unpack(steps, 0, True).eval({x: data, lengths: [3.0, 4.0]}).shape == (2, 4, 3)


@pytest.mark.parametrize("how", ["clone", "share", "freeze"])
def test_copies_and_placeholders(how: str) -> None:
    p, x = C.placeholder(), C.sequence.input_variable(2)
    z = C.layers.Dense(3, map_rank=1, init=1.0)(C.sequence.unpack(p, 0, True))
    copy = z(x).clone(how)
    for data in (SEQUENCES, LONGER):
        expected = padded(data, 0)[0].sum(axis=2, keepdims=True) * np.ones(3)
        np.testing.assert_allclose(copy.eval({x: data}), expected, rtol=1e-4, atol=1e-6)
    assert len(copy.parameters) == (0 if how == "freeze" else 2)
    assert copy.arguments == (x,)


@pytest.mark.thorough
def test_random_numbers_go_on_from_size_to_size() -> None:
    """They are those of a function without free sizes."""
    x, y = C.input_variable((C.FreeDimension,)), C.input_variable(3)

    def functions(given: Any) -> tuple[Any, Any]:
        zero = C.reduce_sum(given, axis=0, keepdims=False) * 0
        noise = C.random.uniform_like(y, seed=5) + zero
        return noise, C.dropout(y + zero, 0.5, seed=7)

    free, fixed = functions(x), functions(C.constant([0.0, 0.0]))
    for size in (2, 3, 2, 1):
        data = {x: np.ones((4, size)), y: np.ones((4, 3))}
        np.testing.assert_array_equal(free[0].eval(data), fixed[0].eval({y: data[y]}))
        _, found = free[1].forward(data, keep_for_backward=free[1].outputs)
        _, expected = fixed[1].forward({y: data[y]}, keep_for_backward=fixed[1].outputs)
        np.testing.assert_array_equal(found[free[1].output], expected[fixed[1].output])
        assert 0 < np.count_nonzero(found[free[1].output]) < 12


@pytest.mark.thorough
def test_training_on_steps_that_are_kept() -> None:
    """Their lengths are computed before the minibatch is trained on."""
    x, w = C.sequence.input_variable(2), C.parameter(init=np.ones((2, 1), np.float32))
    kept = C.sequence.gather(x, C.greater(C.slice(x, 0, 0, 1), 0))
    mean = C.reduce_mean(C.times(C.sequence.unpack(kept, 0, True), w), axis=0, keepdims=False)
    loss = C.reduce_sum(C.square(mean))
    trainer = C.Trainer(None, (loss, loss), [C.sgd([w], 0.0)])
    for data in ([[[1, 2], [-1, 3], [2, 4]], [[1, 1]]], [[[1, 2], [-1, 3]], [[-1, 1], [3, 3]]]):
        rows = [np.array(one, np.float32) for one in data]
        expected = np.square(padded([one[one[:, 0] > 0] for one in rows], 0)[0].sum(axis=2).mean(axis=1)).mean()
        trainer.train_minibatch({x: rows})
        assert trainer.previous_minibatch_loss_average == pytest.approx(expected, rel=1e-5)
        assert trainer.test_minibatch({x: rows}) == pytest.approx(expected, rel=1e-5)


def test_data_of_a_source_and_values_have_free_axes(tmp_path: Path) -> None:
    """A stream of a reader says how many elements there are: enough for one free axis."""
    x, y = C.input_variable((C.FreeDimension, 2)), C.input_variable(1)
    w = C.parameter(init=np.ones((2, 1), np.float32))
    loss = C.reduce_sum(C.square(C.reduce_sum(C.times(x, w), axis=0, keepdims=False) - y))
    (tmp_path / "data.ctf").write_text("|x 1 2 3 4 5 6 |y 1\n|x 0 0 1 0 0 1 |y 2\n")
    streams = {name: C.io.StreamDef(name, shape=size) for name, size in {"x": 6, "y": 1}.items()}
    source = C.io.MinibatchSource(
        C.io.CTFDeserializer(str(tmp_path / "data.ctf"), C.io.StreamDefs(**streams)), randomize=False, max_sweeps=1
    )
    inputs = {x: source.streams.x, y: source.streams.y}
    trainer = C.Trainer(None, (loss, loss), [C.sgd([w], 0.0)])
    trainer.train_minibatch(source.next_minibatch(2, inputs))
    assert trainer.previous_minibatch_loss_average == pytest.approx((20**2 + 0) / 2)
    data = np.arange(12.0).reshape(2, 3, 2)
    value = C.Value.create(x, data)
    assert value.shape == (2, 3, 2)
    np.testing.assert_array_equal((x * 1).eval({x: value}), data)
    done = loss.train(
        (data.astype(np.float32), np.ones((2, 1), np.float32)), parameter_learners=[C.sgd([w], 0.0)], minibatch_size=2
    )
    assert done.epoch_summaries[0].loss == pytest.approx(np.square(data.sum(axis=(1, 2)) - 1).mean())


@pytest.mark.thorough
def test_more_sizes_than_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cntkpy.trainers.fronts.cntk2.sized.MAX_SIZES", 2)
    free, fixed = Summed(), Summed(4)
    for sequences, targets in minibatches(9):
        free.trainer.test_minibatch(free.data(LONGER, np.ones((2, 3))))
        for one in (free, fixed):
            one.trainer.train_minibatch(one.data(sequences, targets))
    np.testing.assert_allclose(free.w.value, fixed.w.value, rtol=1e-5)


def test_several_workers_do_not_train_several_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    from cntkpy.trainers.fronts.cntk2.workers import Workers

    monkeypatch.setattr(Workers, "size", 2)
    with pytest.raises(UserError, match="several workers train one network"):
        Summed()


def test_a_placeholder_with_a_free_axis() -> None:
    p, x = C.placeholder((C.FreeDimension, 2)), C.input_variable((C.FreeDimension, 2))
    z = C.reduce_sum(p, axis=0)(x)
    np.testing.assert_array_equal(z.eval(np.ones((1, 3, 2))), [[[3, 3]]])


def decoded(keys: Any, queries: Any, w: np.ndarray, u: np.ndarray) -> list[np.ndarray]:
    """The states h' = tanh(c u + y), where c is the mean of the keys by how well they go with (h + y) w."""
    found = []
    for one, query in zip(keys, queries, strict=True):
        state, states = np.zeros(3), []
        for row in query:
            scores = one @ ((state + row) @ w)
            weights = np.exp(scores - scores.max())
            state = np.tanh(weights / weights.sum() @ one @ u + row)
            states.append(state)
        found.append(np.array(states))
    return found


@pytest.mark.thorough
def test_attention_inside_of_a_recurrence() -> None:
    x = C.sequence.input_variable(2, np.float64, sequence_axis=C.Axis("keys"))
    y = C.sequence.input_variable(3, np.float64, sequence_axis=C.Axis("queries"))
    start, back = RANDOM.normal(size=(3, 2)), RANDOM.normal(size=(2, 3))
    w, u = C.parameter(init=start, dtype=np.float64), C.parameter(init=back, dtype=np.float64)
    values, mask = C.sequence.unpack(x, 0).outputs
    keys, known = C.sequence.broadcast_as(values, y), C.sequence.broadcast_as(mask, y)

    @C.Function
    def step(state: Any, row: Any) -> Any:
        scores = C.reduce_sum(keys * C.times(state + row, w), axis=1)
        weights = C.softmax(C.element_select(C.reshape(known, (-1, 1)), scores, -1e30), axis=0)
        return C.tanh(C.times(C.reduce_sum(weights * keys, axis=0, keepdims=False), u) + row)

    z = C.layers.Recurrence(step)(y)
    assert (z.shape, len(z.parameters)) == ((3,), 2)
    queries = [RANDOM.normal(size=(n, 3)) for n in (2, 1, 3)]
    for data, asked in ((SEQUENCES, queries), (LONGER, queries[:2])):
        given = {x: data, y: asked}
        for found, expected in zip(z.eval(given), decoded(data, asked, start, back), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-10)
        gradient = C.reduce_sum(C.square(z)).grad(given, wrt=[w])

        def total(one: np.ndarray, data: Any = data, asked: Any = asked) -> float:
            return sum(np.square(part).sum() for part in decoded(data, asked, one, back))

        np.testing.assert_allclose(gradient, differences(total, start), rtol=1e-5, atol=1e-7)


def test_an_input_may_have_a_size_to_be_inferred() -> None:
    """P21: the data say it, as of a free dimension."""
    x = C.input_variable((C.InferredDimension, 2))
    assert x.shape == (-1, 2) and C.input_variable((C.FreeDimension, 2)).shape == (-3, 2)
    for rows in (3, 4):
        data = np.arange(2 * rows, dtype=np.float32).reshape(1, rows, 2)
        np.testing.assert_array_equal((x * 2).eval({x: data}), 2 * data)
        np.testing.assert_array_equal(x[0].eval({x: data}), data[:, :1])


def test_the_shape_of_an_unfinished_step_over_free_steps() -> None:
    """A program asks for it while it writes the recurrence; its size does not depend on the number of steps."""
    x = C.input_variable((C.FreeDimension, 2))
    steps = C.to_sequence(x)
    state = C.placeholder(dynamic_axes=steps.dynamic_axes)
    start = C.times(C.sequence.last(steps), C.constant(np.zeros((2, 3), np.float32)))
    before = C.sequence.past_value(state, start)
    w, u = RANDOM.normal(size=(2, 3)).astype("f"), RANDOM.normal(size=(3, 3)).astype("f")
    step = C.times(steps, C.constant(w)) + C.times(before, C.constant(u))
    assert (steps.shape, step.shape) == ((2,), (3,))
    unpacked = C.sequence.unpack(C.sequence.input_variable(2), 0, no_mask_output=True)
    assert C.to_sequence(unpacked).shape == (2,)
    last = C.sequence.last(step.replace_placeholders({state: step.output}))
    for n in (1, 4):
        data, value = RANDOM.normal(size=(2, n, 2)).astype("f"), np.zeros((2, 3))
        for index in range(n):
            value = data[:, index] @ w + value @ u
        same(last.eval({x: data}), value, np.float32)


def test_a_shape_with_free_sizes_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes are tried in the whole network below, so that a deep network asks for each shape once."""
    x = C.input_variable((3, C.FreeDimension, C.FreeDimension))
    pictures = C.layers.Convolution2D((3, 3), 8, pad=True)(x)
    waiting = C.placeholder()
    both = pictures + waiting
    assert pictures.shape == (8, -3, -3)
    with pytest.raises(UserError, match="the shape is not known"):
        _ = both.shape
    real, tried = function_module.free_shape, []
    monkeypatch.setattr(function_module, "free_shape", lambda root: tried.append(root) or real(root))
    assert (pictures.shape, pictures.output.shape, tried) == ((8, -3, -3), (8, -3, -3), [])
    both.replace_placeholders({waiting: C.input_variable((8, 1, C.FreeDimension))})
    assert (both.shape, len(tried)) == ((8, -3, -3), 1)
