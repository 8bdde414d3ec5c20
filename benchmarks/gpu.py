"""Everything that needs a GPU, in one command and within ten minutes; prints a section of Markdown.

    python benchmarks/gpu.py [--device auto] [--minutes 10] [--parts NAME...] [--small]

Each part is a process of its own, ended when its time or the time of all is over; what it printed until then stays.

- `NETWORK-PRECISION`: samples per second of training, compared with JAX by hand and PyTorch, how busy the device was,
  and memory (gpu_tables.py).
- `reading`: a run that reads text, compared with its reader alone and its steps alone (gpu_reading.py).
- `copies`: GB per second from the host's memory to the device; loops of XLA (gpu_copies.py).
- `attention`: attention over long sequences, compared with JAX in blocks and PyTorch (gpu_attention.py).
- `checks`: tests of what computes, and all sample configurations (gpu_checks.py).
- `NETWORK-PRECISION-compiled`: samples per second, compared with `torch.compile`, which may take minutes.

`--device cpu --small` tries the code without a GPU.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
NONE = "no accelerator on this machine"
CASES = ("dnn", "conv", "lstm")
SECONDS = (
    {f"{case}-{precision}": 70 for precision in ("float", "bfloat16") for case in CASES}
    | {"reading": 45, "copies": 20, "attention": 40, "checks": 150}
    | {f"{case}-float-compiled": 120 for case in CASES}
)
"""Parts in their order, and the most seconds that each takes; all together `--minutes`."""
SPARE_SECONDS = 10
"""Left of all time for ending and printing."""


def accelerator() -> str | None:
    """What JAX calls its first device unless that is a CPU. In a process of its own, which keeps no memory of it."""
    program = "import jax; d = jax.devices()[0]; print('' if d.platform == 'cpu' else d.device_kind)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.strip() or None


def run(part: str, words: Sequence[str], seconds: float) -> tuple[list[str], str]:
    """The lines of a part's table, of rows with the same first cell the last; and how the part ended, if not well."""
    name = part if part in ("reading", "copies", "attention", "checks") else "tables"
    command = [sys.executable, str(HERE / f"gpu_{name}.py"), part, *words]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])}
    began = time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    ) as process:
        try:
            out, error = process.communicate(timeout=seconds)
            ended = "" if process.returncode == 0 else f"{part} failed: {_last(error)}"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 15)  # with the processes that it has started
            out, error = process.communicate()
            ended = f"{part} was ended after {seconds:.0f} s"
    print(f"{part}: {time.perf_counter() - began:.0f} s", *([error] if ended else []), file=sys.stderr, flush=True)
    return list({line.split("|")[1]: line for line in out.splitlines() if line.startswith("|")}.values()), ended


def _last(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "nothing was printed"


def main() -> None:
    """Print the section part by part, or one line where there is no accelerator."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--device", default="auto", help="a deviceId: auto, cpu, 0, ...")
    options.add_argument("--minutes", type=float, default=10.0, help="for all parts together")
    options.add_argument("--parts", nargs="+", default=list(SECONDS), choices=list(SECONDS))
    options.add_argument("--small", action="store_true", help="as little data as possible, to try this file")
    given = options.parse_args()
    end = time.monotonic() + 60 * given.minutes - SPARE_SECONDS
    if given.device == "cpu":
        os.environ["JAX_PLATFORMS"] = "cpu"
    # PyTorch, and other processes, need memory, too.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    kind, today = accelerator(), time.strftime("%Y-%m-%d")
    if kind is None and given.device != "cpu":
        print(f"## GPU\n{NONE} ({today})")
        return
    print(f"## GPU\nSamples per second on {kind or 'the CPU'}, {today}; how busy the device was, peak memory.\n")
    words = ["--device", given.device, *(["--small"] if given.small else [])]
    title, failures = "", list[str]()
    for part in (part for part in SECONDS if part in given.parts):
        found, ended = run(part, words, max(1.0, min(SECONDS[part], end - time.monotonic())))
        failures += [ended] if ended else []
        heading = part.partition("-")[2] or part
        if heading != title and found:  # a table of its own
            title = heading
            print(f"\n### {title.replace('-', ', ').capitalize()}\n", *found[:2], sep="\n")
        if len(found) > 2:
            print(*found[2:], sep="\n", flush=True)
    if failures:
        print("\nNot done: " + "; ".join(failures) + ".")


if __name__ == "__main__":
    main()
