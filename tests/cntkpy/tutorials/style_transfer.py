"""Paint one picture in the manner of another: the input is what changes, SciPy's L-BFGS takes the gradients."""

from __future__ import print_function

import cntk as C
import numpy as np
import scipy.optimize

rng = np.random.RandomState(5)
SIZE = 24


def filters(count, channels):
    return (rng.randn(count, channels, 3, 3) * np.sqrt(2.0 / (9 * channels))).astype(np.float32)


class Extractor(object):
    """Random frozen convolutions; `maps` are those after each of them."""

    def __init__(self, picture):
        self.maps = []
        found = picture - 100
        for block, width in enumerate([8, 16]):
            for number in range(2):
                kernel = C.constant(filters(width, found.shape[0]), name="kernel{}{}".format(block, number))
                found = C.relu(C.convolution(kernel, found, auto_padding=[False, True, True]))
                found = C.alias(found, name="map{}{}".format(block, number))
                self.maps.append(found)
            found = C.pooling(found, C.AVG_POOLING, (2, 2), strides=(2, 2))
        self.function = C.combine(self.maps)

    def describe(self, pixels):
        """The maps of a picture as NumPy arrays, in their order."""
        _, values = self.function.forward({self.function.arguments[0]: pixels[np.newaxis]}, self.function.outputs)
        assert set(values) == set(self.function.outputs)
        return [values[one.output][0] for one in self.maps]


def correlations(maps):
    """A matrix of products of channels."""
    channels = maps.shape[0]
    rows = C.reshape(maps, (channels, -1)) if isinstance(maps, C.Function) else maps.reshape(channels, -1)
    if isinstance(maps, C.Function):
        return C.times_transpose(rows, rows) / rows.shape[1]
    return rows.dot(rows.T) / rows.shape[1]


def roughness(picture):
    """Squares of the differences of neighbours, by slices."""
    down = C.slice(picture, 1, 1, 0) - C.slice(picture, 1, 0, -1)
    across = C.slice(picture, axis=2, begin_index=1, end_index=SIZE) - picture[:, :, : SIZE - 1]
    return C.reduce_mean(C.square(down), axis=[0, 1, 2], keepdims=False) + C.reduce_mean(
        across * across, axis=(0, 1, 2), keepdims=False
    )


at = np.arange(SIZE)
waves = np.stack([np.sin(at * k)[:, None] * np.cos(at * k / 2)[None] for k in (0.9, 1.3, 1.9)])
disc = ((at[:, None] - 12) ** 2 + (at[None] - 12) ** 2 < 60).astype(float)
style = (waves * 90 + 120).astype(np.float32)
content = (np.stack([disc, disc / 2, 1 - disc]) * 150 + 40).astype(np.float32)

pixels = C.input_variable((3, SIZE, SIZE), needs_gradient=True, name="pixels")
extractor = Extractor(pixels)
of_style, of_content = extractor.describe(style), extractor.describe(content)
assert [one.shape for one in of_style] == [(8, 24, 24), (8, 24, 24), (16, 12, 12), (16, 12, 12)]

terms = [0.05 * roughness(pixels)]
for number, maps in enumerate(extractor.maps):
    scale = 1.0 / np.mean(correlations(of_style[number]) ** 2)
    distance = C.squared_error(correlations(maps), correlations(of_style[number]))
    terms.append(1000.0 * scale / maps.shape[0] ** 2 * distance)
terms.append(C.reduce_mean(C.square(extractor.maps[-1] - of_content[-1]), keepdims=False))
loss = C.sum(*[C.reshape(term, (1,)) for term in terms], name="loss")
assert loss.shape == (1,) and len(loss.parameters) == 0 and len(loss.constants) >= 4


def value_and_gradient(flat):
    picture = flat.reshape(1, 3, SIZE, SIZE).astype(np.float32)
    state, values = loss.forward({pixels: picture}, [loss.output], set([loss.output]))
    back = loss.backward(state, {loss.output: np.ones((1, 1), np.float32)}, set([pixels]))
    gradient = back[pixels] if isinstance(back, dict) else back
    return float(values[loss.output].sum()), gradient.astype(np.float64).ravel()


start = (content / 2 + 60 + 20 * rng.randn(3, SIZE, SIZE)).astype(np.float64).ravel()
before, gradient = value_and_gradient(start)
found, after, report = scipy.optimize.fmin_l_bfgs_b(
    value_and_gradient, start, bounds=[(0, 255)] * start.size, maxfun=60
)
print("loss {:.2f} -> {:.2f} in {} calls".format(before, after, report["funcalls"]))
print("loss ratio: {:.4f}".format(after / before))

# the same gradient by `grad`, which may give the value with it, and by differences
picture = start.reshape(1, 3, SIZE, SIZE).astype(np.float32)
np.testing.assert_allclose(loss.grad({pixels: picture}).ravel(), gradient, rtol=1e-3, atol=1e-3)
again, value = loss.grad({pixels: picture}, wrt=[pixels], outputs=[loss.output])
np.testing.assert_allclose(np.ravel(again), gradient, rtol=1e-3, atol=1e-3)
value = value[loss.output] if isinstance(value, dict) else value
np.testing.assert_allclose(np.ravel(value), before, rtol=1e-4)
direction = rng.randn(start.size)
higher, lower = (loss.eval({pixels: (start + step * direction).reshape(picture.shape)}) for step in (0.05, -0.05))
slope = (higher - lower).item() / 0.1
print("gradient error: {:.4f}".format(abs(slope - gradient.dot(direction)) / abs(slope)))
