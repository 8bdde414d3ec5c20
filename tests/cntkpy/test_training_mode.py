"""Functions in training mode: `forward` with `keep_for_backward`, `backward`, `grad`, outputs of `train_minibatch`."""

import numpy as np
import pytest

import cntkpy.compat.cntk as C
from cntkpy.cntk_config import UserError

ONES = np.ones((2, 400), np.float32)


def test_dropout_drops_and_its_gradient_has_the_same_mask() -> None:
    x = C.input_variable(400, needs_gradient=True)
    z = C.dropout(x, 0.25)
    masks = []
    for _ in range(2):
        state, values = z.forward({x: ONES}, z.outputs, z.outputs)
        masks.append(values[z.output])
        assert set(np.unique(masks[-1]).round(4)) == {0, np.float32(1.3333)}
        assert 0.15 < (masks[-1] == 0).mean() < 0.35
        gradients = z.backward(state, {z.output: 2 * ONES}, {x})
        np.testing.assert_array_equal(gradients[x], 2 * masks[-1])
        with pytest.raises(UserError, match="backward has gone through this forward pass already"):
            z.backward(state, {z.output: 2 * ONES}, {x})
    assert (masks[0] != masks[1]).any()
    np.testing.assert_array_equal(z.eval({x: ONES}), ONES)
    _, values = z.forward({x: ONES})
    np.testing.assert_array_equal(values[z.output], ONES)


def test_gradients_belong_to_the_parameters_and_data_of_their_forward_pass() -> None:
    x, w = C.input_variable(2), C.parameter((2, 3), init=np.arange(6, dtype=np.float32).reshape(2, 3))
    z = C.times(x, w)
    data = np.array([[1, 2], [3, 4]], np.float32)
    state, _ = z.forward({x: data}, None, {z.output})
    before = w.value
    w.value = before + 1
    data[:] = 0
    found = z.backward(state, {z.output: np.ones((2, 3))}, {w, x})
    np.testing.assert_array_equal(found[w], [[4, 4, 4], [6, 6, 6]])
    np.testing.assert_array_equal(found[x], np.ones((2, 3)) @ before.T)


