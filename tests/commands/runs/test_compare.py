"""`cntkpy diff RUN1 RUN2`: configurations, surroundings, results."""

import json
from pathlib import Path

FIRST = [
    {
        "time": "2026-01-01T00:00:00+00:00",
        "event": "run started",
        "versions": {"cntkpy": "1", "jax": "2"},
        "place": {"host": "a"},
        "settings": [
            {"name": "train:rate", "value": "0.10", "origins": [{"kind": "set", "at": "m.cntk:1:2"}]},
            {"name": "x", "value": "a  b", "origins": []},
            {"name": "old", "value": "1", "origins": []},
        ],
    },
    {"event": "action", "command": "train", "action": "train"},
    {"event": "epoch finished", "epoch": 1, "nodes": {"ce": 0.5}},
    {"event": "warning", "text": "so\u001b it is"},
    {"event": "action", "command": "test", "action": "test"},
    {"event": "final results", "nodes": {"ce": 0.25}, "samples": 3},
    {"event": "run finished", "status": 0},
]


def write(folder: Path, name: str, events: list[dict]) -> None:
    (folder / name).mkdir()
    (folder / name / "log.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))


def second() -> list[dict]:
    events = json.loads(json.dumps(FIRST))
    events[0]["versions"] = {"cntkpy": "1", "jax": "3"}
    events[0]["settings"] = [
        {"name": "Train:rate", "value": "1e-1", "origins": []},
        {
            "name": "x",
            "value": "c",
            "origins": [{"kind": "variable", "at": "v:1"}, {"kind": "set", "at": "n.cntk:3:4"}],
        },
    ]
    events[2]["nodes"]["ce"] = 0.25
    del events[3]
    events[-1] = {"event": "run finished", "status": 1, "error": "disk"}
    return events


def test_what_differs(cntkpy, tmp_path: Path) -> None:
    write(tmp_path, "a", FIRST)
    write(tmp_path, "b", second())
    got = cntkpy("diff", "a", "b", "--origins")
    assert (got.code, got.err) == (1, "")
    assert got.out.splitlines() == [
        "- x=a b",
        "+ x=c  # n.cntk:3:4",
        "- old=1",
        "# jax: 2 -> 3",
        "# state: completed -> failed",
        "- WARNING: so? it is",
        "# train ce best: 0.5 -> 0.25  (-0.25)",
        "# train ce last: 0.5 -> 0.25  (-0.25)",
    ]


def test_no_difference(cntkpy, tmp_path: Path) -> None:
    write(tmp_path, "a", FIRST)
    write(tmp_path, "b", FIRST)
    assert cntkpy("diff", "a", "b/log.jsonl") == type(cntkpy("diff", "a", "a"))(0, "", "")


def test_a_folder_with_several_runs(cntkpy, tmp_path: Path) -> None:
    (tmp_path / "all").mkdir()
    write(tmp_path / "all", "a", FIRST)
    write(tmp_path / "all", "b", FIRST)
    got = cntkpy("diff", "all", "all/a")
    assert got.code == 2
    assert "all has 2 runs, but one is compared" in got.err and "all/a/log.jsonl" in got.err
