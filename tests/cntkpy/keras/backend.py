"""Functions of the backend, `K`, against NumPy: of variables, and of placeholders with a minibatch."""

import numpy as np
from keras import backend as K

r = np.random.RandomState(0)
A = r.rand(3, 4).astype("f") + 0.1
B = r.rand(3, 4).astype("f") + 0.1
T = r.rand(2, 3, 4).astype("f")
V = K.variable
bad = []


def chk(name, f, want, tol=1e-4):
    try:
        got = f()
        got = K.eval(got) if not isinstance(got, (np.ndarray, float, int, tuple, list, bool, type(None))) else got
        np.testing.assert_allclose(np.squeeze(np.asarray(got)), np.squeeze(np.asarray(want)), rtol=tol, atol=tol)
    except Exception as e:
        bad.append(name)
        print("BAD", name, type(e).__name__, str(e).strip().replace("\n", " ")[:230])


sig = lambda x: 1 / (1 + np.exp(-x))
sm = lambda x: np.exp(x - x.max(-1, keepdims=True)) / np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True)
for n, f in dict(
    exp=np.exp,
    log=np.log,
    sqrt=np.sqrt,
    square=np.square,
    abs=np.abs,
    sign=np.sign,
    round=np.round,
    sin=np.sin,
    cos=np.cos,
    sigmoid=sig,
    tanh=np.tanh,
    softmax=sm,
    softplus=lambda x: np.log1p(np.exp(x)),
    softsign=lambda x: x / (1 + abs(x)),
    relu=lambda x: np.maximum(x, 0),
    elu=lambda x: np.where(x > 0, x, np.exp(x) - 1),
    hard_sigmoid=lambda x: np.clip(0.2 * x + 0.5, 0, 1),
    identity=lambda x: x,
    transpose=np.transpose,
    zeros_like=np.zeros_like,
    ones_like=np.ones_like,
).items():
    x = A if n in ("log", "sqrt") else A - 0.5
    chk(n, lambda: getattr(K, n)(V(x)), f(x))
chk("relu alpha", lambda: K.relu(V(A - 0.5), alpha=0.1), np.where(A > 0.5, A - 0.5, 0.1 * (A - 0.5)))
chk("relu max", lambda: K.relu(V(A), max_value=0.5), np.clip(A, 0, 0.5))
chk("relu threshold", lambda: K.relu(V(A), threshold=0.5), np.where(A >= 0.5, A, 0))
for n in ("sum", "mean", "max", "min", "prod", "std", "var"):
    for ax in (None, 0, 1, -1):
        for kd in (False, True):
            chk(
                "%s %s %s" % (n, ax, kd),
                lambda: getattr(K, n)(V(T), axis=ax, keepdims=kd),
                getattr(np, n)(T, axis=ax, keepdims=kd),
            )
chk("sum axes", lambda: K.sum(V(T), axis=[1, 2]), T.sum((1, 2)))
for n in ("cumsum", "cumprod"):
    if hasattr(K, n):
        chk(n, lambda: getattr(K, n)(V(T), axis=1), getattr(np, n)(T, axis=1))
chk("any", lambda: K.any(V(A), axis=1), (A != 0).any(1))
chk("all", lambda: K.all(V(A), axis=1), (A != 0).all(1))
chk("argmax", lambda: K.argmax(V(A)), A.argmax(-1))
chk("argmin", lambda: K.argmin(V(A)), A.argmin(-1))
chk("argmax 0", lambda: K.argmax(V(A), axis=0), A.argmax(0))
chk("logsumexp", lambda: K.logsumexp(V(A), axis=1), np.log(np.exp(A).sum(1)))
chk("pow", lambda: K.pow(V(A), 3), A**3)
chk("clip", lambda: K.clip(V(A), 0.3, 0.6), np.clip(A, 0.3, 0.6))
for n, f in dict(
    equal=np.equal,
    not_equal=np.not_equal,
    greater=np.greater,
    greater_equal=np.greater_equal,
    less=np.less,
    less_equal=np.less_equal,
    maximum=np.maximum,
    minimum=np.minimum,
).items():
    chk(n, lambda: getattr(K, n)(V(A), V(B)), f(A, B))
