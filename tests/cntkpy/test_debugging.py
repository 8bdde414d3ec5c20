"""cntk.debugging and cntk.misc: models that stop after each part, times of nodes, models with other parts."""

import io
import re

import numpy as np
import pytest

import cntkpy.compat.cntk as C
from cntkpy.cntk_config import UserError
from cntkpy.compat.cntk.debugging import debug_model, dump_function, dump_signature, set_node_timing
from cntkpy.compat.cntk.misc.converter import convert
from cntkpy.compat.cntk.misc.optimized_rnnstack_converter import convert_optimized_rnnstack
from cntkpy.readers.errors import ArgumentError

RANDOM = np.random.default_rng(2)
SEQUENCES = [RANDOM.normal(size=(steps, 3)).astype(np.float32) for steps in (2, 3)]
LABELS = RANDOM.normal(size=(2, 2)).astype(np.float32)


def classifier():
    x = C.sequence.input_variable(3, name="x")
    states = C.layers.Recurrence(C.layers.GRU(4))(x)
    return x, C.layers.Dense(2, activation=C.tanh)(C.sequence.last(states))


# ------------------------------------------------------------------------------------------------ parts that stop


def stops(out: io.StringIO) -> list[str]:
    return re.findall(r"^(forward|backward) of (.*)$", out.getvalue(), re.MULTILINE)


def test_a_model_stops_after_each_part() -> None:
    x = C.input_variable(2, name="x")
    z = C.tanh(C.exp(x) + 1, name="z")
    data = np.array([[0.5, -1]], np.float32)
    out = io.StringIO()
    debugged = debug_model(z, io.StringIO("p\nn\nwhat\nn\np\nn\n"), out)
    found = debugged.eval({debugged.arguments[0]: data})
    assert np.allclose(found, np.tanh(np.exp(data) + 1), rtol=1e-6)
    assert [part for _, part in stops(out)] == ["Exp (2,)", "Plus (2,)", "Tanh('z') (2,)"]
    text = out.getvalue()
    assert f"{found}" in text
    printed = re.findall(r">>> \[\[(.*) +(.*)\]\]", text)
    assert np.allclose(np.array(printed, float), [np.exp(data)[0], found[0]], rtol=1e-6)
    assert "'what' is not a command. There are:\n    n - execute the next part" in text
    assert np.allclose(z.eval(data), found, rtol=1e-6)


def test_commands_go_on() -> None:
    x = C.input_variable(1)
    z = x
    for _ in range(5):
        z = C.exp(-z)
    counts = {"n 3\nc\n": 2, "n 100\n": 1, "c\n": 1, "": 1, "n\nn\n": 3}
    for commands, count in counts.items():
        out = io.StringIO()
        debug_model(z, io.StringIO(commands), out).eval(np.ones((1, 1), np.float32))
        assert len(stops(out)) == count, commands


def test_a_model_stops_in_training_before_gradients_go_on() -> None:
    x, z = classifier()
    y = C.input_variable(2)
    loss = C.squared_error(z, y)
    out = io.StringIO()
    debugged = debug_model(loss, io.StringIO("n b\np\nn\np\nc\n"), out)
    trainer = C.Trainer(None, debugged, C.sgd(z.parameters, C.learning_parameter_schedule(0.1)))
    state, values = loss.forward({x: SEQUENCES, y: LABELS}, keep_for_backward=[loss])
    wanted = loss.backward(state, {loss: np.ones(2)}, z.parameters)
    before = {one: one.value for one in z.parameters}
    value = z.eval({x: SEQUENCES})
    trainer.train_minibatch({x: SEQUENCES, y: LABELS})
    assert np.isclose(trainer.previous_minibatch_loss_average * 2, sum(values.values()).sum(), rtol=1e-5)
    for one, gradient in wanted.items():
        assert np.allclose(one.value, before[one] - 0.1 * gradient / 2, atol=1e-5)
    assert [phase for phase, _ in stops(out)] == ["forward", "backward", "backward"]
    assert f"{2 * (value - LABELS)}"[:8] in out.getvalue()


