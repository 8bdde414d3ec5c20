"""Functions and learners that are Python code: values, gradients, training, models, errors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntkpy.compat.cntk as C
from cntkpy.cntk_config import UserError
from cntkpy.compat.cntk.ops.functions import UserFunction


def _logistic(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


class Logistic(UserFunction):
    """1 / (1 + e^-x); its models keep how steep it is."""

    def __init__(self, arg: Any, steep: float = 1.0, name: str = "Logistic") -> None:
        super().__init__([arg], name=name)
        self.steep = steep
        self.calls: list[str] = []

    def forward(self, argument: Any, device: Any = None, outputs_to_retain: Any = None) -> Any:
        self.calls.append("forward")
        if isinstance(argument, list):
            found = [_logistic(self.steep * one) for one in argument]
        else:
            found = _logistic(self.steep * argument)
        return found, found

    def backward(self, state: Any, root_gradients: Any) -> Any:
        self.calls.append("backward")
        if isinstance(state, list):
            pairs = zip(root_gradients, state, strict=True)
            return [self.steep * gradient * one * (1 - one) for gradient, one in pairs]
        return self.steep * root_gradients * state * (1 - state)

    def infer_outputs(self) -> list[Any]:
        x = self.inputs[0]
        return [C.output_variable(x.shape, x.dtype, x.dynamic_axes)]

    def serialize(self) -> dict[str, Any]:
        return {"steep": np.float32(self.steep), "table": np.arange(3.0), "nested": [{"a": None}, "b"]}

    @staticmethod
    def deserialize(inputs: Sequence[Any], name: str, state: Any) -> Logistic:
        assert state["table"].tolist() == [0, 1, 2] and state["nested"] == [{"a": None}, "b"]
        return Logistic(inputs[0], state["steep"], name)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_and_gradients_of_samples(dtype: Any) -> None:
    x = C.input_variable((2, 3), dtype=dtype)
    data = np.random.default_rng(1).normal(size=(4, 2, 3)).astype(dtype)
    z = C.user_function(Logistic(x, 2.0, name="own"))
    assert (z.shape, z.name, z.dynamic_axes) == ((2, 3), "own", x.dynamic_axes)
    expected = _logistic(2 * data)
    rounding = 1e-6 if dtype == np.float32 else 1e-14
    assert z.eval({x: data}).dtype == dtype
    np.testing.assert_allclose(z.eval({x: data}), expected, rtol=rounding)
    np.testing.assert_allclose(z.grad({x: data}), 2 * expected * (1 - expected), rtol=10 * rounding)


def test_sequences_have_their_own_lengths() -> None:
    x = C.sequence.input_variable(2)
    weights = C.parameter((2, 2), init=np.array([[1, 2], [3, -1]], np.float32))
    own, known = C.user_function(Logistic(C.times(x, weights))), C.sigmoid(C.times(x, weights))
    data = [np.random.default_rng(k).normal(size=(k, 2)).astype(np.float32) for k in (3, 1, 4)]
    for found, expected in zip(own.eval({x: data}), known.eval({x: data}), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    gradients = own.grad({x: data}, wrt=[weights, x]), known.grad({x: data}, wrt=[weights, x])
    np.testing.assert_allclose(gradients[0][weights], gradients[1][weights], rtol=1e-5)
    for found, expected in zip(gradients[0][x], gradients[1][x], strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_parameter_alone_has_no_axis_of_samples() -> None:
    p = C.parameter((2, 2), init=np.array([[1, 2], [3, 4]], np.float32))
    np.testing.assert_allclose(C.user_function(Logistic(p)).eval(), _logistic(p.value), rtol=1e-6)


class ProductAndSum(UserFunction):
    """The product of two operands, and the sum of all elements of their difference."""

    def __init__(self, a: Any, b: Any, name: str = "") -> None:
        super().__init__([a, b], name=name)

    def infer_outputs(self) -> list[Any]:
        a = self.inputs[0]
        axes = a.dynamic_axes
        return [C.output_variable(a.shape, a.dtype, axes, name="product"), C.output_variable((), a.dtype, axes)]

    def forward(self, arguments: Any, outputs: Any, device: Any = None, outputs_to_retain: Any = None) -> Any:
        a, b = arguments
        outputs[self.outputs[0]] = a * b
        outputs[self.outputs[1]] = (a - b).sum(axis=1)
        return a, b

    def backward(self, state: Any, root_gradients: Any, variables: Any) -> None:
        a, b = state
        product, difference = (root_gradients[one] for one in self.outputs)
        if self.inputs[0] in variables:
            variables[self.inputs[0]] = product * b + difference[:, None]
        if self.inputs[1] in variables:
            variables[self.inputs[1]] = product * a - difference[:, None]


def test_several_inputs_and_outputs() -> None:
    a, b = C.input_variable(3, needs_gradient=True), C.input_variable(3, needs_gradient=True)
    z = C.user_function(ProductAndSum(a, b))
    data = {a: np.array([[1, 2, 3], [4, 5, 6]], np.float32), b: np.array([[3, 1, 0], [-1, 2, 1]], np.float32)}
    product, difference = z.outputs
    assert (product.shape, product.name, difference.shape) == ((3,), "product", ())
    found = z.eval(data)
    np.testing.assert_allclose(found[product], data[a] * data[b])
    np.testing.assert_allclose(found[difference], (data[a] - data[b]).sum(axis=1))
    loss, known = C.reduce_sum(product) * difference, C.reduce_sum(a * b) * C.reduce_sum(a - b)
    for one in (a, b):
        np.testing.assert_allclose(loss.grad(data, wrt=[one]), known.grad(data, wrt=[one]), rtol=1e-6)


def test_one_input_that_needs_a_gradient_is_returned() -> None:
    class Scaled(UserFunction):
        def infer_outputs(self) -> list[Any]:
            return [C.output_variable(self.inputs[0].shape, self.inputs[0].dtype, self.inputs[0].dynamic_axes)]

        def forward(self, arguments: Any, device: Any = None, outputs_to_retain: Any = None) -> Any:
            return arguments[1], arguments[0] * arguments[1]

        def backward(self, state: Any, root_gradients: Any) -> Any:
            return root_gradients * state

    x, factor = C.input_variable(2, needs_gradient=True), C.input_variable(2)
    z = C.user_function(Scaled([x, factor]))
    data = {x: np.ones((1, 2), np.float32), factor: np.array([[2, 3]], np.float32)}
    assert z.grad(data, wrt=[x]).tolist() == [[2, 3]]


def _problem() -> tuple[Any, Any, dict[Any, Any]]:
    rng = np.random.default_rng(3)
    x, y = C.input_variable(4), C.input_variable(2)
    features = rng.normal(size=(32, 4)).astype(np.float32)
    labels = np.eye(2, dtype=np.float32)[(features[:, 0] > 0).astype(int)]
    return x, y, {x: features, y: labels}


def _losses(z: Any, y: Any, data: Any, learner: Any, steps: int = 5) -> list[float]:
    trainer = C.Trainer(z, C.cross_entropy_with_softmax(z, y), learner)
    found: list[float] = []
    for _ in range(steps):
        trainer.train_minibatch(data)
        found.append(trainer.previous_minibatch_loss_average)
    return found


def test_training_calls_each_direction_once_for_a_minibatch() -> None:
    x, y, data = _problem()
    own = Logistic(C.layers.Dense(3, init=C.glorot_uniform(seed=1))(x))
    last = C.layers.Dense(2, init=C.glorot_uniform(seed=2))
    z = last(C.user_function(own))
    known = C.layers.Dense(3, C.sigmoid, init=C.glorot_uniform(seed=1))(x)
    known = C.layers.Dense(2, init=C.glorot_uniform(seed=2))(known)
    rate = C.learning_parameter_schedule(0.5)
    found, expected = (
        _losses(z, y, data, C.sgd(z.parameters, rate)),
        _losses(known, y, data, C.sgd(known.parameters, rate)),
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert own.calls == ["forward", "backward"] * 5


def test_a_model_is_loaded_with_the_registered_code(tmp_path: Path) -> None:
    x = C.input_variable(3)
    data = np.array([[1, -2, 0.5]], np.float32)
    z = C.user_function(Logistic(x * 2, 3.0))
    z.save(tmp_path / "m")
    loaded = C.load_model(tmp_path / "m")
    np.testing.assert_allclose(loaded.eval({loaded.arguments[0]: data}), _logistic(6 * data), rtol=1e-6)

    class Nameless(Logistic):
        op_name = "shop.Nameless"

    C.user_function(Nameless(x)).save(tmp_path / "n")
    loaded = C.load_model(tmp_path / "n")
    with pytest.raises(UserError, match=r"'shop\.Nameless', whose Python code is not known"):
        loaded.eval({loaded.arguments[0]: data})
    C.Function.register_udf_deserialize_callback("shop.Nameless", Logistic.deserialize)
    loaded = C.load_model(tmp_path / "n")
    np.testing.assert_allclose(loaded.eval({loaded.arguments[0]: data}), _logistic(data), rtol=1e-6)


class _Twice(C.ops.functions.UserFunction):
    def __init__(self, x: Any, name: str = "") -> None:
        super().__init__([x], name=name)

    def forward(self, argument: Any, device: Any = None, outputs_to_retain: Any = None) -> Any:
        return None, 2 * argument

    def backward(self, state: Any, root_gradients: Any) -> Any:
        return 2 * root_gradients

    def infer_outputs(self) -> Any:
        return [C.output_variable(self.inputs[0].shape, self.inputs[0].dtype, self.inputs[0].dynamic_axes)]


class _Forgetful(_Twice):
    def serialize(self) -> Any:
        return {"factor": 2}


def test_a_function_without_a_state_is_loaded_by_its_class(tmp_path: Path) -> None:
    x, data = C.input_variable(3), np.array([[1, -2, 0.5]], np.float32)
    C.user_function(_Twice(x, "twice")).save(tmp_path / "m")
    loaded = C.load_model(tmp_path / "m")
    np.testing.assert_array_equal(loaded.eval({loaded.arguments[0]: data}), 2 * data)
    C.user_function(_Forgetful(x)).save(tmp_path / "n")
    with pytest.raises(UserError, match=r"_Forgetful has a state in the model .*'factor'.* and no deserialize"):
        C.load_model(tmp_path / "n").eval(data)


def test_placeholders_layers_and_copies() -> None:
    x, data = C.input_variable(3), np.array([[1, -2, 0.5]], np.float32)
    hole = C.placeholder()
    z = C.user_function(Logistic(hole + 1)).replace_placeholders({hole: x})
    np.testing.assert_allclose(z.eval({x: data}), _logistic(data + 1), rtol=1e-6)
    layer = C.layers.Sequential([C.layers.Dense(2), lambda h: C.user_function(Logistic(h))])
    assert layer(x).eval({x: data}).shape == (1, 2)
    copy = z.clone("clone", {x: C.input_variable(3)})
    np.testing.assert_allclose(copy.eval({copy.arguments[0]: data}), _logistic(data + 1), rtol=1e-6)


class _Wrong(Logistic):
    result: Any = None

    def forward(self, argument: Any, device: Any = None, outputs_to_retain: Any = None) -> Any:
        return self.result


WRONG = {
    "no pair": (np.ones((2, 3)), r"_Wrong\.forward gives ndarray, not a state and a value"),
    "samples": ((None, np.ones((5, 3))), r"value of 'Logistic' has the shape \(5, 3\), \(2, 3\) is expected"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_code_gives_is_checked(case: str) -> None:
    x = C.input_variable(3)
    wrong = _Wrong(x)
    wrong.result, message = WRONG[case]
    with pytest.raises(UserError, match=message):
        C.user_function(wrong).eval({x: np.ones((2, 3), np.float32)})


def test_an_exception_of_the_code_is_the_programs() -> None:
    class Raises(Logistic):
        def backward(self, state: Any, root_gradients: Any) -> Any:
            raise KeyError("own")

    x, y, data = _problem()
    z = C.layers.Dense(2)(C.user_function(Raises(C.layers.Dense(2)(x))))
    before = [one.value for one in z.parameters]
    trainer = C.Trainer(z, C.cross_entropy_with_softmax(z, y), C.sgd(z.parameters, 0.1))
    with pytest.raises(KeyError, match="own"):
        trainer.train_minibatch(data)
        _ = trainer.previous_minibatch_loss_average
    assert len(before) == 4


def test_other_mistakes_say_what_to_write() -> None:
    x = C.sequence.input_variable(3)
    with pytest.raises(UserError, match="the inputs of Logistic are a list"):
        UserFunction.__init__(Logistic(x), x)
    with pytest.raises(UserError, match="user_function takes a UserFunction, not"):
        C.user_function(Logistic)  # pyright: ignore[reportArgumentType]
    with pytest.raises(UserError, match="the step of a recurrence cannot have a user-defined function"):
        C.layers.Recurrence(lambda h, v: C.user_function(Logistic(h + v)))(x)

    class Reduced(Logistic):
        def infer_outputs(self) -> list[Any]:
            return [C.output_variable((), np.float32, [])]

    with pytest.raises(UserError, match=r"an output of .*Reduced has 0 dynamic axes, its inputs 2"):
        C.user_function(Reduced(x))


# ---- learners


class OwnSgd(C.learners.UserLearner):
    """W - rate * g / samples, computed by functions."""

    def __init__(self, parameters: Any, rate: Any) -> None:
        super().__init__(parameters, rate, as_numpy=False)
        self.momentum = self.rate = self.name = "attributes of a program"
        self.count = C.input_variable(())
        self.gradients = {one: C.input_variable(one.shape) for one in self.parameters}
        self.new = {one: one - rate[0] / self.count * self.gradients[one] for one in self.parameters}

    def update(self, gradient_values: Any, training_sample_count: int, is_sweep_end: bool = False) -> bool:
        for one, gradient in gradient_values.items():
            assert isinstance(gradient, C.NDArrayView)
            data = {self.count: np.asarray(training_sample_count), self.gradients[one]: gradient.asarray()}
            result = self.new[one].eval(data, as_numpy=False)
            shape = result.shape
            one.set_value(result.data.slice_view([0] * len(shape), shape[1:]))
        return True


def test_a_user_learner_trains_as_the_rule_that_it_computes() -> None:
    rate = C.learning_parameter_schedule(0.5)
    losses: list[list[float]] = []
    for make in (C.sgd, OwnSgd):
        x, y, data = _problem()
        z = C.layers.Dense(2, init=C.glorot_uniform(seed=5))(x)
        losses.append(_losses(z, y, data, make(z.parameters, rate)))
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-6)


def test_a_universal_learner_keeps_what_it_assigns() -> None:
    def adagrad(parameters: Any, gradients: Any) -> Any:
        updates: list[Any] = []
        for one, gradient in zip(parameters, gradients, strict=True):
            squares = C.constant(0, shape=one.shape, dtype=one.dtype)
            summed = C.assign(squares, squares + gradient * gradient)
            updates.append(C.assign(one, one - 0.01 * gradient / C.sqrt(summed + 1e-6)))
        return C.combine(updates)

    x, y, data = _problem()
    z = C.layers.Dense(2, init=C.glorot_uniform(seed=5))(x)
    weights, bias = z.W.value, z.b.value
    sums = [np.zeros_like(weights), np.zeros_like(bias)]
    losses = _losses(z, y, data, C.universal(adagrad, z.parameters), 4)
    expected: list[float] = []
    for _ in range(4):
        features, labels = data[x], data[y]
        scores = np.exp(features @ weights + bias)
        p = scores / scores.sum(axis=1, keepdims=True)
        expected.append(float(-np.log((p * labels).sum(axis=1)).mean()))
        for at, gradient in enumerate((features.T @ (p - labels), (p - labels).sum(axis=0))):
            sums[at] += gradient * gradient
            change = 0.01 * gradient / np.sqrt(sums[at] + 1e-6)
            weights, bias = (weights - change, bias) if at == 0 else (weights, bias - change)
    np.testing.assert_allclose(losses, expected, rtol=1e-5)


def test_a_learner_of_python_beside_a_built_in_one() -> None:
    class Frozen(C.learners.UserLearner):
        def update(self, gradient_values: Any, training_sample_count: int, is_sweep_end: bool = False) -> bool:
            seen.append((list(gradient_values), training_sample_count, is_sweep_end))
            return len(seen) < 2

    seen: list[Any] = []
    x, y, data = _problem()
    z = C.layers.Dense(2)(x)
    trainer = C.Trainer(z, C.cross_entropy_with_softmax(z, y), [C.sgd([z.W], 0.1), Frozen([z.b], 1.0)])
    bias, weights = z.b.value, z.W.value
    assert trainer.train_minibatch(data)
    assert not trainer.train_minibatch(data, is_sweep_end=True)
    assert seen == [([z.b], 32, False), ([z.b], 32, True)]
    assert np.array_equal(bias, z.b.value) and not np.array_equal(weights, z.W.value)


def test_a_learner_without_update_says_so() -> None:
    x, y, data = _problem()
    z = C.layers.Dense(2)(x)
    trainer = C.Trainer(z, C.cross_entropy_with_softmax(z, y), C.learners.UserLearner(z.parameters, 0.1))
    with pytest.raises(NotImplementedError, match="UserLearner needs update"):
        trainer.train_minibatch(data)
    with pytest.raises(UserError, match="gives 3, not a function"):
        C.universal(lambda parameters, gradients: 3, z.parameters)


# ---- constants that change


def test_a_constant_of_one_element_changes_between_calls(tmp_path: Path) -> None:
    x, y = C.input_variable(2), C.input_variable(2)

    def made() -> tuple[Any, Any, Any, Any]:
        w, factor = C.parameter(2, init=1.0), C.constant(1.0)
        loss = C.squared_error(x * w, y) * factor
        return w, factor, loss, C.Trainer(x * w, (loss, loss), C.sgd([w], C.learning_parameter_schedule(0.1)))

    data = {x: np.ones((1, 2), np.float32), y: np.zeros((1, 2), np.float32)}
    w, factor, loss, trainer = made()
    weight = 1.0
    for value in (1.0, 0.0, 2.0, 0.5):
        factor.value = value
        trainer.train_minibatch(data)
        assert trainer.previous_minibatch_loss_average == pytest.approx(2 * value * weight**2)
        weight -= 0.1 * 2 * value * weight
        assert w.value.tolist() == pytest.approx([weight] * 2)
        assert trainer.test_minibatch(data) == pytest.approx(2 * value * weight**2)
        assert loss.eval(data).tolist() == pytest.approx([2 * value * weight**2])
        assert loss.grad(data, wrt=[w]).tolist() == pytest.approx([2 * value * weight] * 2)
    trainer.save_checkpoint(tmp_path / "m")
    other, _, _, again = made()
    again.restore_from_checkpoint(tmp_path / "m")
    for one in (trainer, again):
        one.train_minibatch(data)
    assert other.value.tolist() == w.value.tolist()


def test_grad_computes_forward_once() -> None:
    """Value and gradient are one program."""
    x = C.input_variable(2, needs_gradient=True)
    own = Logistic(x)
    _ = C.user_function(own).grad({x: np.ones((3, 2), np.float32)})
    assert own.calls == ["forward", "backward"]


class Scale(C.ops.functions.UserFunction):
    """x times k, as CNTK 2.7 calls it: `backward` of several inputs fills a dictionary (W8, P19)."""

    def __init__(self, x: Any, k: Any, name: str = "scale") -> None:
        super().__init__([x, k], name=name)

    def infer_outputs(self) -> list[Any]:
        return [C.output_variable(self.inputs[0].shape, self.inputs[0].dtype, self.inputs[0].dynamic_axes)]

    def forward(self, arguments: Any, device: Any = None, outputs_to_retain: Any = None) -> Any:
        return arguments[1], arguments[0] * arguments[1]

    def backward(self, state: Any, root_gradients: Any, variables: Any) -> None:
        for one in variables:
            variables[one] = root_gradients * state


def test_backward_of_several_inputs_fills_a_dictionary_also_where_one_needs_a_gradient() -> None:
    x = C.input_variable(2, needs_gradient=True)
    f = C.user_function(Scale(x, C.constant([3.0, 4.0])))
    assert f.grad({x: [[1, 2]]}, wrt=[x]).tolist() == [[3, 4]]


def test_a_user_function_is_a_function_by_itself() -> None:
    x = C.input_variable(2, needs_gradient=True)
    code = Scale(x, C.constant([3.0, 4.0]))
    assert code.eval({x: [[1, 2]]}).tolist() == [[3, 8]]
    assert C.plus(code, 1).eval({x: [[1, 2]]}).tolist() == [[4, 9]]
    with pytest.raises(AttributeError):
        _ = code.no_such_attribute


class Copied(C.ops.functions.UserFunction):
    """The value itself, cloned."""

    def __init__(self, x: Any, name: str = "copied") -> None:
        super().__init__([x], as_numpy=False, name=name)

    def infer_outputs(self) -> list[Any]:
        return [C.output_variable(self.inputs[0].shape, self.inputs[0].dtype, self.inputs[0].dynamic_axes)]

    def forward(self, argument: Any, device: Any = None, outputs_to_retain: Any = None) -> Any:
        copy = argument.deep_clone()
        assert not np.shares_memory(copy.asarray(), argument.asarray())
        assert np.shares_memory(argument.alias().asarray(), argument.asarray())
        assert argument.deep_clone(True).is_read_only and not copy.is_read_only
        return None, copy


def test_values_are_cloned() -> None:
    x = C.input_variable(2)
    assert C.user_function(Copied(x)).eval({x: [[1, 2]]}).tolist() == [[1, 2]]
