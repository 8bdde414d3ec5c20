"""Private names of JAX that parallel training needs: every such name is in this file.

JAX may rename these at any time. `NEEDED` lists them, a test looks for each of them in the JAX that is installed, and a
run that misses one ends with an error that names it. No other file of cntkpy imports from `jax._src`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.arrays.lazy import imported, jax


class Internal(NamedTuple):
    """A name in a module, with dots; and what it is for, for messages."""

    module: str
    name: str
    purpose: str


STATE = Internal("jax._src.distributed", "global_state", "the connection of this process to the coordination service")
DETECT = Internal(
    "jax._src.clusters",
    "ClusterEnv.auto_detect_unset_distributed_params",
    "the address of worker 0 that Open MPI and Slurm tell",
)
GLOO = Internal("jax._src.lib", "_jax.make_gloo_tcp_collectives", "sums that listen on the loopback only")
CPU_CLIENT = Internal("jax._src.xla_bridge", "make_cpu_client", GLOO.purpose)
REGISTER = Internal("jax._src.xla_bridge", "register_backend_factory", GLOO.purpose)

_CLIENT = "_jax.DistributedRuntimeClient"
NEEDED = (
    Internal(STATE.module, "global_state.client", STATE.purpose),
    *(
        Internal("jax._src.lib", f"{_CLIENT}.{method}", "what workers tell each other")
        for method in ("key_value_set", "key_value_delete", "key_value_dir_get", "blocking_key_value_get")
    ),
    DETECT,
    GLOO,
    CPU_CLIENT,
    REGISTER,
)


def found(internal: Internal) -> Any:
    """Return the object that JAX has under a name.

    Raises:
        UserError: this version of JAX has nothing of that name.
    """
    try:
        value: Any = imported(internal.module)
        for name in internal.name.split("."):
            value = getattr(value, name)
    except (ImportError, AttributeError):
        raise UserError(
            "Unsupported",
            f"parallel training does not know JAX {jax.__version__}: there is no {internal.module}.{internal.name} "
            f"({internal.purpose})",
            hint="install an older JAX, for instance: pip install 'jax<=0.10'; or train in one process",
        ) from None
    return value


def coordination_client() -> Any:
    """Return this process's client of the coordination service, after `jax.distributed.initialize`."""
    return found(STATE).client


def address_of_worker_0(rank: int, size: int, visible: list[int] | None, seconds: int) -> str | None:
    """Return the address of worker 0 that JAX finds in what the launcher has set for the processes; None: it finds
    none.
    """
    return found(DETECT)(None, size, rank, visible, None, seconds)[0]


def listen_on(host: str) -> None:
    """Make the collectives of CPUs listen at an address; their default is that of this machine's name."""
    make_collectives, make_client = found(GLOO), found(CPU_CLIENT)

    def client() -> Any:
        return make_client(make_collectives(distributed_client=coordination_client(), hostname=host))

    found(REGISTER)("cpu", client, priority=0, fail_quietly=False)
