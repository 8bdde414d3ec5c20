"""What programs do with functions besides training them: names, graphs, copies, files, values, gradients."""

from __future__ import print_function

import cntk as C
import numpy as np
from cntk.logging import graph
from cntk.ops.functions import BlockFunction, CloneMethod, Function, ModelFormat

np.random.seed(0)
C.cntk_py.set_fixed_random_seed(1)
C.logging.set_trace_level(C.logging.TraceLevel.Error)
print(C.__version__, [str(device) for device in C.device.all_devices()], C.device.use_default_device())

# operators, slices and shapes
x = C.input_variable((2, 3), name="x")
y = C.input_variable(3, name="y")
p = C.parameter((3, 4), init=np.arange(12).reshape(3, 4).astype(np.float32), name="p")
c = C.constant(2.0, name="c")
f = C.plus(C.times(x, p), c, name="f")
assert f.shape == (2, 4) and f.output.shape == (2, 4) and f.dynamic_axes == x.dynamic_axes
assert [one.name for one in f.arguments] == ["x"] and [one.name for one in f.parameters] == ["p"]
assert "c" in [one.name for one in f.constants]
assert f.root_function.op_name == "Plus"
assert {one.name for one in f.root_function.inputs} >= {"c"}
assert f.uid != f.p.uid and p.uid in [one.uid for one in f.parameters]
assert x.is_input and p.is_parameter and c.is_constant and not x.is_placeholder and f.output.is_output
assert f.output.owner.uid == f.root_function.uid
data = np.random.rand(5, 2, 3).astype(np.float32)
expected = data.dot(p.value) + 2
np.testing.assert_allclose(f.eval({x: data}), expected, rtol=1e-5)
np.testing.assert_allclose(f(data), expected, rtol=1e-5)
np.testing.assert_allclose(f.eval(data), expected, rtol=1e-5)
np.testing.assert_allclose(f.eval([one for one in data]), expected, rtol=1e-5)
np.testing.assert_allclose(f[0].eval({x: data}), expected[:, :1], rtol=1e-5)
np.testing.assert_allclose(f[1, 1:3].eval({x: data}), expected[:, 1:, 1:3], rtol=1e-5)
g = C.greater(C.abs(-f) * f / 3, 40) * 1.0
np.testing.assert_allclose(g.eval({x: data}), expected**2 / 3 > 40)
h = 1 - (f @ C.constant(np.ones((4, 1), np.float32)))
np.testing.assert_allclose(h.eval({x: data}), 1 - expected.sum(-1, keepdims=True), rtol=1e-4)
chained = x >> (lambda v: C.times(v, p)) >> C.relu >> C.reduce_sum
np.testing.assert_allclose(np.ravel(chained.eval({x: data})), np.maximum(expected - 2, 0).sum((1, 2)), rtol=1e-4)

# values of parameters
p.value = p.value * 2
assert p.value[2, 3] == 22 and p.shape == (3, 4) and p.dtype == np.float32 and np.asarray(p).shape == (3, 4)
p.value = np.ones((3, 4), np.float32)
assert c.value == 2

# several outputs
both = C.combine([f, C.sigmoid(f, name="s")], name="both")
values = both.eval({x: data})
assert set(values) == set(both.outputs) and len(both.outputs) == 2
(only,) = [both.eval({x: data}, outputs=[both.outputs[1]])]
only = list(only.values())[0] if isinstance(only, dict) else only
np.testing.assert_allclose(only, 1 / (1 + np.exp(-values[both.outputs[0]])), rtol=1e-4)
assert both.outputs[1].name == "s"

# gradients of everything
loss = C.reduce_sum(C.square(C.times(x, p) - y[0]), name="loss")
point = {x: data, y: np.random.rand(5, 3).astype(np.float32)}
grads = loss.grad(point, wrt=[x, p])
error = data.dot(p.value) - point[y][:, 0].reshape(5, 1, 1)
np.testing.assert_allclose(grads[p], np.einsum("nij,nik->jk", data, 2 * error), rtol=1e-4)
np.testing.assert_allclose(grads[x], 2 * error.dot(p.value.T), rtol=1e-4)
single = loss.grad(point, wrt=[p])
np.testing.assert_allclose(single, grads[p])
state, results = loss.forward(point, [loss.output], set([loss.output]))
back = loss.backward(state, {loss.output: np.ones_like(results[loss.output])}, set([p, x]))
np.testing.assert_allclose(back[p], grads[p], rtol=1e-4)