def test_batch_normalisation_takes_the_statistics_of_the_minibatch() -> None:
    x = C.input_variable(3)
    mean, variance, count = (C.constant(np.zeros(n, np.float32)) for n in (3, 3, 1))
    scale, bias = C.parameter(3, init=2.0), C.parameter(3, init=1.0)
    z = C.batch_normalization(x, scale, bias, mean, variance, False, epsilon=0.0, running_count=count)
    data = np.random.default_rng(1).normal(3, 2, (50, 3)).astype(np.float32)
    state, values = z.forward({x: data}, None, z.outputs)
    normalised = (data - data.mean(axis=0)) / data.std(axis=0)
    np.testing.assert_allclose(values[z.output], 2 * normalised + 1, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(mean.value, data.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(variance.value, data.var(axis=0, ddof=1), rtol=1e-4)
    found = z.backward(state, {z.output: data}, {scale, bias})
    np.testing.assert_allclose(found[scale], (normalised * data).sum(axis=0), rtol=1e-4)
    np.testing.assert_allclose(found[bias], data.sum(axis=0), rtol=1e-5)
    running = (data - mean.value) / np.sqrt(variance.value)
    np.testing.assert_allclose(z.eval({x: data}), 2 * running + 1, rtol=1e-4, atol=1e-4)


class Normalised:
    """Batch normalisation, dropout, a linear layer and a loss; the running statistics after each use of them."""

    data = np.random.default_rng(4).normal(3, 2, (8, 4)).astype(np.float32)
    labels = np.random.default_rng(5).normal(size=(8, 4)).astype(np.float32)

    def __init__(self) -> None:
        self.x, self.y = C.input_variable(4), C.input_variable(4)
        self.layer = C.layers.BatchNormalization(normalization_time_constant=10)
        self.normal = self.layer(self.x)
        self.z = C.layers.Dense(4)(C.layers.Dropout(0.5)(self.normal))
        self.loss = C.squared_error(self.z, self.y)
        self.given = {self.x: self.data, self.y: self.labels}

    def mean(self, function=None) -> np.ndarray:
        found = (function or self.normal).constants
        return next(one.value.ravel() for one in found if one.name == "aggregate_mean")

    def trainer(self, rate: float = 0.0) -> C.Trainer:
        return C.Trainer(self.z, (self.loss, self.loss), C.sgd(self.z.parameters, rate))


def mixed(before: np.ndarray, data: np.ndarray) -> np.ndarray:
    keep = np.exp(-len(data) / 10)
    return keep * before + (1 - keep) * data.mean(axis=0)


def test_what_changes_running_statistics() -> None:
    """Training steps, forward with keep_for_backward and grad, once each; nothing else."""
    net, other = Normalised(), Normalised.data * 2 + 1
    trainer, given = net.trainer(), {net.x: other, net.y: net.labels}
    expected = other.mean(axis=0)
    leave = [
        lambda: net.z.eval({net.x: other}),
        lambda: net.z.forward({net.x: other}),
        lambda: net.z.forward({net.x: other}, None, set()),
        lambda: trainer.test_minibatch(given),
        lambda: net.loss.test((other, net.labels)),
        lambda: C.eval.Evaluator(net.loss).test_minibatch(given),
    ]
    for use in leave:
        use()
        assert not net.mean().any()
    state, _ = net.z.forward({net.x: other}, None, net.z.outputs)
    np.testing.assert_allclose(net.mean(), expected, rtol=1e-5)
    net.z.backward(state, {net.z.output: net.labels}, set(net.z.parameters))
    np.testing.assert_allclose(net.mean(), expected, rtol=1e-5)
    change = [
        lambda: trainer.train_minibatch(net.given),
        lambda: trainer.train_minibatch(net.given, outputs=[net.normal]),
        lambda: net.loss.grad(net.given, wrt=net.z.parameters),
        lambda: net.loss.train((net.data, net.labels), parameter_learners=[C.sgd(net.z.parameters, 0.0)]),
    ]
    for use in change:
        use()
        expected = mixed(expected, net.data)
        np.testing.assert_allclose(net.mean(), expected, rtol=1e-5)
        for call in leave if use is change[-1] else leave[:4]:  # the others compile a program each time
            call()
        np.testing.assert_allclose(net.mean(), expected, rtol=1e-5)


def test_tests_are_in_inference_mode() -> None:
    net, measured = Normalised(), []
    trainer = net.trainer(0.1)
    trainer.train_minibatch(net.given)
    expected = net.loss.eval(net.given).mean()
    assert trainer.test_minibatch(net.given) == pytest.approx(expected)
    assert net.loss.test((net.data, net.labels)).metric == pytest.approx(expected)
    assert C.eval.Evaluator(net.loss).test_minibatch(net.given) == pytest.approx(expected)
    validation = C.CrossValidationConfig(
        (net.data, net.labels), criterion=net.loss, callback=lambda *found: measured.append(found[1])
    )
    test = C.TestConfig((net.data, net.labels), criterion=net.loss)
    learner = C.sgd(net.z.parameters, 0.1)
    done = net.loss.train((net.data, net.labels), parameter_learners=[learner], callbacks=[validation, test])
    expected = net.loss.eval(net.given).mean()
    assert measured == [pytest.approx(expected)]
    assert done.test_summary.metric == pytest.approx(expected)


@pytest.mark.parametrize("how", ["clone", "freeze", "share"])
def test_running_statistics_of_copies(how: str) -> None:
    """They resume from those of the first; shared ones are the same."""
    net, inner = Normalised(), C.input_variable(4)
    net.loss.grad(net.given, wrt=net.z.parameters)
    before, other = net.mean(), Normalised.data * 2 + 1
    copy = net.normal.clone(how, {net.x: inner})
    np.testing.assert_array_equal(net.mean(copy), before)
    copy.forward({inner: other}, None, copy.outputs)
    np.testing.assert_allclose(net.mean(copy), mixed(before, other), rtol=1e-5)
    np.testing.assert_allclose(net.mean(), mixed(before, other) if how == "share" else before, rtol=1e-5)


def test_a_layer_that_is_applied_twice_has_one_pair_of_statistics() -> None:
    net, inner = Normalised(), C.input_variable(4)
    net.loss.grad(net.given, wrt=net.z.parameters)
    before, other = net.mean(), Normalised.data * 2 + 1
    again = net.layer(inner)
    again.forward({inner: other}, None, again.outputs)
    np.testing.assert_allclose(net.mean(), mixed(before, other), rtol=1e-5)


def test_the_running_count_counts() -> None:
    x, y = C.input_variable(2), C.input_variable(2)
    count, mean, variance = C.constant(0), C.constant([0, 0]), C.constant([0, 0])
    scale, bias = C.parameter(2, init=1.0), C.parameter(2, init=0.0)
    options = {"running_count": count, "normalization_time_constant": 10}
    z = C.batch_normalization(x, scale, bias, mean, variance, False, **options)
    data = np.array([[1, 2], [3, 6], [2, 7]], np.float32)
    loss = C.squared_error(z, y)
    trainer = C.Trainer(z, (loss, loss), C.sgd(z.parameters, 0.0))
    for samples in (3, 6):
        trainer.train_minibatch({x: data, y: data})
        assert (count.value.shape, count.value) == ((), samples)
    z.eval({x: data})
    trainer.test_minibatch({x: data, y: data})
    copy, shared = z.clone("clone"), z.clone("share", {x: C.input_variable(2)})
    copy.forward({x: data}, None, copy.outputs)
    assert count.value == 6
    shared.forward({shared.arguments[0]: data}, None, shared.outputs)
    assert count.value == 9
    count.value = 0
    trainer.train_minibatch({x: data + 7, y: data})
    np.testing.assert_allclose(mean.value, data.mean(axis=0) + 7, rtol=1e-6)
    assert count.value == 3


def test_statistics_of_what_is_not_trained() -> None:
    """A learner without the parameters of a normalisation, and a frozen one: training moves the statistics."""
    net, other = Normalised(), Normalised.data * 2 + 1
    learner = C.sgd([net.z.W], 0.1)
    scale = net.normal.scale.value
    C.Trainer(net.z, net.loss, learner).train_minibatch(net.given)
    np.testing.assert_allclose(net.mean(), net.data.mean(axis=0), rtol=1e-5)
    np.testing.assert_array_equal(net.normal.scale.value, scale)
    before, frozen = net.mean(), net.normal.clone("freeze")
    z = C.layers.Dense(4)(frozen)
    trainer = C.Trainer(z, C.squared_error(z, net.y), C.sgd(z.parameters, 0.1))
    _, values = trainer.train_minibatch({net.x: other, net.y: net.labels}, outputs=[frozen])
    np.testing.assert_allclose(values[frozen].mean(axis=0), np.zeros(4), atol=1e-5)
    np.testing.assert_allclose(net.mean(frozen), mixed(before, other), rtol=1e-5)
    np.testing.assert_array_equal(net.mean(), before)


def test_grad_is_in_training_mode_and_gives_the_values_of_its_pass() -> None:
    x, w = C.input_variable(400), C.parameter(400, init=1.0)
    dropped = C.dropout(x, 0.5) * w
    total = C.reduce_sum(dropped)
    found, values = total.grad({x: ONES}, wrt=[w], outputs=[dropped])
    assert set(np.unique(values)) == {0, 2}
    np.testing.assert_array_equal(found, values.sum(axis=0))
    again, _ = total.grad({x: ONES}, wrt=[w], outputs=[dropped])
    assert (again != found).any()


def test_another_root_and_values_instead_of_arrays() -> None:
    x = C.input_variable(2, needs_gradient=True)
    inner = x * x
    outer = C.reduce_sum(inner)
    data = np.array([[1, 2]], np.float32)
    np.testing.assert_array_equal(outer.grad({x: data}, grad_root=inner), 2 * data)
    found = outer.grad({x: data}, as_numpy=False)
    assert isinstance(found, C.Value)
    np.testing.assert_array_equal(found.asarray(), 2 * data)
    state, values = outer.forward({x: data}, None, outer.outputs, as_numpy=False)
    assert isinstance(values[outer.output], C.Value)
    found = outer.backward(state, {outer.output: np.ones((1, 1))}, {x}, as_numpy=False)
    assert isinstance(found[x], C.Value)


def test_sequences_have_gradients_of_their_lengths() -> None:
    x, w = C.sequence.input_variable(2), C.parameter((2, 2), init=np.eye(2, dtype=np.float32))
    z = C.times(C.sequence.past_value(x), w)
    data = [np.array([[1, 2], [3, 4], [5, 6]], np.float32), np.array([[7, 8]], np.float32)]
    state, values = z.forward({x: data}, None, z.outputs)
    assert [one.shape for one in values[z.output]] == [(3, 2), (1, 2)]
    roots = [np.array([[9, 9], [1, 2], [3, 4]], np.float32), np.array([[9, 9]], np.float32)]
    found = z.backward(state, {z.output: roots}, {x, w})
    np.testing.assert_array_equal(found[x][0], [[1, 2], [3, 4], [0, 0]])
    np.testing.assert_array_equal(found[x][1], [[0, 0]])
    np.testing.assert_array_equal(found[w], np.array([[1, 2], [3, 4]]).T @ [[1, 2], [3, 4]])


def test_several_outputs_share_a_pass() -> None:
    x = C.input_variable(400, needs_gradient=True)
    dropped = C.dropout(x, 0.5)
    both = C.combine([dropped, 3 * dropped])
    first, second = both.outputs
    state, values = both.forward({x: ONES}, both.outputs, both.outputs)
    np.testing.assert_array_equal(values[second], 3 * values[first])
    found = both.backward(state, {first: ONES, second: ONES}, {x})
    np.testing.assert_array_equal(found[x], 4 * values[first])
    state, values = both.forward({x: ONES}, [first], {second})
    assert list(values) == [first]
    with pytest.raises(UserError, match="was not kept for backward"):
        both.backward(state, {first: ONES}, {x})


def test_what_backward_refuses() -> None:
    x, w = C.input_variable(2), C.parameter(2, init=1.0)
    z = x * w
    data = np.ones((3, 2), np.float32)
    state, _ = z.forward({x: data})
    assert state is None
    with pytest.raises(UserError, match="no forward pass to go back through") as error:
        z.backward(state, {z.output: data}, {w})
    assert "keep_for_backward" in str(error.value.diagnostic.hint)
    state, _ = z.forward({x: data}, None, z.outputs)
    with pytest.raises(UserError, match=r"has sequences of \[1, 1\] steps, its value of \[1, 1, 1\]"):
        z.backward(state, {z.output: data[:2]}, {w})
    with pytest.raises(UserError, match=r"data of shape \(2, 3\) for the gradient of .* \(2,\)"):
        z.backward(state, {z.output: data.T}, {w})
    with pytest.raises(UserError, match="does not depend on"):
        z.backward(state, {z.output: data}, {C.parameter(2, init=1.0)})
    with pytest.raises(UserError, match="the gradient of an output"):
        z.backward(state, {}, {w})


def test_outputs_of_a_training_step_have_its_mask() -> None:
    x, y = C.input_variable(400), C.input_variable(3)
    dropped = C.dropout(x, 0.5)
    z = C.layers.Dense(3)(dropped)
    loss = C.cross_entropy_with_softmax(z, y)
    trainer = C.Trainer(z, (loss, C.classification_error(z, y)), C.sgd(z.parameters, 0.1))
    labels, masks = np.eye(3, dtype=np.float32)[[0, 2]], []
    for _ in range(3):
        w, b = z.W.value, z.b.value
        trained, values = trainer.train_minibatch({x: ONES, y: labels}, outputs=[dropped, z, loss])
        assert trained
        masks.append(values[dropped])
        assert set(np.unique(masks[-1])) == {0, 2}
        np.testing.assert_allclose(values[z], masks[-1] @ w + b, rtol=1e-4, atol=1e-5)
        assert trainer.previous_minibatch_loss_average == pytest.approx(values[loss].mean(), rel=1e-4)
        trainer.train_minibatch({x: ONES, y: labels})
    assert (masks[0] != masks[1]).any()


@pytest.mark.thorough
def test_outputs_change_nothing_in_training() -> None:
    def trained(outputs: bool) -> np.ndarray:
        C.cntk_py.set_fixed_random_seed(1)  # of two trainers without a seed, each draws masks of its own
        x, y = C.input_variable(40), C.input_variable(3)
        layer = C.layers.Dense(3, init=C.glorot_uniform(seed=3))
        z = C.layers.BatchNormalization()(layer(C.dropout(x, 0.5)))
        trainer = C.Trainer(z, C.cross_entropy_with_softmax(z, y), C.sgd(z.parameters, 0.1))
        data = np.random.default_rng(2).normal(size=(6, 40)).astype(np.float32)
        for _ in range(3):
            trainer.train_minibatch({x: data, y: np.eye(3)[[0, 1, 2] * 2]}, outputs=[z] if outputs else None)
        return z.eval({x: data})

    np.testing.assert_allclose(trained(True), trained(False), rtol=1e-5, atol=1e-6)


def test_an_output_of_other_data_is_refused() -> None:
    x, y, other = C.input_variable(2), C.input_variable(2), C.input_variable(2, name="other")
    z = C.layers.Dense(2)(x)
    trainer = C.Trainer(z, C.squared_error(z, y), C.sgd(z.parameters, 0.1))
    data = np.ones((2, 2), np.float32)
    with pytest.raises(UserError, match="does not depend on the input 'other'"):
        trainer.train_minibatch({x: data, y: data, other: data}, outputs=[z + other])


# ------------------------------------------------------------------------------------------- seeds


def drawn(function) -> np.ndarray:
    _, values = function.forward({function.arguments[0]: ONES}, function.outputs, function.outputs)
    return values[function.output]


def test_seeds_of_dropout() -> None:
    x = C.input_variable(400)
    made = [C.dropout(x, 0.5, seed=seed) for seed in (123, 123, 124, None)]
    made += [C.layers.Dropout(0.5, seed=123)(x), made[0].clone("clone"), made[3].clone("clone")]
    first, second = ([drawn(one) for one in made] for _ in range(2))
    for found in (first, second):
        assert [(one == found[0]).all() for one in found] == [True, True, False, False, True, True, False]
        assert (found[3] != found[6]).any()
    assert (first[0] != second[0]).any()
    both = C.combine([made[0], made[1], made[2]])
    _, values = both.forward({x: ONES}, both.outputs, both.outputs)
    a, b, c = values.values()
    assert ((a == b).all(), (a == c).all()) == (True, False)


@pytest.mark.parametrize(
    "make",
    [
        C.random.normal,
        *(
            pytest.param(make, marks=pytest.mark.thorough)
            for make in (C.random.uniform, C.random.gumbel, C.random.bernoulli)
        ),
    ],
)
def test_seeds_of_random_numbers(make) -> None:
    made = [make(100, seed=seed) for seed in (0, 0, 1, None)]
    first, second = ([one.eval() for one in made] for _ in range(2))
    for found in (first, second):
        assert [(one == found[0]).all() for one in found] == [True, True, False, False]
    assert (first[0] != second[0]).any()
    a, b = C.combine([make(100, seed=5), make(100, seed=5)]).eval().values()
    np.testing.assert_array_equal(a, b)
    a, b = C.combine([make(100), make(100)]).eval().values()
    assert (a != b).any()


@pytest.mark.parametrize("duplicates", [True, pytest.param(False, marks=pytest.mark.thorough)])
def test_seeds_of_samples(duplicates: bool) -> None:
    weights = np.arange(1, 51, dtype=np.float32)
    made = [C.random_sample(weights, 8, duplicates, seed=seed) for seed in (7, 7, 8, None)]
    first, second = ([one.eval() for one in made] for _ in range(2))
    for found in (first, second):
        assert [(one == found[0]).all() for one in found] == [True, True, False, False]
    assert (first[0] != second[0]).any()
    a, b, c = (C.random_sample_inclusion_frequency(weights, 8, False, seed=seed).eval() for seed in (7, 7, 8))
    np.testing.assert_array_equal(a, b)
    assert (a != c).any()


def test_seeds_of_start_values() -> None:
    for make in (C.glorot_uniform, C.he_normal, C.uniform, C.normal, C.xavier):
        a, b, c = (C.parameter((4, 5), init=make(1.0, seed=seed)).value for seed in (3, 3, 4))
        np.testing.assert_array_equal(a, b)
        assert (a != c).any()


@pytest.mark.thorough
def test_large_seeds_differ() -> None:
    seeds = [0, 1, 2**31, 2**32 - 2, 2**32 - 1, 2**32, 2**32 + 1, 2**53 + 1, 2**53 + 2, 2**63, 2**64 - 1, 2**64]
    found = C.combine([C.random.uniform(4, seed=seed) for seed in seeds]).eval().values()
    assert len({one.tobytes() for one in found}) == len(seeds)


@pytest.mark.parametrize(
    "make",
    [
        C.random.normal_like,
        *(
            pytest.param(make, marks=pytest.mark.thorough)
            for make in (C.random.uniform_like, C.random.gumbel_like, C.random.bernoulli_like)
        ),
    ],
)
def test_seeds_of_random_numbers_like_others(make) -> None:
    x = C.input_variable(100)
    a, b, c, d = C.combine([make(x, seed=seed) for seed in (5, 5, 6, None)]).eval({x: ONES[:, :100]}).values()
    np.testing.assert_array_equal(a, b)
    assert (a != c).any() and (a != d).any() and (a[0] != a[1]).any()


@pytest.mark.thorough
def test_seeds_of_masks_in_a_training() -> None:
    def masks(seed) -> list[np.ndarray]:
        x, y = C.input_variable(400), C.input_variable(1)
        dropped = C.layers.Dropout(0.5, seed=seed)(x)
        z = C.layers.Dense(1, init=0.1)(dropped)
        trainer = C.Trainer(z, C.squared_error(z, y), C.sgd(z.parameters, 0.0))
        given = {x: ONES, y: np.ones((2, 1), np.float32)}
        return [trainer.train_minibatch(given, outputs=[dropped])[1][dropped] for _ in range(2)]

    first, second = masks(3)
    np.testing.assert_array_equal(masks(3), [first, second])
    assert (first != second).any() and (masks(4)[0] != first).any()


def test_a_wrong_seed() -> None:
    with pytest.raises(UserError, match="a seed is a whole number from 0 on, not 'x'"):
        C.dropout(C.input_variable(2), 0.5, seed="x")


def test_outputs_of_a_step_have_the_values_that_were_assigned() -> None:
    x, y = C.input_variable(2), C.input_variable(2)
    z = C.layers.Dense(2)(x)
    p, q = C.parameter((), init=1.0), C.parameter((), init=2.0)  # no learner trains them
    trainer = C.Trainer(z, (C.squared_error(z, y), p / q), [C.sgd(z.parameters, 0.01)])
    data = {x: np.ones((1, 2), np.float32), y: np.ones((1, 2), np.float32)}
    increment = C.assign(p, p + 1)
    shown = []
    for _ in range(3):
        (value,) = trainer.train_minibatch(data, outputs=[p / q])[1].values()
        shown.append(float(value))
        increment.eval()
    assert shown == [0.5, 1.0, 1.5]