chk("dot", lambda: K.dot(V(A), V(B.T.copy())), A @ B.T)
chk("dot3", lambda: K.dot(V(T), V(B.T.copy())), T @ B.T)
chk("batch_dot", lambda: K.batch_dot(V(T), V(T), axes=(2, 2)), np.einsum("bik,bjk->bij", T, T))
chk("batch_dot2", lambda: K.batch_dot(V(A), V(B), axes=1), (A * B).sum(1))
chk("gather", lambda: K.gather(V(A), V(np.array([2, 0]))), A[[2, 0]])
chk("concat", lambda: K.concatenate([V(A), V(B)], axis=-1), np.concatenate([A, B], -1))
chk("concat0", lambda: K.concatenate([V(A), V(B)], axis=0), np.concatenate([A, B], 0))
chk("reshape", lambda: K.reshape(V(A), (4, 3)), A.reshape(4, 3))
chk("permute", lambda: K.permute_dimensions(V(T), (2, 0, 1)), T.transpose(2, 0, 1))
chk("repeat_elements", lambda: K.repeat_elements(V(T), 2, axis=1), T.repeat(2, 1))
chk("tile", lambda: K.tile(V(A), (1, 2)), np.tile(A, (1, 2)))
chk("expand", lambda: K.expand_dims(V(A), -1), A[..., None])
chk("expand1", lambda: K.expand_dims(V(A), 1), A[:, None])
chk("squeeze", lambda: K.squeeze(V(A[:, None]), 1), A)
chk("stack", lambda: K.stack([V(A), V(B)], axis=1), np.stack([A, B], 1))
chk("reverse", lambda: K.reverse(V(A), 1), A[:, ::-1])
chk("slice", lambda: K.slice(V(A), (0, 1), (3, 2)) if hasattr(K, "slice") else A[:, 1:3], A[:, 1:3])
chk("one_hot", lambda: K.one_hot(V(np.array([0, 2])), 3), np.eye(3)[[0, 2]])
chk("eye", lambda: K.eye(3), np.eye(3))
chk("zeros", lambda: K.zeros((2, 3)), np.zeros((2, 3)))
chk("ones", lambda: K.ones((2, 3)), np.ones((2, 3)))
chk("constant", lambda: K.constant(3.0, shape=(2, 2)), np.full((2, 2), 3.0))
P = sm(A)
chk("cce", lambda: K.categorical_crossentropy(V(np.eye(4)[[0, 1, 2]]), V(P)), -np.log(P[[0, 1, 2], [0, 1, 2]]))
chk(
    "scce",
    lambda: K.sparse_categorical_crossentropy(V(np.array([[0], [1], [2]])), V(P)),
    -np.log(P[[0, 1, 2], [0, 1, 2]]),
)
chk(
    "bce",
    lambda: K.binary_crossentropy(V(np.round(B)), V(P)),
    -(np.round(B) * np.log(P) + (1 - np.round(B)) * np.log(1 - P)),
)
chk("in_top_k", lambda: K.in_top_k(V(P), V(np.array([0, 1, 2])), 2), [i in np.argsort(-P[i])[:2] for i in range(3)])
chk("l2", lambda: K.l2_normalize(V(A), axis=1), A / np.sqrt((A**2).sum(1, keepdims=True)))
chk("switch", lambda: K.switch(K.greater(V(A), 0.5), V(A), V(B)), np.where(A > 0.5, A, B))
chk("bias_add", lambda: K.bias_add(V(A), V(np.arange(4.0))), A + np.arange(4))
chk("dropout0", lambda: K.dropout(V(A), 0.0), A)
I = r.rand(2, 5, 5, 3).astype("f")
W = r.rand(3, 3, 3, 2).astype("f")


