"""The section of a report about the sweep whose trials are in it."""

import base64
import builtins
import json
import re
from pathlib import Path
from typing import Any

import pytest

from cntkpy.commands.report.page import page
from cntkpy.commands.runs.find import find_runs
from cntkpy.commands.sweeps.choices import read_words
from cntkpy.commands.sweeps.plan import Plan, save_plan
from cntkpy.commands.sweeps.rows import Row, Rows

WORDS = ("configFile=digits.cntk", "train/SGD/rate=0.1,0.2,0.4", "train/SGD/momentum=0,0.9")


def write_sweep(folder: Path, maximize: bool = False, trials: int = 6, words: tuple[str, ...] = WORDS) -> None:
    """Write a sweep whose criterion depends on the first value only."""
    folder.mkdir(parents=True)
    save_plan(folder, Plan(words, "grid", "none", 0, 0, "", "", "digest", folder.name, maximize=maximize))
    space = read_words(words)
    for number in range(trials):
        first, second = space.axes
        values = first.values(number // 2) | second.values(number % 2)  # pyright: ignore[reportAttributeAccessIssue]
        value = 1.0 + number // 2 + number % 2 / 100
        Rows(folder).append(Row(number, "finished", values, value, 1, 1.0))
        events: list[dict[str, Any]] = [
            {"time": "2026-01-01T00:00:00+00:00", "event": "run started", "words": ["configFile=digits.cntk"]},
            {"event": "action", "command": "train", "action": "train"},
            {"event": "epoch finished", "epoch": 1, "epochs": 1, "nodes": {"ce": value}, "seconds": 1, "samples": 9},
            {"event": "run finished", "status": 0},
        ]
        events[0]["settings"] = [{"name": name.replace("/", ":"), "value": text} for name, text in values.items()]
        path = folder / str(number) / "log.jsonl"
        path.parent.mkdir()
        path.write_text("".join(json.dumps(event) + "\n" for event in events))


def importances(html: str) -> dict[str, float]:
    return {name: float(value) for name, value in re.findall(r'<th scope="row">([^<]*)</th><td[^>]*>(\d+) %', html)}


@pytest.mark.parametrize(("maximize", "best"), [(False, "0"), (True, "5")])
def test_importances_and_the_best_trial(tmp_path: Path, maximize: bool, best: str) -> None:
    pytest.importorskip("optuna", reason="the extra sweep is not installed")
    write_sweep(tmp_path / "sweeps" / "digits", maximize)
    html = page(find_runs([str(tmp_path)]))
    assert "<h1>6 trials of digits</h1>" in html
    assert importances(html) == {"rate": 100, "momentum": 0}
    assert "Optuna&#x27;s PED-ANOVA of 6 trials" in html
    (marked,) = re.findall(
        r'<th scope="row"><span class="swatch[^>]*></span><span class="best"[^>]*>[^<]*</span>(\d+)', html
    )
    assert marked == best
    assert f"the best run: the {'greatest' if maximize else 'least'} ce of the sweep" in html


def test_parallel_coordinates_are_a_picture_without_a_script(tmp_path: Path) -> None:
    pytest.importorskip("optuna", reason="the extra sweep is not installed")
    pytest.importorskip("matplotlib", reason="the extra plot is not installed")
    write_sweep(tmp_path / "digits")
    html = page(find_runs([str(tmp_path)]))
    (content,) = re.findall(
        r'<img src="data:image/svg\+xml;base64,([^"]*)" alt="parallel coordinates of 6 trials"', html
    )
    picture = base64.b64decode(content).decode()
    for text in ("ce", "rate", "momentum", "0.9"):
        assert f">{text}</text>" in picture
    assert "<script" not in picture
    assert html == page(find_runs([str(tmp_path)]))


def test_values_that_matplotlib_would_read_as_mathematics(tmp_path: Path) -> None:
    pytest.importorskip("optuna", reason="the extra sweep is not installed")
    pytest.importorskip("matplotlib", reason="the extra plot is not installed")
    write_sweep(tmp_path / "digits", words=(WORDS[0], "a=$x$,$y$\\frac$,<b>&", "b=$\x1bm,2"))
    html = page(find_runs([str(tmp_path)]))
    assert importances(html) == {"a": 100, "b": 0}
    assert "\x1b" not in html


def test_few_trials(tmp_path: Path) -> None:
    pytest.importorskip("optuna", reason="the extra sweep is not installed")
    write_sweep(tmp_path / "digits", trials=3)
    html = page(find_runs([str(tmp_path)]))
    assert "3 trials have finished; importances need 4." in html
    assert "<h1>Trials 0, 1, 2 of digits</h1>" in html


@pytest.mark.parametrize(("package", "extra"), [("optuna", "sweep"), ("matplotlib", "plot")])
def test_a_package_that_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, extra: str
) -> None:
    pytest.importorskip("optuna", reason="the extra sweep is not installed")
    write_sweep(tmp_path / "digits")
    original = builtins.__import__

    def import_(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] == package or (package == "optuna" and name == "cntkpy.commands.sweeps"):
            raise ModuleNotFoundError(f"No module named '{package}'", name=package)
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", import_)
    html = page(find_runs([str(tmp_path)]))
    assert f"add the extra {extra}: " in html
    assert bool(importances(html)) == (package == "matplotlib")


def test_a_plan_that_cannot_be_read_and_other_runs(tmp_path: Path) -> None:
    write_sweep(tmp_path / "digits")
    (tmp_path / "digits" / "sweep.json").write_text("{")
    html = page(find_runs([str(tmp_path)]))
    assert 'id="sweep"' not in html
    assert "<h1>6 runs of digits</h1>" in html
