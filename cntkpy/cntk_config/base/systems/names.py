"""Names of files that were written on a system where `\\` separates folders and the case of letters does not count."""

from __future__ import annotations

from pathlib import Path, PurePosixPath


def meant(name: str) -> str | None:
    """Return the name of an existing file or folder that differs only in separators or in the case of letters.

    Returns:
        The name with slashes; None: there is none, or more than one, or it is the same.
    """
    asked = PurePosixPath(name.replace("\\", "/"))
    path = PurePosixPath(asked.anchor)
    for part in asked.parts[1 if asked.anchor else 0 :]:
        here = _spelled(Path(path), part)
        if here is None:
            return None
        path /= here
    return None if str(path) == name else str(path)


def _spelled(folder: Path, name: str) -> str | None:
    """Return the spelling of a name in a folder; None if there is none, or there are several."""
    try:
        if (folder / name).exists():
            return name
        alike = [path.name for path in folder.iterdir() if path.name.casefold() == name.casefold()]
    except (OSError, ValueError):
        return None
    return alike[0] if len(alike) == 1 else None
