"""How carefully XLA compiles the programs of a test: as for users, or in a fifth of the time.

In haste XLA optimises little, and LLVM gets one module of a few kernels in place of one for each fused operation.
"""

import functools
import os
import sys
from collections.abc import Callable
from typing import Any

SETTING = "jax_disable_most_optimizations"
OPTIONS = {"xla_cpu_use_fusion_emitters": False, "xla_cpu_parallel_codegen_split_count": 1}


def switch(haste: bool) -> None:
    """Compile in haste, or as for users, from now on; processes that are started do as this one does."""
    if haste:
        os.environ[SETTING.upper()] = "1"
    else:
        os.environ.pop(SETTING.upper(), None)
    jax = sys.modules.get("jax")
    if jax is None:
        return
    flags_of_the_user, known = _prepare()
    if jax.config.values[SETTING] != haste:
        jax.config.update(SETTING, haste)
    flags = " ".join([flags_of_the_user, *(f"--{name}={str(value).lower()}" for name, value in known.items())])
    if haste and known:
        os.environ["XLA_FLAGS"] = flags.strip()
    elif flags_of_the_user:
        os.environ["XLA_FLAGS"] = flags_of_the_user
    else:
        os.environ.pop("XLA_FLAGS", None)
    executables = sys.modules.get("networks.compile.executables")
    if executables is not None:
        executables._surroundings.cache_clear()


@functools.cache
def _prepare() -> tuple[str, dict[str, Any]]:
    """The user's flags, which XLA reads once and does so here, and those of `OPTIONS` that this XLA has."""
    import jax
    from jax._src import compiler

    def options(*arguments: Any, env_options_overrides: dict[str, Any] | None = None, **more: Any) -> Any:
        mine = OPTIONS if jax.config.values[SETTING] else {}
        return real(*arguments, env_options_overrides={**mine, **(env_options_overrides or {})}, **more)

    real: Callable[..., Any] = compiler.get_compile_options
    try:
        jax.jit(lambda: 0).lower().compile(compiler_options=OPTIONS)
    except jax.errors.JaxRuntimeError:
        return os.environ.get("XLA_FLAGS", ""), {}
    compiler.get_compile_options = options
    return os.environ.get("XLA_FLAGS", ""), OPTIONS
