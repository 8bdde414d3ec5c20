"""Kill trainings at random moments, also while they save, and see that nothing is lost.

    python -m tools.kill FOLDER --kills 200
    python -m tools.kill FOLDER --kind dropout --kills 5 --seed 7

A run of every kind is left alone first. Then runs are started and killed (SIGKILL) again and again until they have had
their share, and continue to their end. The model must be that of the run that was left alone, byte for byte, every file
on the way must be whole, and no other file may be left. Exit status 1 where anything was wrong. All workers of a
training are killed at once; one of several is killed by tests/tools/kill_workers.py.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import click

from tools.kill.kinds import KINDS, WORKERS, prepare

LIMIT = 600.0
"""Seconds that a run may take."""
ROUND = 4
"""Kills of one run."""


@click.command(help=__doc__)
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--kind", "kinds", multiple=True, type=click.Choice(list(KINDS)), help="Only these.")
@click.option("--kills", type=int, default=20, help="Of all runs together.")
@click.option("--seed", default="1", help="Of the moments.")
@click.option("--seconds", type=float, default=1e9, help="Begin no other run after this time.")
def main(folder: Path, kinds: tuple[str, ...], kills: int, seed: str, seconds: float) -> None:
    """Run."""
    folder = folder.resolve()
    prepare(folder)
    wholes: dict[str, tuple[bytes, float]] = {}
    done = number = 0
    faults: list[str] = []
    end = time.monotonic() + seconds
    while done < kills and time.monotonic() < end:
        kind = (kinds or tuple(KINDS))[number % len(kinds or KINDS)]
        if kind not in wholes:
            begun = time.monotonic()
            run = start(folder, kind, "whole")
            if run.wait(LIMIT):
                sys.exit(f"{kind}: the run that is left alone fails, see {folder / f'{kind}-whole' / 'console'}")
            wholes[kind] = (folder / f"{kind}-whole" / "m").read_bytes(), time.monotonic() - begun
        had, found = one_run(
            folder, kind, number, min(ROUND, kills - done), wholes[kind], random.Random(f"{seed}/{number}")
        )
        done, number = done + had, number + 1
        faults += found
        click.echo(f"{kind:10} run {number}: {had} kills" + "".join(f"  !! {one}" for one in found))
    click.echo(f"{done} kills in {number} runs, {len(faults)} faults")
    sys.exit(bool(faults))


def start(folder: Path, kind: str, name: str) -> subprocess.Popen[bytes]:
    """Start a training whose files are in a folder of its own."""
    place = folder / f"{kind}-{name}"
    place.mkdir(exist_ok=True)
    with (place / "console").open("ab") as console:
        return subprocess.Popen(
            [sys.executable, "-m", "cntkpy", "run", "--workers", str(WORKERS.get(kind, 1)),
             f"configFile={kind}.cntk", f"RunDir={place.name}"],
            cwd=folder, stdout=console, stderr=console, start_new_session=True,
        )  # fmt: skip


def one_run(
    folder: Path, kind: str, number: int, kills: int, whole: tuple[bytes, float], draw: random.Random
) -> tuple[int, list[str]]:
    """One training with its kills: how many it had, and what was wrong."""
    place, had, faults = folder / f"{kind}-{number}", 0, []
    while had < kills:
        run = start(folder, kind, str(number))
        if not _reached(run, place, whole[1], draw):
            break
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        had += 1
        faults += [f"{path.name} is not whole: {why}" for path, why in broken(place)]
    else:
        run = start(folder, kind, str(number))
    if run.wait(LIMIT):
        return had, [*faults, f"exit status {run.returncode}"]
    if (place / "m").read_bytes() != whole[0]:
        faults.append("another model")
    files = {path.name for path in place.iterdir()}
    expected = {path.name for path in (folder / f"{kind}-whole").iterdir()}
    if files != expected:
        faults.append(f"files left: {', '.join(sorted(files ^ expected))}")
    return had, faults


def _reached(run: subprocess.Popen[bytes], place: Path, length: float, draw: random.Random) -> bool:
    """Wait for a moment: any, or one at which a file is being written. False if the run has ended before."""
    if draw.random() < 0.4:
        end = time.monotonic() + draw.uniform(0, length)
        while run.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        return run.poll() is None
    saves = draw.randrange(1, 12)
    seen: set[str] = set()
    while run.poll() is None and len(seen) < saves:
        seen |= {path.name for path in place.glob(".m*.tmp")}
    return run.poll() is None


def broken(place: Path) -> list[tuple[Path, str]]:
    """Files of a training that cannot be read, and why."""
    from cntkpy.cntk_config.base.diagnostics import UserError
    from cntkpy.networks.files.model_file import load_model
    from cntkpy.trainers.checkpoints.checkpoint import INSIDE, Checkpoint

    found: list[tuple[Path, str]] = []
    for path in sorted(place.glob("m*")):
        try:
            if path.suffix == ".ckp":
                Checkpoint.load(str(path))
            elif path.suffix == ".partial":
                Checkpoint.load(str(path), INSIDE)
            else:
                load_model(path)
        except (UserError, FileNotFoundError) as error:
            found.append((path, str(error)))
    return found


if __name__ == "__main__":
    main()
