"""The script of an array job for Slurm: every task joins the sweep and takes one trial after another."""

from __future__ import annotations

import shlex
from pathlib import Path

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.writing import atomic_write, not_written
from cntkpy.commands.context import processes

NAME = "sweep.slurm"
NOTICE_SECONDS = 60
"""Seconds before the end of its time at which a task is asked to end: trials save their states."""


def write_script(folder: Path, name: str, tasks: int) -> Path:
    """Write the script.

    Args:
        folder: of the sweep, absolute, on a file system that all nodes share.
        name: of the job.
        tasks: how many there are.

    Returns:
        Its path.

    Raises:
        UserError: it cannot be written.
    """
    path = folder / NAME
    try:
        with atomic_write(path, "w") as file:
            file.write(script(folder, name, tasks))
    except OSError as error:
        raise UserError("CannotWrite", not_written(error, path)) from None
    return path


def script(folder: Path, name: str, tasks: int) -> str:
    """Return the text of the script; the options of `sbatch` on its command line are stronger than those in it."""
    command = processes.cntkpy_command(["sweep", "--join", str(folder)])
    python_path = processes.environment().get("PYTHONPATH")
    lines = [
        "#!/bin/sh",
        f"#SBATCH --job-name={shlex.quote(name)}",
        f"#SBATCH --array=0-{tasks - 1}",
        f"#SBATCH --output={shlex.quote(str(folder / 'slurm-%A_%a.out'))}",
        "#SBATCH --ntasks=1",
        f"#SBATCH --signal=B:TERM@{NOTICE_SECONDS}",
        "# Time, memory, cores, GPUs: sbatch --time=2:00:00 --cpus-per-task=4 --gres=gpu:1 " + NAME,
        "# Submit it again to go on: trials that have ended are not repeated.",
        f"cd {shlex.quote(str(Path.cwd()))} || exit 1",
    ]
    if python_path:
        lines.append(f"export PYTHONPATH={shlex.quote(python_path)}")
    return "\n".join([*lines, f"exec {shlex.join(command)}", ""])