def test_a_model_is_left() -> None:
    x = C.input_variable(1)
    debugged = debug_model(C.exp(C.sin(x)), io.StringIO("q\n"), io.StringIO())
    with pytest.raises(SystemExit):
        debugged.eval({x: np.ones((1, 1), np.float32)})
    left = []
    debugged = debug_model(C.exp(C.sin(x)), io.StringIO("q\n"), out := io.StringIO(), lambda: left.append(1))
    assert debugged.eval({x: np.ones((1, 1), np.float32)}).shape == (1, 1)
    assert left == [1] and len(stops(out)) == 1


def test_steps_and_their_choices_are_not_stopped_at() -> None:
    x, z = classifier()
    out = io.StringIO()
    found = debug_model(z, io.StringIO("n\n" * 20), out).eval({x: SEQUENCES})
    assert np.allclose(found, z.eval({x: SEQUENCES}))
    names = [part.partition(" ")[0].partition("(")[0] for _, part in stops(out)]
    assert {"Times", "Plus", "Sequence::Last"} <= set(names) and "Dense" in names[-1]
    assert not {"PastValue", "Where", "PackedIndex"} & set(names)


def test_models_of_several_sequence_axes_stop() -> None:
    x = C.sequence.input_variable(3, sequence_axis=C.Axis("a"))
    q = C.sequence.input_variable(3)
    z = C.splice(q, C.sequence.broadcast_as(C.sequence.last(C.tanh(x)), q)) * C.parameter(6, init=1)
    data = {x: SEQUENCES, q: [one[:1] for one in SEQUENCES]}
    debugged = debug_model(z, io.StringIO("n\n" * 20), out := io.StringIO())
    for one, other in zip(debugged.eval(data), z.eval(data), strict=True):
        assert np.allclose(one, other)
    assert len(stops(out)) >= 3


def test_functions_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    _, z = classifier()
    dump_signature(z, tag="model")
    dump_signature(C.input_variable((2, 3), is_sparse=True, name="s") * 1)
    dump_function(C.exp(C.input_variable(2, name="y") * C.parameter(2, name="w")))
    text = capsys.readouterr().out
    assert text.splitlines()[0] == "model(x: Sequence[Tensor[3]]) -> Tensor[2]"
    assert text.splitlines()[1] == "Function(s: SparseTensor[2, 3]) -> Tensor[2, 3]"
    hole = C.placeholder(name="later")
    dump_signature(C.layers.Dense(3)(hole), "open")
    assert capsys.readouterr().out == "open(later: Sequence[tensor]) -> Sequence[tensor]\n"
    assert str(z) == "Composite(x: Sequence[Tensor[3]]) -> Tensor[2]"
    assert str(C.combine([z, 2 * z])) == "Composite(x: Sequence[Tensor[3]]) -> Tuple[Tensor[2], Tensor[2]]"
    assert (str(z.arguments[0]), str(hole)) == (
        "Input('x', [#, *], [3])",
        "Placeholder('later', [???], [???])",
    )
    assert "Function(y: Tensor[2]) -> Tensor[2]" in text and "Parameter('w', [], [2])\n" in text and "-> (2,)" in text


# ------------------------------------------------------------------------------------------------ times of nodes


@pytest.fixture
def _timed():
    set_node_timing(True)
    yield
    set_node_timing(False)


def rows(text: str) -> dict[str, tuple[float, float]]:
    """By operation, the largest forward and backward time of a table."""
    found: dict[str, tuple[float, float]] = {}
    for line in text.splitlines()[2:]:
        forward, backward, _, operation, *_ = line.split()
        before = found.get(operation, (0.0, 0.0))
        found[operation] = max(before[0], float(forward)), max(before[1], float(backward))
    return found


