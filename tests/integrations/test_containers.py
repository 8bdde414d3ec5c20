"""The Dockerfile and the dev container: pinned bases, no root, no secrets, everything that the package needs."""

import json
import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
SECRET = re.compile(r"passw|secret|token|api_?key|credential", re.IGNORECASE)
PINNED = re.compile(r"[\w./-]+(:\d+\.\d+\.\d+[\w.-]*)?@sha256:[0-9a-f]{64}")
ACTION = re.compile(r"uses: +([\w./-]+)(@\S+)?( # v[\d.]+)?$", re.MULTILINE)
LOCKS = "integrations/containers"


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
        if word == "RUN" and re.search(r"pip install (?!.*(--require-hashes|--no-deps))", rest):
            found.append(f"RUN {rest}: packages have no hashes")
        if word == "RUN" and re.search(r"(curl|wget)[^|]*\|\s*(ba)?sh|\bsudo\b", rest):
            found.append(f"RUN {rest}")
    return found + [f"{one} runs as root" for one in sorted(starts) if users[one] in ("root", "0")]


def test_faults_are_found() -> None:
    text = 'FROM python:latest AS a\nENV API_TOKEN=x\nADD http://x/y /\nRUN curl x | sh\nENTRYPOINT ["a"]\n'
    assert len(faults(text)) == 5
    base = f"FROM a:1.2.3@sha256:{'0' * 64} AS b\nUSER me\nFROM b AS c\n"
    assert faults(f"{base}ENTRYPOINT x\n") == []
    assert faults(f"{base}USER 0\nENTRYPOINT x\n") == ["c runs as root"]
    assert faults(base.partition("@")[0] + " AS b\n") == ["a:1.2.3 is not pinned"]
    assert faults(f"{base}RUN pip install x\n") == ["RUN pip install x: packages have no hashes"]


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
        LOCKS,
    }
    copies = [rest.split() for word, rest in instructions((ROOT / "Dockerfile").read_text("utf-8")) if word == "COPY"]
    copied = {name for words in copies if not words[0].startswith("--") for name in words[:-1]}
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line.startswith("!")}
    assert copied == let_in == needed


def test_the_locks_have_every_package_with_hashes() -> None:
    """What the extras of an image ask for, at one version each; pip refuses a package that is not in the file."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

    def wanted(extra: str) -> set[str]:
        found: set[str] = set()
        for one in project["optional-dependencies"][extra]:
            part = re.fullmatch(r"cntkpy\[([\w-]+)\]", one)
            found |= wanted(part[1]) if part else {canonicalize_name(Requirement(one).name)}
        return found

    base = {canonicalize_name(Requirement(one).name) for one in project["dependencies"]}
    for name, needed in (("check", base | wanted("data")), ("train", base | wanted("train") | wanted("image"))):
        entries = re.split(r"\n(?=\w)", (ROOT / LOCKS / f"{name}.txt").read_text("utf-8").strip())
        assert all(re.match(r"[\w.-]+==[\w.]+", one) and "--hash=sha256:" in one for one in entries)
        assert needed <= {canonicalize_name(one.partition("==")[0]) for one in entries}
        assert f"--require-hashes -r /locks/{name}.txt" in (ROOT / "Dockerfile").read_text("utf-8")
    assert "hatchling==" in (ROOT / LOCKS / "build.txt").read_text("utf-8")


def test_actions_and_images_are_pinned_by_digest() -> None:
    workflows = [*(ROOT / ".github/workflows").glob("*.yml"), ROOT / "action.yml"]
    uses = [found for path in workflows for found in ACTION.finditer(path.read_text("utf-8"))]
    assert len(uses) > 20
    for found in uses:
        assert found[1] == "./" or (re.fullmatch("@[0-9a-f]{40}", found[2] or "") and found[3]), found[0]
    image = re.findall(r"image: (\S+)", (ROOT / "integrations/gitlab-check.yml").read_text("utf-8"))
    assert len(image) == 1 and PINNED.fullmatch(image[0])


def test_the_dev_container() -> None:
    made = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text("utf-8"))
    assert made["remoteUser"] not in ("", "root")
    assert not made["image"].endswith("latest") and ":" in made["image"]
    assert ".[dev]" in made["postCreateCommand"]
