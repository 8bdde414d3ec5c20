"""Every function of the network language where products are computed in 16 bits.

The operands of each case are products, so that they are of the short type. Their values are numbers of that type, so
that only the function itself rounds.
"""

import jax.numpy as jnp
import numpy as np
import pytest

from .node_cases import CASES, FRAMES_ONLY
from .test_nodes import FRAMES, LENGTHS, SHORT, SPECIAL_GRADIENT, Built, nodes, weighted_sum

TOLERANCE = {short: 8 * float(jnp.finfo(short).eps) for short in SHORT}
"""Relative to the largest element."""


def _is_quick(number, case, short):
    return short == "bfloat16" and number % 24 == 0 and not case[0].startswith(("gru", "lstm"))


@pytest.mark.parametrize(
    "case, short",
    [
        pytest.param(
            case, short, id=f"{case[0]}-{short}", marks=[] if _is_quick(n, case, short) else pytest.mark.thorough
        )
        for n, case in enumerate(CASES)
        for short in SHORT
        if case[1] != "DummyCriterion"  # its operands are inputs
    ],
)
def test_value_and_gradient(case, short, helpers):
    """The value is that of the formula, the gradients are those of the same network in double precision."""
    lengths = FRAMES if case[0] in FRAMES_ONLY else LENGTHS
    built = Built(helpers, case, lengths, short=short)
    value = helpers.run(built.sketch.network, ["result"], built.batch)["result"]
    assert value.dtype == np.float32
    expected = built.expected(case)
    if built.result.has_layout:
        cells = list(expected)
        value = np.array([value[cell].transpose() for cell in cells])
        expected = np.array([expected[cell] for cell in cells])
    else:
        value = value.transpose()
    value, expected = np.squeeze(value), np.squeeze(expected)
    np.testing.assert_allclose(value, expected, rtol=0, atol=TOLERANCE[short] * max(1, np.abs(expected).max()))
    special = case[0] in SPECIAL_GRADIENT or case[0] == "top_k"  # rounding changes which elements are the largest
    if short == "bfloat16" and not special and nodes.find(case[1]).differentiable:
        _compare_gradients(Built(helpers, case, lengths, moved=True, short=short), short, helpers)


def _compare_gradients(built, short, helpers):
    s, result = built.sketch, weighted_sum(built)
    _, found = helpers.gradients(s.network, result.name, built.batch)
    s.network.precision = "double"
    _, expected = helpers.gradients(s.network, result.name, built.batch)
    largest = max(np.abs(one).max() for one in expected.values())
    for name, gradient in found.items():
        assert gradient.dtype == np.float32
        error = np.abs(gradient - expected[name]).max()
        assert error <= 4 * TOLERANCE[short] * largest, name
