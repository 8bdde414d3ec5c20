"""What the parts of gpu.py share: their options, the device, how busy it is and what memory it needs."""

import argparse
import contextlib
import importlib.util
import os
import subprocess
import threading
import time
from typing import Any


def options(text: str | None) -> argparse.Namespace:
    """The command line of a part; JAX then computes on the device of `--device`."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--small", action="store_true")
    return parser.parse_args()


def choose(device: str) -> Any:
    """Let JAX compute on a device, and return it."""
    from cntkpy.commands.context.device import Device
    from cntkpy.networks.arrays.lazy import jax

    found = Device(device).here()[0]
    jax.config.update("jax_default_device", found)
    return found


class Utilisation:
    """Percentages of the time in which the GPU computed, sampled while the context lasts; none without `nvidia-smi`."""

    def __init__(self) -> None:
        self._samples: list[tuple[float, float]] = []
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> "Utilisation":
        number = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
        query = ["nvidia-smi", "-i", number, "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
        with contextlib.suppress(FileNotFoundError):
            self._process = subprocess.Popen(
                [*query, "-lms", "100"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
            threading.Thread(target=self._collect, args=(self._process,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()

    def between(self, began: float, ended: float) -> list[float]:
        """Samples between two values of `time.perf_counter`; a sample is a mean of the sixth of a second before it."""
        return [percent for when, percent in self._samples if began + 1 / 6 <= when <= ended]

    def _collect(self, process: "subprocess.Popen[str]") -> None:
        for line in process.stdout or ():
            if line.strip().isdigit():
                self._samples.append((time.perf_counter(), float(line)))


def peak_memory(device: Any) -> float | None:
    """The most MB that arrays and programs of this process had on a device of JAX so far; None: it does not say."""
    found = device.memory_stats()
    return None if not found or "peak_bytes_in_use" not in found else found["peak_bytes_in_use"] / 2**20


def torch_for(device: str) -> Any:
    """PyTorch in full single precision, where it is here and can use the device; else None."""
    if importlib.util.find_spec("torch") is None:
        return None
    import torch  # pyright: ignore[reportMissingImports]

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    return torch if device == "cpu" or torch.cuda.is_available() else None


def cell(value: float | None, form: str, unit: str = "") -> str:
    """A number of a table; `-` where there is none."""
    return "-" if value is None else format(value, form) + unit