def conv(I, W, pad=0):
    I = np.pad(I, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    h = I.shape[1] - 2
    w = I.shape[2] - 2
    return sum(np.einsum("bhwc,cf->bhwf", I[:, i : i + h, j : j + w], W[i, j]) for i in range(3) for j in range(3))


def ph(fn, *arrs):
    ps = [K.placeholder(shape=(None,) + a.shape[1:]) for a in arrs]
    return K.function(ps, [fn(*ps)])(list(arrs))[0]


chk(
    "conv2d valid", lambda: ph(lambda x: K.conv2d(x, V(W), padding="valid", data_format="channels_last"), I), conv(I, W)
)
chk(
    "conv2d same",
    lambda: ph(lambda x: K.conv2d(x, V(W), padding="same", data_format="channels_last"), I),
    conv(I, W, 1),
)
chk(
    "conv2d strides",
    lambda: ph(lambda x: K.conv2d(x, V(W), strides=(2, 2), padding="valid", data_format="channels_last"), I),
    conv(I, W)[:, ::2, ::2],
)
chk(
    "conv1d",
    lambda: ph(lambda x: K.conv1d(x, V(W[0]), padding="valid", data_format="channels_last"), I[:, 0]),
    sum(np.einsum("bhc,cf->bhf", I[:, 0, i : i + 3], W[0, i]) for i in range(3)),
)
chk(
    "depthwise",
    lambda: ph(lambda x: K.depthwise_conv2d(x, V(W[..., :1]), padding="valid", data_format="channels_last"), I),
    sum(I[:, i : i + 3, j : j + 3] * W[i, j, :, 0] for i in range(3) for j in range(3)),
)
chk(
    "conv2d_transpose",
    lambda: (
        ph(
            lambda x: K.conv2d_transpose(x, V(W), (None, 7, 7, 3), padding="valid", data_format="channels_last"),
            r.rand(2, 5, 5, 2).astype("f"),
        ).shape
    ),
    (2, 7, 7, 3),
)
chk(
    "pool max",
    lambda: ph(
        lambda x: K.pool2d(x, (2, 2), strides=(2, 2), data_format="channels_last", pool_mode="max"), I[:, :4, :4]
    ),
    I[:, :4, :4].reshape(2, 2, 2, 2, 2, 3).max((2, 4)),
)
chk(
    "pool avg",
    lambda: ph(
        lambda x: K.pool2d(x, (2, 2), strides=(2, 2), data_format="channels_last", pool_mode="avg"), I[:, :4, :4]
    ),
    I[:, :4, :4].reshape(2, 2, 2, 2, 2, 3).mean((2, 4)),
)
chk("resize", lambda: ph(lambda x: K.resize_images(x, 2, 2, "channels_last"), I), I.repeat(2, 1).repeat(2, 2))
chk(
    "pad2d",
    lambda: ph(lambda x: K.spatial_2d_padding(x, data_format="channels_last"), I),
    np.pad(I, ((0, 0), (1, 1), (1, 1), (0, 0))),
)
chk("tpad", lambda: ph(lambda x: K.temporal_padding(x), I[:, 0]), np.pad(I[:, 0], ((0, 0), (1, 1), (0, 0))))
# placeholders with batch axis
for n, f in dict(sum=np.sum, mean=np.mean, max=np.max).items():
    for ax in (None, 0, 1, -1):
        chk("ph %s %s" % (n, ax), lambda: ph(lambda x: getattr(K, n)(x, axis=ax), T), f(T, axis=ax))
chk("ph dot", lambda: ph(lambda x: K.dot(x, V(B.T.copy())), T), T @ B.T)
chk("ph batch_dot", lambda: ph(lambda x, y: K.batch_dot(x, y, axes=(2, 2)), T, T), np.einsum("bik,bjk->bij", T, T))
chk("ph softmax", lambda: ph(lambda x: K.softmax(x), T), sm(T))
chk("ph permute", lambda: ph(lambda x: K.permute_dimensions(x, (0, 2, 1)), T), T.transpose(0, 2, 1))
chk("ph reshape", lambda: ph(lambda x: K.reshape(x, (-1, 12)), T), T.reshape(-1, 12))
chk("ph flatten", lambda: ph(lambda x: K.batch_flatten(x), T), T.reshape(2, 12))
chk("ph concat", lambda: ph(lambda x: K.concatenate([x, x], axis=1), T), np.concatenate([T, T], 1))
chk("ph repeat", lambda: ph(lambda x: K.repeat(x, 3), A), A[:, None].repeat(3, 1))
chk("ph l2", lambda: ph(lambda x: K.l2_normalize(x, -1), A), A / np.sqrt((A**2).sum(1, keepdims=True)))
v = V(A)
K.set_value(v, B)
chk("set_value", lambda: K.get_value(v), B)
chk("batch_get", lambda: K.batch_get_value([v, v])[1], B)
for n, a in (
    ("random_uniform", ((3, 4),)),
    ("random_normal", ((3, 4),)),
    ("truncated_normal", ((3, 4),)),
    ("random_binomial", ((3, 4), 0.5)),
):
    chk(n, lambda: np.asarray(K.eval(getattr(K, n)(*a))).shape, (3, 4))
chk("foldl", lambda: K.foldl(lambda a, b: a + b, V(A)), A.sum(0))
chk("foldr", lambda: K.foldr(lambda a, b: a + b, V(A)), A.sum(0))
assert K.int_shape(V(A)) == (3, 4) and K.ndim(V(A)) == 2 and K.count_params(V(A)) == 12 and K.dtype(V(A)) == "float32"
assert not bad, bad
