"""Runs every benchmark of this folder and writes docs/benchmarks.md.

    .venv/bin/python benchmarks/run.py [NAME...]

Every other file here has a function `main()` that measures and returns (or prints) a piece of Markdown. Each runs in
its own process, one after the other, so that none disturbs another. With names only those run, and nothing is written.
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

CODE = """
import runpy, sys
text = runpy.run_path(sys.argv.pop(1))["main"]()
print(text if isinstance(text, str) else "")
"""
"""Runs a file without putting its folder on the path, where files have the names of packages."""


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
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(HERE / name) + ".py"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.stderr.write(done.stderr)
        return f"## {name}\nfailed with exit status {done.returncode}"
    text = done.stdout.strip()
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
