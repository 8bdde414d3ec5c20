"""Models that many tests begin with: a process trains each of them once."""

import contextlib
import io
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

Put = Callable[..., None]


@pytest.fixture(scope="session")
def folders_of_trainings(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """`folder(*words, files={...})`: where `cntkpy configFile=... command=train words` has been run."""
    known: dict[tuple[object, ...], Path] = {}

    def folder(*words: str, files: Mapping[str, str]) -> Path:
        from cntkpy.commands.cli import main

        key = (words, *files.items())
        if key not in known:
            place, here = tmp_path_factory.mktemp("trained"), Path.cwd()
            for name, text in files.items():
                (place / name).write_text(text)
            config = next(name for name in files if name.endswith(".cntk"))
            os.chdir(place)
            try:
                with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as log:
                    assert main([f"configFile={config}", "command=train", *words]) == 0, log.getvalue()
            finally:
                os.chdir(here)
            known[key] = place
        return known[key]

    return folder


@pytest.fixture
def already_trained(folders_of_trainings: Callable[..., Path], tmp_path: Path) -> Put:
    """`already_trained(*words, files={...})`: the folder `run` of the test is as that training has left it."""

    def put(*words: str, files: Mapping[str, str]) -> None:
        shutil.copytree(folders_of_trainings(*words, files=files) / "run", tmp_path / "run")

    return put
