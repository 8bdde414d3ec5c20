"""The Dockerfile and the dev container: pinned bases, no root, no secrets, everything that the package needs."""

import json
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SECRET = re.compile(r"passw|secret|token|api_?key|credential", re.IGNORECASE)
PINNED = re.compile(r"[\w./-]+(:\d+\.\d+\.\d+[\w.-]*|@sha256:[0-9a-f]{64})")


def instructions(text: str) -> list[tuple[str, str]]:
    """The instructions of a Dockerfile: word and arguments, continued lines joined, comments left out."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ").splitlines()
    return [(word.upper(), rest.strip()) for word, _, rest in (line.strip().partition(" ") for line in joined)]


def faults(text: str) -> list[str]:
    """What is wrong with a Dockerfile."""
    found: list[str] = []
    users: dict[str, str] = {}
    stage, starts = "", set[str]()
    for word, rest in instructions(text):
        if word == "FROM":
            base, _, stage = rest.partition(" AS ")
            if base not in users and not PINNED.fullmatch(base):
                found.append(f"{base} is not pinned")
            users[stage] = users.get(base, "root")
        elif word == "USER":
            users[stage] = rest.split(":")[0]
        elif word == "ENTRYPOINT":
            starts.add(stage)
        elif word == "ADD":
            found.append(f"ADD {rest}: COPY adds what is here and nothing else")
        if word in ("ENV", "ARG") and SECRET.search(rest):
            found.append(f"{word} {rest}: a secret stays in the image")
        if word == "RUN" and re.search(r"(curl|wget)[^|]*\|\s*(ba)?sh|\bsudo\b", rest):
            found.append(f"RUN {rest}")
    return found + [f"{one} runs as root" for one in sorted(starts) if users[one] in ("root", "0")]


def test_faults_are_found() -> None:
    text = 'FROM python:latest AS a\nENV API_TOKEN=x\nADD http://x/y /\nRUN curl x | sh\nENTRYPOINT ["a"]\n'
    assert len(faults(text)) == 5
    assert faults("FROM a:1.2.3 AS b\nUSER me\nFROM b AS c\nENTRYPOINT x\n") == []
    assert faults("FROM a:1.2.3 AS b\nUSER me\nFROM b AS c\nUSER 0\nENTRYPOINT x\n") == ["c runs as root"]


def test_the_dockerfile() -> None:
    text = (ROOT / "Dockerfile").read_text("utf-8")
    assert not faults(text)
    stages = [rest.partition(" AS ")[2] for word, rest in instructions(text) if word == "FROM"]
    assert {"check", "train"} <= set(stages) and stages[-1] == "check"


def test_what_the_package_needs_is_copied() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    needed = {
        *project["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"],
        *project["project"]["license-files"],
        project["project"]["readme"],
        "pyproject.toml",
    }
    copies = [rest.split() for word, rest in instructions((ROOT / "Dockerfile").read_text("utf-8")) if word == "COPY"]
    copied = {name for words in copies if not words[0].startswith("--") for name in words[:-1]}
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line.startswith("!")}
    assert copied == let_in == needed
    extras = set(re.findall(r"whl\)\[([\w,]+)\]", (ROOT / "Dockerfile").read_text("utf-8"))[0].split(","))
    assert extras <= set(project["project"]["optional-dependencies"])


def test_the_dev_container() -> None:
    made = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text("utf-8"))
    assert made["remoteUser"] not in ("", "root")
    assert not made["image"].endswith("latest") and ":" in made["image"]
    assert ".[dev]" in made["postCreateCommand"]