@pytest.mark.thorough
def test_each_node_is_measured(_timed, capsys: pytest.CaptureFixture[str]) -> None:
    x, z = classifier()
    with pytest.raises(ArgumentError, match=r"no minibatch was kept.*\n.*set_node_timing\(True\)"):
        z.print_node_timing()
    z.eval({x: SEQUENCES})
    z.print_node_timing()
    text = capsys.readouterr().out
    assert re.match(r"\S.*, a minibatch of 5 samples: \d+\.\d+ ms for \d+ nodes, each compiled and run alone\n", text)
    found = rows(text)
    assert {"Loop", "Tanh", "Times"} <= set(found)
    assert all(forward > 0 and backward == 0 for forward, backward in found.values())
    shares = [float(one) for one in re.findall(r"(\d+\.\d)%", text)]
    assert shares == sorted(shares, reverse=True) and abs(sum(shares) - 100) < 2


def test_the_slow_node_is_found(_timed, capsys: pytest.CaptureFixture[str]) -> None:
    x = C.input_variable(600)
    z = C.times(C.sin(x), C.parameter((600, 1200), init=0.1))
    z.eval(np.ones((300, 600), np.float32))
    z.print_node_timing()
    found = rows(capsys.readouterr().out)
    assert found["Times"][0] > 2 * found["Sin"][0]


@pytest.mark.thorough
def test_trainers_and_tests_are_measured(_timed, capsys: pytest.CaptureFixture[str]) -> None:
    x, z = classifier()
    y = C.input_variable(2)
    loss = C.squared_error(z, y)
    data = {x: SEQUENCES, y: LABELS}
    trainer = C.Trainer(z, loss, C.sgd(z.parameters, 0.1))
    trainer.train_minibatch(data)
    trainer.print_node_timing()
    found = rows(capsys.readouterr().out)
    assert found["Loop"][1] > 0 and found["SquareError"][0] > 0
    before = [one.value for one in z.parameters]
    trainer.print_node_timing()
    assert all(np.array_equal(one.value, value) for one, value in zip(z.parameters, before, strict=True))
    capsys.readouterr()
    tester = C.Evaluator(loss)
    tester.test_minibatch(data)
    tester.print_node_timing()
    assert rows(capsys.readouterr().out)["Loop"][1] == 0
    state, _ = loss.forward(data, keep_for_backward=[loss])
    assert state is not None
    loss.print_node_timing()
    assert rows(capsys.readouterr().out)["Loop"][1] > 0


def test_nothing_is_kept_without_timing() -> None:
    x, z = classifier()
    z.eval({x: SEQUENCES})
    with pytest.raises(ArgumentError, match="no minibatch was kept"):
        z.print_node_timing()


# ------------------------------------------------------------------------------------------------ converters


def test_parts_are_converted_inputs_first() -> None:
    x = C.input_variable(2)
    w = C.parameter(2, init=np.array([1.0, 2.0], np.float32))
    f = C.sin(C.cos(w * x) + C.cos(2 * x))
    seen = []

    def exponential(part):
        seen.append(part.op_name)
        return C.exp(part.inputs[0])

    g = convert(f, lambda part: part.op_name in ("Cos", "Sin"), exponential)
    data = np.array([[0.5, -0.2]], np.float32)
    assert seen[-1] == "Sin" and sorted(seen) == ["Cos", "Cos", "Sin"]
    assert np.allclose(g.eval(data), np.exp(np.exp(w.value * data) + np.exp(2 * data)), rtol=1e-5)
    assert np.allclose(f.eval(data), np.sin(np.cos(w.value * data) + np.cos(2 * data)), rtol=1e-5)
    (copied,) = g.parameters
    assert copied != w and np.array_equal(copied.value, w.value)
    assert np.allclose(convert(f, lambda part: False, exponential).eval(data), f.eval(data))


def test_what_takes_a_place_has_to_fit() -> None:
    x = C.input_variable(2)
    with pytest.raises(UserError, match="gives 3, not a function"):
        convert(C.sin(x), lambda part: True, lambda part: 3)  # pyright: ignore
    with pytest.raises(UserError, match=r"has the shape \(2,\), what takes its place \(\)"):
        convert(C.sin(x), lambda part: True, lambda part: C.reduce_sum(part, keepdims=False))


