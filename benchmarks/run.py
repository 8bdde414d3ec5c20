"""Runs benchmarks and writes their tables into docs/benchmarks.md.

    .venv/bin/python benchmarks/run.py             measure everything
    .venv/bin/python benchmarks/run.py steps text  measure two; replace their sections of the page

Every other file of this folder that defines `main()` prints one section of Markdown: a heading, a line that says what
the numbers are, a table. Each runs in its own process, one after the other. A section keeps its place on the page and
gets the date of its measurement.
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


def machine() -> str:
    """The processor, number of cores, system and Python."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file() and (found := re.search(r"^model name\s*:\s*(.*)$", info.read_text(), re.MULTILINE)):
        model = found[1]
    return f"{model}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"


def names() -> list[str]:
    """The benchmarks: files of this folder that define `main`."""
    return sorted(
        path.stem
        for path in HERE.glob("*.py")
        if path.stem != "run" and re.search(r"^def main\(", path.read_text(encoding="utf-8"), re.MULTILINE)
    )


def run(name: str) -> str:
    """Run one benchmark in its own process; return its section, or nothing if it has no table on this machine.

    Raises:
        SystemExit: if the benchmark fails; its error is printed before.
    """
    command = [sys.executable, str(HERE / f"{name}.py")]
    path = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])  # peers may be installed elsewhere
    environment = os.environ | {"PYTHONPATH": path}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.stderr.write(done.stderr)
        raise SystemExit(f"benchmarks/{name}.py failed with exit status {done.returncode}")
    heading, _, rest = done.stdout.strip().partition("\n")
    text, _, table = rest.partition("|")
    if not table:
        return ""
    about = " ".join(text.split())
    command = f"`python benchmarks/{name}.py`, {time.strftime('%Y-%m-%d')}, {machine()}."
    return f"{heading}\n{command} {about}\n\n|{table.rstrip()}\n"


def replaced(page: str, section: str) -> str:
    """Return the page with the section of the same heading replaced, or with the section at its end."""
    heading = re.escape(section.partition("\n")[0])
    old = re.compile(rf"^{heading}\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
    if old.search(page):
        return old.sub(lambda _: section + "\n", page, count=1).rstrip("\n") + "\n"
    return f"{page.rstrip()}\n\n{section}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="benchmarks to run (default: all)")
    for name in parser.parse_args().names or names():
        print(f"running {name} ...", file=sys.stderr, flush=True)
        section = run(name)
        print(section or f"{name} measures nothing on this machine", flush=True)
        if not section:
            continue
        PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), section), encoding="utf-8")


if __name__ == "__main__":
    main()
