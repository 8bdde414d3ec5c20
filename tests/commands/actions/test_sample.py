"""The sample configuration trains, tests under 10 % error, writes, and leaves finished work alone."""

import re
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    shutil.copytree(ROOT / "sample_configs", folder / "sample_configs", ignore=shutil.ignore_patterns("output"))
    return folder


def test_the_digits(sample: Path, cntkpy) -> None:
    got = cntkpy("configFile=sample_configs/digits.cntk", cwd=sample)
    assert got.code == 0, got.err
    found = re.search(r"^Final Results: .*EvalClassificationError = ([0-9.]+) \* 397;", got.err, re.MULTILINE)
    assert found is not None
    assert float(found[1]) < 0.10
    answers = (sample / "sample_configs/output/answers.PosteriorProb").read_text().split()
    lines = (sample / "sample_configs/data/digits_test.ctf").read_text().splitlines()
    digits = [line.split("|")[1].split()[1:].index("1") for line in lines]
    wrong = sum(int(answer) != digit for answer, digit in zip(answers, digits, strict=True))
    assert wrong == round(float(found[1]) * 397)

    again = cntkpy("configFile=sample_configs/digits.cntk", "command=train:test", cwd=sample)
    assert "Final model exists: sample_configs/output/digits.model" in again.err
    assert found[0] in again.err


def test_the_sample_has_no_problems(sample: Path, cntkpy) -> None:
    got = cntkpy("check", "sample_configs/digits.cntk", cwd=sample)
    assert (got.code, got.out) == (0, "no problems in 1 configuration\n")


def test_the_lines_of_the_readme_are_those_of_ci() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    line = next(line for line in readme.splitlines() if line.startswith("python3 -m venv") and "pytest" in line)
    assert line in (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert "'.[train]' && .venv/bin/cntkpy configFile=sample_configs/digits.cntk" in readme


def test_links_of_the_documentation() -> None:
    for page in [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("sample_configs/*.md")]:
        for link in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page}: {link}"