@pytest.mark.parametrize("dtype", [np.float32, pytest.param(np.float64, marks=pytest.mark.thorough)])
@pytest.mark.parametrize(
    "unit", ["lstm", *(pytest.param(one, marks=pytest.mark.thorough) for one in ("gru", "rnnTanh", "rnnReLU"))]
)
def test_a_stack_becomes_recurrences(unit: str, dtype) -> None:
    x = C.sequence.input_variable(3, dtype=dtype)
    weights = C.parameter((C.InferredDimension, 4), init=C.glorot_uniform(), dtype=dtype)
    z = C.layers.Dense(2)(C.optimized_rnnstack(x, weights, 4, 2, True, unit))
    data = [one.astype(dtype) for one in SEQUENCES]
    converted = convert_optimized_rnnstack(z)
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    for one, other in zip(z.eval({x: data}), converted.eval({x: data}), strict=True):
        assert np.allclose(one, other, atol=tolerance)
    assert weights not in converted.parameters
    (gradient, wanted) = (f.grad({x: data}, wrt=[x]) for f in (converted, z))
    for one, other in zip(gradient, wanted, strict=True):
        assert np.allclose(one, other, atol=10 * tolerance)
    with pytest.raises(UserError, match="the model has no optimized_rnnstack"):
        convert_optimized_rnnstack(converted)


def test_a_stack_of_one_direction_becomes_one_recurrence() -> None:
    x = C.sequence.input_variable(3)
    z = C.optimized_rnnstack(x, C.parameter((-1, 4), init=C.glorot_uniform()), 4, 1)
    converted = convert_optimized_rnnstack(z)
    assert [one.shape for one in converted.parameters].count((4, 4)) == 4
    for one, other in zip(z.eval(SEQUENCES), converted.eval(SEQUENCES), strict=True):
        assert np.allclose(one, other, atol=1e-6)


def test_a_trainer_prints_the_times_of_its_last_test(capsys: pytest.CaptureFixture[str]) -> None:
    """P18: `test_minibatch` alone, with the switch on before."""
    x = C.input_variable(2)
    z = C.layers.Dense(1)(x)
    trainer = C.Trainer(z, (C.reduce_sum(z), C.reduce_max(z)), [C.sgd(z.parameters, 0.1)])
    C.debugging.set_node_timing(True)
    try:
        trainer.test_minibatch({x: np.ones((4, 2), np.float32)})
    finally:
        C.debugging.set_node_timing(False)
    trainer.print_node_timing()
    assert "a minibatch of 4 samples" in capsys.readouterr().out


def test_a_debugged_model_stops_while_it_is_trained() -> None:
    x, y = C.input_variable(2), C.input_variable(2)
    out = io.StringIO()
    z = debug_model(C.layers.Dense(2, activation=C.tanh)(x), io.StringIO("n\n" * 8), out)
    trainer = C.Trainer(z, C.squared_error(z, y), [C.sgd(z.parameters, 0.1)])
    trainer.train_minibatch({x: np.ones((1, 2), np.float32), y: np.ones((1, 2), np.float32)})
    phases = [phase for phase, _ in stops(out)]  # nobody has asked for a result
    assert phases == ["forward"] * 3 + ["backward"] * 3


def test_an_error_of_python_code_comes_from_its_minibatch() -> None:
    class Failing(C.ops.functions.UserFunction):
        def infer_outputs(self):
            return [C.output_variable(self.inputs[0].shape, self.inputs[0].dtype, self.inputs[0].dynamic_axes)]

        def forward(self, argument, device=None, outputs_to_retain=None):
            raise KeyError("no value")

        def backward(self, state, root_gradients):
            return root_gradients

    x = C.input_variable(2)
    loss = C.reduce_sum(C.user_function(Failing([C.times(x, C.parameter((2, 2)))], name="f")))
    trainer = C.Trainer(None, loss, [C.sgd(loss.parameters, 0.1)])
    with pytest.raises(Exception, match="no value"):
        trainer.train_minibatch({x: np.ones((1, 2), np.float32)})
