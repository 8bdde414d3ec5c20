"""Files of sweeps that were cut or changed: a message, never a traceback, and nothing that was there is lost."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cntkpy.cntk_config import ConfigError, UserError
from cntkpy.commands.runs import plain
from cntkpy.commands.sweeps.choices import read_words
from cntkpy.commands.sweeps.criterion import Criterion, Progress
from cntkpy.commands.sweeps.plan import Plan
from cntkpy.commands.sweeps.points import Draws, Grid
from cntkpy.commands.sweeps.rows import NAME, Row, Rows
from cntkpy.commands.sweeps.trial_folder import seconds_of

LONG = "9" * 400
GOOD = {
    "number": 7,
    "state": "finished",
    "values": {"a": "1"},
    "criterion": 0.5,
    "epochs": 2,
    "seconds": 1.5,
    "error": "",
}
HOSTILE = [
    '"abc"',
    "1e999",
    "-1e999",
    LONG,
    f"-{LONG}",
    "NaN",
    "null",
    "[]",
    "{}",
    "true",
    '"\\ud800"',
    "-1",
    "1.5",
    "9" * 5000,
]


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("name", list(GOOD))
def test_a_row_with_another_value(name: str, value: str, tmp_path: Path) -> None:
    line = "{" + ", ".join(f'"{key}": {value if key == name else json.dumps(one)}' for key, one in GOOD.items()) + "}"
    (tmp_path / NAME).write_text(f"{line}\n" + json.dumps(GOOD | {"number": 8}) + "\n")
    found = Rows(tmp_path).read()
    assert found[8].criterion == 0.5  # the next line is read all the same
    for row in found.values():
        assert isinstance(row.number, int) and 0 <= row.epochs < 2**53 and 0 <= row.number < 2**53
        assert abs(row.seconds) < 1e308 and (row.criterion is None or abs(row.criterion) < 1e308)
        assert isinstance(row.error, str)
    if name in ("epochs", "seconds", "criterion", "error") and len(value) < 5000:
        assert 7 in found  # the rest of the row counts


def test_lines_end_at_line_feeds_only(tmp_path: Path) -> None:
    """JSON may have U+2028 and others in texts, at which `str.splitlines` would cut the line."""
    for number, sign in enumerate("\u2028\u2029\x85\x0b\x0c\x1c"):
        Rows(tmp_path).append(Row(number, "finished", {"a": f"x{sign}y"}, 0.5, 1, 1.0))
    assert sorted(Rows(tmp_path).read()) == list(range(6))


@pytest.mark.parametrize("value", HOSTILE)
def test_events_with_other_values(value: str) -> None:
    progress = Progress(Criterion("train", "ce", trains=True, validates=False))
    text = ""
    for name in ("epoch", "seconds", "nodes", "command"):
        good = {"event": '"epoch finished"', "command": '"train"', "epoch": "1", "seconds": "2", "nodes": '{"ce": 0.5}'}
        text += "{" + ", ".join(f'"{key}": {value if key == name else one}' for key, one in good.items()) + "}\n"
    text += f'{{"event": "epoch finished", "command": "train", "epoch": 1, "nodes": {{"ce": {value}}}}}\n'
    for event in plain.objects(text):
        progress.observe(event)
    assert 0 <= progress.epochs < 2**53 and abs(seconds_of(plain.objects(text))) < 1e308


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("a=range(1, 1e308, step=1e-300)", "the range of a has more than 1,000,000 values"),
        ("a=range(1, 2, step=1e-300)", "the range of a has more than 1,000,000 values"),
        ("a=range(1, 1e999, count=3)", "the range of a has 1e999, which is too large"),
        ("a=range(-1e999, 1)", "the range of a has -1e999, which is too large"),
        (f"a=range(1, {LONG})", "which is too large"),
        ("a=range(-1e308, 1e308)", "is too wide"),
        ("a=range(-1e308, 1e308, count=3)", "is too wide"),
        ("a=range(1e-300, 1e300, log)", "is too wide"),
        ("a=range(1, 99999999999999999999)", "its whole numbers are 9,007,199,254,740,992 at most"),
    ],
)
def test_ranges_that_cannot_be_computed(word: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_words([word])


def test_numbers_of_trials_are_bounded() -> None:
    every = read_words([f"a{k}=range(1, 9007199254740992)" for k in range(300)])
    with pytest.raises(ConfigError, match="the grid has far too many trials, more than 1,000,000"):
        Grid(every)
    assert len(Draws(every, 3, 0).values(2)) == 300
    with pytest.raises(ConfigError, match="--trials asks for more than 1,000,000"):
        Draws(every, 1_000_001, 0)


def plan() -> Plan:
    return Plan(("a=1,2", "b=range(0.1, 1)"), "tpe", "median", 4, 0, "", "", "digest", "s")


def changed(text: str, seed: int, count: int) -> Iterator[str]:
    """A text that was cut, or lost, got or changed some characters, or values of JSON."""
    draw = random.Random(seed)
    for number in range(count):
        begin, end = sorted(draw.sample(range(len(text) + 1), 2))
        if number % 4 == 0:
            yield text[:begin]
        elif number % 4 == 1:
            yield (
                text[:begin] + draw.choice(["", "\0", "}", "\n", '"', "[" * 3000, LONG, "\u2028"]) + text[end:][: 10**6]
            )
        elif number % 4 == 2:
            yield text[:begin] + draw.choice('{}[]",:0x\n') + text[begin + 1 :]
        else:
            old = draw.choice(['"tpe"', "0", "4", "null", "1", '"s"', '"median"', "{}", "[]"])
            places = [at for at in range(len(text)) if text.startswith(old, at)]
            at = draw.choice(places or [0])
            yield text[:at] + draw.choice(HOSTILE) + text[at + len(old) :]


def test_changed_plans() -> None:
    outcomes = {"plan": 0, "error": 0}
    for text in changed(plan().to_json(), 1, 600):
        try:
            made = Plan.of_json(text, "here")
            made.points()
            outcomes["plan"] += 1
        except UserError:
            outcomes["error"] += 1
    assert min(outcomes.values()) > 20


def journal(tmp_path: Path) -> tuple[Any, Path]:
    pytest.importorskip("optuna")
    from cntkpy.commands.sweeps import optuna_study

    study = optuna_study.open_study(plan(), tmp_path / "made", False)
    for criterion in (0.5, None):
        trial = study.next()
        assert trial is not None
        study.report(trial, 1, 0.7)
        state = "finished" if criterion is not None else "failed"
        study.finish(trial, Row(trial.number, state, dict(trial.values), criterion, 1, 1.0, "e" * (criterion is None)))
        trial.release()
    return optuna_study, tmp_path / "made" / optuna_study.JOURNAL


def test_a_cut_journal_is_repaired_and_nothing_is_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    optuna_study, made = journal(tmp_path)
    whole = made.read_bytes()
    lines = whole.splitlines(keepends=True)
    for number, cut in enumerate((len(whole) - 1, len(whole) - 30, len(b"".join(lines[:-3])) + 20, 15)):
        folder = tmp_path / str(number)
        shutil.copytree(made.parent, folder)
        path = folder / optuna_study.JOURNAL
        path.write_bytes(whole[:cut])
        study = optuna_study.open_study(plan(), folder, False)
        assert f"{path} is damaged in line " in capsys.readouterr().err
        assert (folder / (path.name + ".damaged")).read_bytes() == whole[:cut]
        assert study.size() == 4
        seen = [row.number for row in study.ended()]
        while (trial := study.next()) is not None:
            study.finish(trial, Row(trial.number, "finished", dict(trial.values), 0.25, 1, 1.0))
            trial.release()
        assert sorted(row.number for row in study.ended()) == [0, 1, 2, 3] and len(seen) < 4
        optuna_study.open_study(plan(), folder, True)  # and others can read it
        assert capsys.readouterr().err == ""


def test_a_row_of_a_trial_that_the_journal_has_lost_counts(tmp_path: Path) -> None:
    optuna_study, made = journal(tmp_path)
    folder = tmp_path / "cut"
    folder.mkdir()
    Rows(folder).append(Row(0, "finished", {"a": "1"}, 0.125, 1, 1.0))
    lines = made.read_bytes().splitlines(keepends=True)
    (folder / optuna_study.JOURNAL).write_bytes(b"".join(lines[:3]) + lines[3][:20])
    study = optuna_study.open_study(plan(), folder, False)
    trial = study.next()
    assert trial is not None and trial.number == 1 and study.ended()[0].criterion == 0.125
    trial.release()


def test_a_file_that_is_no_journal_stays_as_it_is(tmp_path: Path) -> None:
    optuna_study, _ = journal(tmp_path)
    notes = tmp_path / "notes.txt"
    for content in (b"my notes\nmore", b"{}\n", b"\0\1\2", b'{"number": 1}\n'):
        notes.write_bytes(content)
        with pytest.raises(UserError, match=r"notes.txt is no journal of a study"):
            optuna_study.open_study(replace(plan(), storage=str(notes)), tmp_path, False)
        with pytest.raises(UserError, match=r"notes.txt is no journal of a study"):
            optuna_study.find_plan(str(notes), None)
        assert notes.read_bytes() == content


@pytest.mark.thorough
def test_changed_journals(tmp_path: Path) -> None:
    optuna_study, made = journal(tmp_path)
    outcomes = {"study": 0, "error": 0}
    for number, text in enumerate(changed(made.read_text(), 2, 160)):
        folder = tmp_path / f"case{number}"
        folder.mkdir()
        path = folder / optuna_study.JOURNAL
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        try:
            study = optuna_study.open_study(plan(), folder, False)
            study.ended()
            trial = study.next()
            if trial is not None:
                study.finish(trial, Row(trial.number, "finished", dict(trial.values), 0.25, 1, 1.0))
                trial.release()
            study.ended()
            outcomes["study"] += 1
        except UserError as error:
            assert "storage" in str(error) or "journal" in str(error) or "sweep" in str(error), error
            outcomes["error"] += 1
    assert outcomes["study"] > 20, outcomes
