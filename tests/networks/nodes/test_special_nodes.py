"""Operations at special points, and criteria that need their own tests."""

import numpy as np
import pytest

from cntkpy.networks.nodes.elementwise.kinds import LOG_CLIPPED

POOL = {"windowWidth": 2, "windowHeight": 2, "strideWidth": 2, "strideHeight": 2, "imageLayout": "CHW"}


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def test_clipped_log_and_its_gradient(helpers):
    s = helpers.Sketch()
    p = s.parameter("p", 4, value=[0.0, 1e-38, -3.0, 2.0])
    s("SumElements", s("Log", p, name="log"), name="total")
    batch = helpers.Batch({})
    value = helpers.run(s.network, ["log"], batch)["log"]
    assert value.tolist() == [LOG_CLIPPED] * 3 + [np.log(2.0)]
    assert float(np.float32(-85.1)) == LOG_CLIPPED
    _, found = helpers.gradients(s.network, "total", batch)
    np.testing.assert_allclose(found["p"], [np.exp(-LOG_CLIPPED)] * 3 + [0.5])


def test_values_at_special_points(helpers):
    s = helpers.Sketch()
    p = s.parameter("p", 3, value=[0.0, -4.0, 4.0])
    results = [s("Reciprocal", p), s("Sqrt", p), s("RectifiedLinear", p), s("Abs", p), s("Floor", p)]
    results.append(s("StopGradient", p))
    total = s("SumElements", s("RowStack", *results[2:]), name="total")
    values = helpers.run(s.network, [r.name for r in results], helpers.Batch({}))
    expected = [[0, -0.25, 0.25], [0, 0, 2], [0, 0, 4], [0, 4, 4], [0, -4, 4], [0, -4, 4]]
    assert [v.tolist() for v in values.values()] == expected
    _, found = helpers.gradients(s.network, total.name, helpers.Batch({}))
    assert found["p"].tolist() == [
        0,
        -1,
        2,
    ]  # RectifiedLinear and Abs have derivative 0 at 0, Floor and StopGradient everywhere
    far = s("LogPlus", s.constant(3.0), s.constant(3.0 - 9.3), name="far")
    assert helpers.run(s.network, [far.name], helpers.Batch({}))["far"].item() == 3.0


def test_cross_entropy_gradient_of_unnormalised_labels(helpers):
    s = helpers.Sketch()
    y, b = s.input("y", 3), s.parameter("b", 3, value=[0.1, 0.2, -0.3])
    x = s.input("x", 3)
    s("CrossEntropyWithSoftmax", y, s("Plus", x, b), name="ce")
    labels = np.array([[[1.0, 2.0, 0.0]]])
    _, found = helpers.gradients(s.network, "ce", helpers.Batch({"y": labels, "x": np.zeros((1, 1, 3))}))
    np.testing.assert_allclose(found["b"], softmax(np.array([0.1, 0.2, -0.3])) - [1, 2, 0])


def test_classification_error_ties_and_top_n(helpers):
    s = helpers.Sketch()
    y, z = s.input("y", 4), s.input("z", 4)
    s("ClassificationError", y, z, name="top1")
    s("ErrorPrediction", y, z, s.constant(2.0), name="top2")
    s("ErrorPrediction", y, z, s.constant(9.0), name="top9")
    labels = np.eye(4)[[0, 2, 1]][None]
    scores = np.array([[[1, 1, 1, 1.0], [4, 3, 2, 1], [4, 3, 2, 1]]])
    values = helpers.run(s.network, ["top1", "top2", "top9"], helpers.Batch({"y": labels, "z": scores}))
    assert [v.item() for v in values.values()] == [2, 1, 0]


def test_weighted_logistic_normalises_its_value_only(helpers):
    s = helpers.Sketch()
    y, x, w, b = s.input("y", 1), s.input("x", 1), s.input("w", 1), s.parameter("b", 1, value=[0.3])
    s("Logistic", y, s("Sigmoid", s("Plus", x, b)), w, name="cost")
    data = {"y": [1, 0, 1], "x": [0.5, -1, 2], "w": [1, 2, 3]}
    batch = helpers.Batch({k: np.array(v, float).reshape(1, 3, 1) for k, v in data.items()})
    p = 1 / (1 + np.exp(-(np.array(data["x"]) + 0.3)))
    q = np.where(np.array(data["y"]) == 1, p, 1 - p)
    weights = np.array(data["w"])
    total, found = helpers.gradients(s.network, "cost", batch)
    np.testing.assert_allclose(total, -3 * (weights * np.log(q)).sum() / 6)
    np.testing.assert_allclose(found["b"], (weights * (p - np.array(data["y"]))).sum())


