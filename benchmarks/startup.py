"""Start-up: `cntkpy check` and `show` of a valid configuration of 200 lines, parsing, and BrainScript."""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import peers
from good_config import good_config

REPEAT = 5


def medians(command: list[str], cwd: str) -> peers.Seconds:
    """Seconds of the whole process, medians of five after one run to warm the file cache."""
    found: list[peers.Seconds] = []
    for _ in range(REPEAT + 1):
        start, used = time.perf_counter(), peers.of_children()
        subprocess.run(command, cwd=cwd, check=True, capture_output=True)
        found.append(peers.Seconds(time.perf_counter() - start, peers.of_children() - used))
    return peers.Seconds(*map(statistics.median, zip(*found[1:], strict=True)))


def measure() -> dict[str, peers.Seconds]:
    """The seconds of `cntkpy check`, `cntkpy show` and `cntkpy --version`."""
    console = str(Path(sys.executable).with_name("cntkpy"))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "good.cntk").write_text(good_config(), encoding="utf-8")
        Path(folder, "data").mkdir()
        Path(folder, "data/train.ctf").touch()
        return {
            "cntkpy check good.cntk": medians([console, "check", "good.cntk"], folder),
            "cntkpy show good.cntk": medians([console, "show", "good.cntk"], folder),
            "cntkpy --version": medians([console, "--version"], folder),
        }


def main() -> str:
    """Measure; return the table."""
    import brainscript
    import config

    jax = [brainscript.import_of_jax()]
    rows: list[tuple[str, float, float]] = []  # what, seconds shown, seconds of processor time
    rows += [(f"`{name}`, by the clock", *seconds) for name, seconds in measure().items()]
    jax.append(brainscript.import_of_jax())
    rows += [(name, seconds, seconds) for name, seconds in config.rows()]
    jax.append(brainscript.import_of_jax())
    rows += [(name, seconds, seconds) for name, seconds in brainscript.rows()]
    alone = statistics.median(jax)
    lines = [
        "## Start-up",
        f"Whole processes by the clock, medians of {REPEAT}, with a valid configuration of 200 lines; the "
        f"others are seconds of processor time. Ratios are of processor time, to `import jax` with {alone:.2f} s.",
        "",
        "| what | seconds | / `import jax` |",
        "|---|---:|---:|",
        *(f"| {name} | {shown:.2f} | {seconds / alone:.2f} |" for name, shown, seconds in rows),
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    print(main())
