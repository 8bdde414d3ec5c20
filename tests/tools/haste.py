"""How carefully XLA compiles the programs of a test: as for users, or in a fifth of the time.

In haste XLA optimises little, and LLVM gets one module of a few kernels in place of one for each fused operation.
"""

import functools
import os
import sys
from typing import Any

SETTING = "jax_disable_most_optimizations"
OPTIONS = {"xla_cpu_use_fusion_emitters": False, "xla_cpu_parallel_codegen_split_count": 1}


def switch(haste: bool) -> None:
    """Compile in haste, or as for users, from now on; processes that are started do as this one does."""
    _set(SETTING.upper(), "1" if haste else "")
    if "numba.core.targetconfig" in sys.modules:
        _compare_flags_of_numba_quickly()
    jax = sys.modules.get("jax")
    if jax is None:
        return
    of_the_user, in_haste = _flags()
    flags = in_haste if haste else of_the_user
    if jax.config.values[SETTING] != haste or os.environ.get("XLA_FLAGS", "") != flags:
        jax.config.update(SETTING, haste)
        _set("XLA_FLAGS", flags)
        executables = sys.modules.get("cntkpy.networks.compile.executables")
        if executables is not None:  # the names of kept programs tell of settings and flags
            executables._surroundings.cache_clear()


def environment() -> dict[str, str]:
    """What a process has in its environment that compiles in haste, whatever this one does."""
    return {SETTING.upper(): "1", "XLA_FLAGS": _flags()[1]}


def _set(name: str, value: str) -> None:
    if value:
        os.environ[name] = value
    else:
        os.environ.pop(name, None)


@functools.cache
def _compare_flags_of_numba_quickly() -> None:
    """Numba looks up each call that it compiles by all its flags, and gets each by a property: a tenth of its time.

    The hash and the values are those that Numba computes.
    """
    from numba.core.targetconfig import TargetConfig

    @functools.cache
    def defaults(kind: Any) -> dict[str, Any]:
        return {name: option.default for name, option in kind.options.items()}

    @functools.cache
    def hash_of(kind: Any) -> int:
        return hash(tuple(sorted(kind.options)))

    kinds: Any = TargetConfig
    kinds.values = lambda self: {**defaults(type(self)), **self._values}
    kinds.__hash__ = lambda self: hash_of(type(self))


@functools.cache
def _flags() -> tuple[str, str]:
    """`XLA_FLAGS` of the user, which XLA reads once and does so here, and with `OPTIONS`, if this XLA has them."""
    import jax
    from jax._src import compiler
    from jax._src.interpreters import mlir

    of_the_user = os.environ.get("XLA_FLAGS", "")
    try:
        jax.jit(lambda: 0).lower().compile(compiler_options=OPTIONS)
    except jax.errors.JaxRuntimeError:
        return of_the_user, of_the_user
    real = compiler.get_compile_options

    def options(*arguments: Any, env_options_overrides: dict[str, Any] | None = None, **more: Any) -> Any:
        mine = OPTIONS if jax.config.values[SETTING] else {}
        return real(*arguments, env_options_overrides={**mine, **(env_options_overrides or {})}, **more)

    compiler.get_compile_options = options
    # JAX makes a context for each program, with all dialects: a fifth of the time of a small one.
    mlir.make_ir_context = functools.cache(mlir.make_ir_context)
    return of_the_user, " ".join([of_the_user, *(f"--{k}={str(v).lower()}" for k, v in OPTIONS.items())]).strip()