# layers and their names
with C.layers.default_options(init=C.he_uniform(), activation=C.relu):
    net = C.layers.Sequential(
        [
            C.layers.Dense(5, name="first"),
            C.layers.Dense(6, name="second"),
            C.layers.Dense(2, activation=None, name="third"),
        ]
    )
z = net(y)
assert net.first.W.shape == (3, 5) and z.second.b.shape == (6,) and len(z.parameters) == 6
names = [one.name for one in graph.depth_first_search(z, lambda one: one.name in ("first", "second", "third"))]
assert set(names) == {"first", "second", "third"}
assert graph.find_by_name(z, "second").shape == (6,) and z.find_by_name("none") is None
assert len(graph.find_all_with_name(z, "")) > 0 and graph.find_by_uid(z, z.uid) is not None
assert len(z.find_all_with_name("W")) == 3
print(graph.plot(z).splitlines()[0])
print(z, net, z.parameters[0], x, p)

# a part, from the middle to the end
middle = C.input_variable(6)
tail = z.clone(CloneMethod.share, {z.second: middle})
assert tail.arguments == (middle,) or list(tail.arguments) == [middle]
assert set(tail.parameters) < set(z.parameters)
steps = C.combine([z.second.owner]).eval({y: point[y]})
np.testing.assert_allclose(tail.eval({middle: steps}), z.eval({y: point[y]}), rtol=1e-5)

# copies
for method, same, trainable in [
    (CloneMethod.share, True, 6),
    (CloneMethod.clone, False, 6),
    (CloneMethod.freeze, False, 0),
]:
    copy = z.clone(method, {y: C.placeholder(name="hole")})
    assert len(copy.parameters) == trainable and len(copy.placeholders) == 1
    copy.replace_placeholders({copy.placeholders[0]: y})
    np.testing.assert_allclose(copy.eval({y: point[y]}), z.eval({y: point[y]}))
    assert (set(copy.parameters) == set(z.parameters)) == same
word = z.clone("clone")
before = z.eval({y: point[y]})
word.first.W.value = np.zeros((3, 5), np.float32)
np.testing.assert_array_equal(z.eval({y: point[y]}), before)

# files: a function, its values into another one, and the whole state of a trainer
z.save("z.model")
loaded = Function.load("z.model", device=C.cpu())
np.testing.assert_allclose(loaded.eval({loaded.arguments[0]: point[y]}), before)
np.testing.assert_allclose(C.load_model("z.model", format=ModelFormat.CNTKv2)(point[y]), before)
z.first.W.value = z.first.W.value + 1
z.restore("z.model")
np.testing.assert_allclose(z.eval({y: point[y]}), before)
label = C.input_variable(2)
trainer = C.Trainer(z, (C.squared_error(z, label),), C.sgd(z.parameters, 0.01))
batch = {y: point[y], label: np.ones((5, 2), np.float32)}
trainer.train_minibatch(batch)
trainer.save_checkpoint("trainer.ckp", external_state={"epoch": 3, "order": [1, 2]})
kept = z.eval({y: point[y]})
trainer.train_minibatch(batch)
assert np.abs(z.eval({y: point[y]}) - kept).max() > 0
assert trainer.restore_from_checkpoint("trainer.ckp") == {"epoch": 3, "order": [1, 2]}
np.testing.assert_array_equal(z.eval({y: point[y]}), kept)
assert trainer.total_number_of_samples_seen == 5 and trainer.parameter_learners[0].parameters == z.parameters


# functions of Python
@Function
def scaled(v, factor=2):
    return v * factor


@BlockFunction("Halve", "half")
def halve(v):
    return v / 2


assert scaled(y).eval({y: point[y]}).shape == (5, 3)
np.testing.assert_allclose(halve(y).eval({y: point[y]}), point[y] / 2)
with C.layers.default_options(dtype=np.float64):
    d = C.layers.Dense(2)(C.input_variable(3))
assert d.W.dtype == np.float64 and d.eval(np.ones((1, 3))).dtype == np.float64
print("done: 1")
