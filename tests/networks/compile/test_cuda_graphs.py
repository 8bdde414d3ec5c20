"""Which programs are compiled for CUDA as one graph, and with which options."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cntkpy.networks.arrays.lazy import jax, jnp
from cntkpy.networks.compile import cuda_graphs
from cntkpy.networks.compile.cuda_graphs import compile_lowered, has_one_simple_loop

CUDA = SimpleNamespace(client=SimpleNamespace(platform_version="PJRT C API\ncuda 13000"))
CPU = SimpleNamespace(client=SimpleNamespace(platform_version="cpu"))
X = np.eye(4, dtype=np.float32)


def loop(x: Any) -> Any:
    """One loop."""
    return jax.lax.fori_loop(0, 3, lambda k, y: jnp.tanh(y @ x), x)


def loop_in_loop(x: Any) -> Any:
    """As a network with a recurrence."""
    return jax.lax.fori_loop(0, 3, lambda k, y: loop(y), x)


def convolutions(x: Any) -> Any:
    """A loop of convolutions."""
    kernel = jnp.ones((1, 1, 1, 1), jnp.float32)

    def body(k: Any, y: Any) -> Any:
        return jax.lax.conv_general_dilated(y, kernel, (1, 1), "SAME")

    return jax.lax.fori_loop(0, 3, body, x[None, None])


@pytest.mark.parametrize(
    ("function", "expected"), [(loop, True), (loop_in_loop, False), (convolutions, False), (jnp.tanh, False)]
)
def test_only_a_loop_without_loops_and_convolutions_is_simple(function: Any, expected: bool) -> None:
    assert has_one_simple_loop(jax.jit(function).lower(X).as_text()) is expected


def test_xla_knows_the_options() -> None:
    """A CPU takes options for GPUs, too, and refuses those that it does not know."""
    np.testing.assert_array_equal(jax.jit(loop).lower(X).compile(cuda_graphs.WHOLE_LOOP)(X), loop(X))


class Lowered:
    """A lowered program that notes the options it is compiled with, and refuses some."""

    def __init__(self, refused: str = "") -> None:
        self.refused, self.options = refused, list[Any]()

    def as_text(self) -> str:
        """In StableHLO."""
        return "stablehlo.while"

    def compile(self, compiler_options: Any = None) -> str:
        """Not compiled."""
        self.options.append(compiler_options)
        if compiler_options and self.refused:
            raise jax.errors.JaxRuntimeError(self.refused)
        return "compiled"


@pytest.mark.parametrize(("devices", "options"), [([CUDA], cuda_graphs.WHOLE_LOOP), ([CPU], None), ([CUDA] * 2, None)])
def test_options_are_for_one_cuda_device(devices: list[Any], options: Any) -> None:
    lowered = Lowered()
    assert compile_lowered(lowered, devices) == "compiled"
    assert lowered.options == [options]


def test_an_unknown_option_is_left_out_and_other_errors_are_raised() -> None:
    lowered = Lowered("While setting option xla_gpu_enable_command_buffer, 'WHILE' is not a valid enum value.")
    assert compile_lowered(lowered, [CUDA]) == "compiled"
    assert lowered.options == [cuda_graphs.WHOLE_LOOP, None]
    with pytest.raises(jax.errors.JaxRuntimeError, match="out of memory"):
        compile_lowered(Lowered("out of memory"), [CUDA])