@pytest.mark.parametrize("words", [6, pytest.param(200, marks=pytest.mark.thorough)])
def test_class_based_cross_entropy(helpers, words):
    s = helpers.Sketch()
    labels, x = s.input("labels", 4), s.input("x", 3)
    w, c = s.parameter("w", 3, words), s.parameter("c", 2 if words == 6 else 8, 3)  # 8: one variant, and all words
    h = s("Tanh", s("Plus", x, s.parameter("b", 3)))
    s("ClassBasedCrossEntropyWithSoftmax", labels, h, w, s("Times", c, h), name="ce")
    mask, start, end = helpers.grid([2, 1])
    data = np.zeros((2, 2, 4))
    data[0, 0], data[1, 0], data[0, 1] = [1, 0, 0, 2], [4, 1, 2, 6], [2, 1, 2, 6]
    inputs = {"labels": data, "x": np.where(mask[..., None], s.random.normal(size=(2, 2, 3)), 0)}
    batch = helpers.Batch(inputs, mask, start, end)
    b = s.network["b"].matrix()
    expected = 0.0
    for t, slot in zip(*np.nonzero(mask), strict=True):
        word, group, first, last = data[t, slot].astype(int)
        hidden = np.tanh(inputs["x"][t, slot] + b)
        expected -= np.log(softmax(c.matrix() @ hidden)[group])
        expected -= np.log(softmax(w.matrix()[:, first:last].T @ hidden)[word - first])
    total, found = helpers.gradients(s.network, "ce", batch)
    np.testing.assert_allclose(total, expected)
    for name, (chosen, slopes) in helpers.central_differences(s.network, "ce", batch).items():
        np.testing.assert_allclose(found[name].reshape(-1)[chosen], slopes, rtol=1e-6, atol=1e-8)


def test_dummy_criterion_passes_the_given_gradient(helpers):
    s = helpers.Sketch()
    o, g, x, b = s.input("o", 1), s.input("g", 2), s.input("x", 2), s.parameter("b", 2)
    s("DummyCriterion", o, g, s("Plus", x, b), name="cost")
    gradient = s.random.normal(size=(1, 3, 2))
    inputs = {"o": np.array([1.0, 2, 3]).reshape(1, 3, 1), "g": gradient, "x": np.zeros((1, 3, 2))}
    total, found = helpers.gradients(s.network, "cost", helpers.Batch(inputs))
    assert total == 6
    np.testing.assert_allclose(found["b"], gradient.sum(axis=(0, 1)))


def test_unpooling_puts_values_at_the_first_maximum(helpers):
    s = helpers.Sketch()
    image = s.input("image", 4, 2, 1)
    pooled = s("Pooling", image, kind="max", kernelShape=(2, 2), stride=(2, 2), autoPadding=(False,))
    s("MaxUnpooling", pooled, image, kernelShape=(2, 2), stride=(2, 2), autoPadding=(False,), name="unpooled")
    batch = helpers.Batch({"image": np.array([1.0, 9, 2, 5, 3, 4, 2, 5]).reshape(1, 1, 8)})
    value = helpers.run(s.network, ["unpooled"], batch)["unpooled"]
    assert value.reshape(-1).tolist() == [0, 9, 0, 5, 0, 0, 0, 0]


def test_max_pooling_gradient_goes_to_the_first_maximum(helpers):
    s = helpers.Sketch()
    p = s.parameter("p", 4, 2, 1, value=np.ones((4, 2, 1)))
    x = s.input("x", 4, 2, 1)
    s("SumElements", s("MaxPooling", s("Plus", x, p), **POOL), name="total")
    _, found = helpers.gradients(s.network, "total", helpers.Batch({"x": np.zeros((1, 1, 8))}))
    assert found["p"].reshape(-1).tolist() == [1, 0, 1, 0, 0, 0, 0, 0]


@pytest.mark.thorough
def test_classes_of_any_size_in_a_large_vocabulary(helpers):
    s = helpers.Sketch()
    labels, h = s.input("labels", 4), s.input("h", 3)
    w, score = s.parameter("w", 3, 600), s.input("score", 2)
    s("ClassBasedCrossEntropyWithSoftmax", labels, h, w, score, name="ce")
    hidden = s.random.normal(size=(1, 2, 3))
    for first, last in ((590, 600), (10, 60), (0, 600)):
        word = last - 1
        data = np.array([[[word, 1, first, last], [first, 0, first, last]]], float)
        batch = helpers.Batch({"labels": data, "h": hidden, "score": np.zeros((1, 2, 2))})
        logits = [np.log(softmax(w.matrix()[:, first:last].T @ hidden[0, k])) for k in range(2)]
        expected = 2 * np.log(2) - logits[0][-1] - logits[1][0]
        np.testing.assert_allclose(helpers.run(s.network, ["ce"], batch)["ce"], [expected])
    for wrong in ([5, 0, 6, 9], [5, 0, 5, 5], [5, 2, 5, 6], [600, 0, 590, 601]):
        data = np.array([[[1, 0, 0, 2], wrong]], float)
        batch = helpers.Batch({"labels": data, "h": hidden, "score": np.zeros((1, 2, 2))})
        assert np.isnan(helpers.run(s.network, ["ce"], batch)["ce"]).all()
