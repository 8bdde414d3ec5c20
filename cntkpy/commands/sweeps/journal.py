"""The journal of a study in a file: a part that is damaged is set aside before Optuna reads it.

Optuna writes its lines in one go, yet a full disk, or a machine that stops, cuts the last one. Optuna then appends the
next line to what is left of it, and can read nothing behind that.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, cast

from optuna.storages.journal import JournalFileSymlinkLock

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.files import LIST_LIMIT, read_input
from cntkpy.cntk_config.base.writing import atomic_write, open_in_place

BEGINNING = b'{"op_code":'
"""Beginning of every line."""
DAMAGED = ".damaged"


def repair(path: Path) -> None:
    """Cut a journal in front of its first line that is damaged; the whole of it stays in a file beside it.

    Args:
        path: the file; it may be missing.

    Raises:
        UserError: it is no journal.
        OSError: it cannot be read or written.
    """
    if not path.exists():
        return
    lock = JournalFileSymlinkLock(str(path))  # others may append to it
    lock.acquire()
    try:
        content = read_input(path, LIST_LIMIT)
        if content and not content.startswith(BEGINNING):
            hint = "give --storage or --join another file, or move this one away"
            raise UserError("BadFile", f"{path} is no journal of a study", hint=hint)
        sound, lines = _sound(content)
        if sound == len(content):
            return
        aside = path.with_name(path.name + DAMAGED)
        with atomic_write(aside, through_link=False) as file:
            file.write(content)
        descriptor = open_in_place(path)
        try:
            os.ftruncate(descriptor, sound)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    finally:
        lock.release()
    lost = content.count(b"\n", sound) + (not content.endswith(b"\n"))
    print(
        f"warning: {path} is damaged in line {lines + 1} (byte {sound}): its last {lost} lines do not count\n"
        f"  note: the whole file is kept in {aside}; trials with a row in trials.jsonl are not repeated",
        file=sys.stderr,
    )


def _sound(content: bytes) -> tuple[int, int]:
    """Return the bytes and the number of the lines in front of the first one that is damaged."""
    begin = number = 0
    while begin < len(content):
        end = content.find(b"\n", begin)
        if end < 0 or not _is_sound(content[begin:end]):
            break
        begin, number = end + 1, number + 1
    return begin, number


def _is_sound(line: bytes) -> bool:
    try:
        value: Any = json.loads(line)
    except (ValueError, RecursionError):
        return False
    if not isinstance(value, dict):
        return False
    entry = cast("dict[str, Any]", value)
    return type(entry.get("op_code")) is int and isinstance(entry.get("worker_id"), str)
