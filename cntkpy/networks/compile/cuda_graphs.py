"""Loops over minibatches that a CUDA device runs by itself, as one CUDA graph.

Otherwise the host starts the kernels of every round, and waits after every round for whether there is another. The
results are the same. Numbers: docs/decisions/2026-11-27-loops-as-cuda-graphs.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from cntkpy.networks.arrays.lazy import jax

if TYPE_CHECKING:
    from cntkpy.networks.arrays.lazy import Array, Device

    class Compiled(Protocol):
        """A compiled program; JAX's own class is annotated in part."""

        def __call__(self, *arguments: object) -> Sequence[Array]: ...

    class Lowered(Protocol):
        """A program before it is compiled; JAX's own class is annotated in part."""

        def as_text(self) -> str: ...
        def compile(self, compiler_options: Mapping[str, object] | None = None) -> Compiled: ...


__all__ = ["compile_lowered", "has_one_simple_loop"]

WHOLE_LOOP: dict[str, Any] = {
    "xla_gpu_enable_command_buffer": "FUSION,CUBLAS,CUBLASLT,CUDNN,CUSTOM_CALL,DYNAMIC_SLICE_FUSION,CONDITIONAL,WHILE",
    "xla_gpu_graph_min_graph_size": 1,  # a loop is one command
}
"""Options of XLA: what it records in graphs without being asked for, and loops."""


def compile_lowered(lowered: Lowered, devices: Sequence[Device]) -> Compiled:
    """Compile a result of `jax.jit(...).lower` for these devices."""
    is_one_cuda = len(devices) == 1 and "cuda" in devices[0].client.platform_version
    if is_one_cuda and has_one_simple_loop(lowered.as_text()):
        try:
            return lowered.compile(compiler_options=WHOLE_LOOP)
        except jax.errors.JaxRuntimeError as error:
            if "xla_gpu" not in str(error):
                raise
            # This version of XLA does not know one of the options.
    return lowered.compile()


def has_one_simple_loop(text: str) -> bool:
    """Return whether a program in StableHLO has one loop without convolutions.

    A loop inside of the loop is slower in a graph, and XLA does not record convolutions.
    """
    return text.count("stablehlo.while") == 1 and "stablehlo.convolution" not in text
