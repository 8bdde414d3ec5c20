"""Samples per second on a GPU of three networks of steps.py, beside PyTorch eager and `torch.compile`.

    python benchmarks/gpu.py [--device auto] [--cases dnn conv lstm] [--seconds 5] [--precision bfloat16] [--tiny]

All train on the same minibatches in full single precision (no TF32), copied from the host's memory as in any training:
forward, backward, momentum SGD, the criterion and the number of errors. With `--precision bfloat16` products are in
bfloat16, and PyTorch's peers run under `torch.autocast`. Rounds take turns; numbers are medians. The
last columns are the utilisation of the device as `nvidia-smi` reports it. `--device cpu --tiny` tries the code without
a GPU.
"""

import argparse
import contextlib
import functools
import importlib.util
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # PyTorch needs memory, too

ROUNDS = 3
NONE = "no accelerator on this machine"
PEERS = ("cntkpy", "PyTorch", "torch.compile")


def accelerator() -> str | None:
    """What JAX calls its first device unless that is a CPU."""
    import jax

    device = jax.devices()[0]
    return None if device.platform == "cpu" else device.device_kind


def tiny(case: Any) -> Any:
    """The case with two minibatches of 8 samples, or of 4 sequences of 2 frames."""
    case.minibatches = [
        {k: v[:8] if case.lengths is None else v[:2, :4] for k, v in m.items()} for m in case.minibatches[:2]
    ]
    if case.lengths is not None:
        case.lengths = [lengths[:4].clip(max=2) for lengths in case.lengths[:2]]
    return case


@contextlib.contextmanager
def utilisation() -> Iterator[list[float]]:
    """Percentages of the time in which the GPU computed, sampled meanwhile; empty where there is no `nvidia-smi`."""
    found: list[float] = []
    number = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    query = ["nvidia-smi", "-i", number, "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "-lms", "200"]
    try:
        process = subprocess.Popen(query, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    except FileNotFoundError:
        yield found
        return
    try:
        yield found
    finally:
        process.terminate()
        text = process.communicate()[0]
        found += [float(line) for line in text.splitlines() if line.strip().isdigit()]


def autocast(precision: str, device: str) -> contextlib.AbstractContextManager[Any]:
    """PyTorch's mixed precision, where it is here and wanted."""
    if precision == "float" or importlib.util.find_spec("torch") is None:
        return contextlib.nullcontext()
    import torch  # pyright: ignore[reportMissingImports]

    return torch.autocast("cpu" if device == "cpu" else "cuda", torch.bfloat16)


def row(case: Any, device: str, seconds: float, precision: str) -> str:
    """Measure one case: a line of the table."""
    import steps

    runners = {"cntkpy": steps.Ours(case, precision)}
    if device == "cpu" or has_cuda():
        peer = functools.partial(steps.Torch, case, "cpu" if device == "cpu" else "cuda")
        runners |= {"PyTorch": peer(), "torch.compile": peer(compiled=True)}
    real = (
        sum(lengths.sum() for lengths in case.lengths) if case.lengths else sum(len(m["y"]) for m in case.minibatches)
    )
    stack = len(case.minibatches)
    counts, speeds, busy = {}, {name: [] for name in PEERS}, {name: [] for name in PEERS}
    for name, runner in runners.items():
        with autocast(precision, device):
            runner.run(stack)  # compiles
            began = time.perf_counter()
            runner.run(stack)
        counts[name] = stack * max(1, round(seconds / ROUNDS / (time.perf_counter() - began)))
    for _ in range(ROUNDS):
        for name, runner in runners.items():
            with utilisation() as percentages, autocast(precision, device):
                began = time.perf_counter()
                runner.run(counts[name])
                speeds[name].append(real * counts[name] / stack / (time.perf_counter() - began))
            busy[name] += percentages
    ratios = {
        name: [ours / theirs for ours, theirs in zip(speeds["cntkpy"], speeds[name], strict=False)]
        for name in PEERS[1:]
    }
    cells = [_cell(statistics.median, speeds[name], ",.0f") for name in PEERS]
    cells += [_cell(statistics.median, ratios[name], ".2f") for name in PEERS[1:]]
    cells += [_cell(statistics.mean, busy[name], ".0f", " %") for name in PEERS]
    return f"| {case.title} | {' | '.join(cells)} |"


def _cell(average: Callable[[list[float]], float], values: list[float], form: str, unit: str = "") -> str:
    return format(average(values), form) + unit if values else "-"


def has_cuda() -> bool:
    """Whether PyTorch is here and can use a GPU; sets it to full single precision, as cntkpy computes."""
    try:
        import torch  # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError:
        return False
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    return torch.cuda.is_available()


def main() -> str:
    """The table, or one line where there is no accelerator."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--device", default="auto", help="a deviceId: auto, cpu, 0, ...")
    options.add_argument("--cases", nargs="+", default=["dnn", "conv", "lstm"])
    options.add_argument("--seconds", type=float, default=5.0, help="for every network and peer")
    options.add_argument("--precision", choices=["float", "bfloat16"], default="float", help="of products")
    options.add_argument("--tiny", action="store_true", help="very small minibatches, to try this file")
    given = options.parse_args()
    if given.device == "cpu":
        os.environ["JAX_PLATFORMS"] = "cpu"
    kind, today = accelerator(), time.strftime("%Y-%m-%d")
    if kind is None and given.device != "cpu":
        return f"## GPU\n{NONE} ({today})"
    from commands.context.device import Device
    from networks.arrays.lazy import jax

    jax.config.update("jax_default_device", Device(given.device).here()[0])
    import steps

    lines = [
        f"## GPU\nSamples per second on {kind or 'the CPU'}, {today}, {given.precision}, and how busy the device was\n",
        f"| network, minibatch | {' | '.join(PEERS)} | {' | '.join(f'/ {peer}' for peer in PEERS[1:])} "
        f"| {' | '.join(f'busy: {peer}' for peer in PEERS)} |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name in given.cases:
        case = steps.CASES[name]()
        lines.append(row(tiny(case) if given.tiny else case, given.device, given.seconds, given.precision))
        print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines)


if __name__ == "__main__":
    print(main())
