"""The sample configurations of the language readers: they get better every epoch, and write what they should."""

import itertools
import re
import shutil
from pathlib import Path

import pytest

from cntkpy.readers.formats.language.writer import SequenceWriter

ROOT = Path(__file__).resolve().parents[4]
SAMPLES = ("language_model", "slot_tagging")


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    shutil.copytree(ROOT / "sample_configs", folder / "sample_configs", ignore=shutil.ignore_patterns("output"))
    return folder


def numbers(pattern: str, text: str) -> list[float]:
    return [float(found) for found in re.findall(pattern, text, re.MULTILINE)]


def falls(values: list[float]) -> bool:
    return all(after < before for before, after in itertools.pairwise(values))


@pytest.mark.thorough
def test_the_language_model(sample: Path, cntkpy) -> None:
    got = cntkpy("configFile=sample_configs/language_model.cntk", cwd=sample)
    assert got.code == 0, got.err
    training = numbers(r"^Finished Epoch.*\[Training\] TrainNodeClassBasedCrossEntropy = ([0-9.]+) \*", got.err)
    perplexity = numbers(r"^Final Results: .*perplexity = ([0-9.]+)", got.err)
    assert len(training) == 4
    assert falls(training)
    assert len(perplexity) == 5  # validated after every epoch, then tested
    assert falls(perplexity[:4])
    assert perplexity[4] == pytest.approx(perplexity[3], rel=1e-4)
    assert perplexity[4] < 4


@pytest.mark.thorough
def test_slot_tagging(sample: Path, cntkpy) -> None:
    got = cntkpy("configFile=sample_configs/slot_tagging.cntk", cwd=sample)
    assert got.code == 0, got.err
    errors = numbers(r"^Finished Epoch.*EvalClassificationError = ([0-9.]+) \*", got.err)
    assert len(errors) == 5
    assert falls(errors)
    (tested,) = numbers(r"^Final Results: .*EvalClassificationError = ([0-9.]+) \*", got.err)
    assert tested < 0.05
    answers = (sample / "sample_configs/output/trips.answers.txt").read_text().splitlines()
    text = (sample / "sample_configs/data/trips_test.tags").read_text()
    right = [[line.split()[-1] for line in one.splitlines()] for one in text.split("\n\n")]
    assert [len(line.split()) for line in answers] == [len(one) for one in right]
    pairs = [pair for a, b in zip(answers, right, strict=True) for pair in zip(a.split(), b, strict=True)]
    assert sum(a != b for a, b in pairs) == round(tested * len(pairs))


@pytest.mark.parametrize("name", SAMPLES)
def test_the_samples_have_no_problems(name: str, sample: Path, cntkpy) -> None:
    got = cntkpy("check", f"sample_configs/{name}.cntk", cwd=sample)
    assert (got.code, got.out) == (0, "no problems in 1 configuration\n")


def test_the_writers(tmp_path: Path) -> None:
    import numpy as np

    from cntkpy.cntk_config.parameters import parse

    (tmp_path / "words").write_text("a\nb\nc\n")
    (tmp_path / "classes").write_text("0 1 a 0\n1 1 b 0\n2 1 c 1\n")
    values = np.array([[0.1, 0.7, 0.2, 9], [0.5, 0.5, 0, 9]])
    for with_classes, token, best, want in (
        (False, "words", 1, "b a \nb a \n"),
        (True, "classes", 1, "b a \nb a \n"),
        (False, "words", 2, "b c a b \nb c a b \n"),
        (False, "words", 3, "b c a a b \nb c a a b \n"),
    ):
        out = tmp_path / "out.txt"
        text = f'node=[file="{out}";token="{tmp_path / token}";nbest={best}]'
        writer = SequenceWriter(parse(text), with_classes)
        for _ in range(2):
            assert writer.save({"Node": values})
        assert not out.exists()
        writer.close()
        assert out.read_text() == want
        out.unlink()
    writer = SequenceWriter(parse(text), False)
    with pytest.raises(Exception, match="no section for the node 'nodes'"):
        writer.save({"nodes": values})
    writer.abandon()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["classes", "words"]
