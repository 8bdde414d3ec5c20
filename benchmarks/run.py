"""Runs every benchmark of this folder and writes docs/benchmarks.md.

    .venv/bin/python benchmarks/run.py [NAME...]

Every other file here that has a function `main()` measures and prints a piece of Markdown. Each runs in its own
process, with the packages beside this folder, one after the other, so that none disturbs another. With names only those
run, and nothing is written.
"""

import argparse
import os
import platform
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "benchmarks.md"

HEADER = """\
# Benchmarks
Measured by `python benchmarks/run.py` on {date}: {machine}.
Peers run on the same machine, in the same process or one after the other.
"""


def machine() -> str:
    """The machine in words."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file() and (found := re.search(r"^model name\s*:\s*(.*)$", info.read_text(), re.MULTILINE)):
        model = found[1]
    return f"{model}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"


def names() -> list[str]:
    """The benchmarks: files of this folder which define `main`."""
    return sorted(
        path.stem
        for path in HERE.glob("*.py")
        if path.stem != "run" and re.search(r"^def main\(", path.read_text(encoding="utf-8"), re.MULTILINE)
    )


def run(name: str) -> str:
    """Run one benchmark in its own process; return its Markdown."""
    command = [sys.executable, str(HERE / f"{name}.py")]
    environment = os.environ | {"PYTHONPATH": str(HERE.parent)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    text = done.stdout.strip()
    if done.returncode:
        sys.stderr.write(done.stderr)
        text += f"\n\nfailed with exit status {done.returncode}"
    return text if text.startswith("#") else f"## {name}\n{text}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="benchmarks to run; all, if none is named")
    chosen = parser.parse_args().names
    parts = []
    for name in chosen or names():
        print(f"running {name} ...", file=sys.stderr, flush=True)
        parts.append(run(name))
        print(parts[-1], end="\n\n", flush=True)
    if not chosen:
        header = HEADER.format(date=time.strftime("%Y-%m-%d"), machine=machine())
        PAGE.write_text(header + "\n" + "\n\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
