"""cntk.debugging.profiler: CNTK's calls, with the profiler of JAX."""

from __future__ import annotations

from typing import Any

from ..missing import no_attribute


class _Trace:
    """The folder of the profile, once there is one, and whether JAX is writing to it."""

    folder: str | None = None
    running = False


_trace = _Trace()


def start_profiler(dir: str = "profiler", sync_gpu: bool = True, reserve_mem: Any = None) -> None:
    """Write a profile to a folder from now on: a trace of JAX, for TensorBoard or Perfetto.

    Args:
        dir: the folder.
        sync_gpu: accepted; JAX measures on the device.
        reserve_mem: accepted; changes nothing.
    """
    del sync_gpu, reserve_mem
    _trace.folder = dir
    enable_profiler()


def enable_profiler() -> None:
    """Resume the profile of `start_profiler`; nothing if none was started."""
    from cntkpy.networks.arrays.lazy import jax

    if _trace.folder is not None and not _trace.running:
        jax.profiler.start_trace(_trace.folder)
        _trace.running = True


def disable_profiler() -> None:
    """Pause the profile: what is computed until `enable_profiler` is not in it."""
    from cntkpy.networks.arrays.lazy import jax

    if _trace.running:
        _trace.running = False
        jax.profiler.stop_trace()


def stop_profiler() -> None:
    """End the profile; its files are complete then."""
    disable_profiler()
    _trace.folder = None


__all__ = ["disable_profiler", "enable_profiler", "start_profiler", "stop_profiler"]

__getattr__ = no_attribute("cntk.debugging.profiler", __all__)
