"""Every action has a sample configuration: they run as they are, and leave what they promise."""

import re
import shutil
from pathlib import Path

import pytest

from cntkpy.commands.catalogue.dispatch import ACTIONS

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = sorted(path.name for path in (ROOT / "sample_configs").glob("*.cntk"))
ERROR = re.compile(r"^Final Results: .*?(\w+) = ([\d.]+)%? \* (\d+)", re.MULTILINE)


@pytest.fixture
def sample(cntkpy, tmp_path: Path):
    shutil.copytree(ROOT / "sample_configs", tmp_path / "sample_configs", ignore=shutil.ignore_patterns("output"))

    def run(name: str, *words: str):
        got = cntkpy(f"configFile=sample_configs/{name}", *words)
        assert got.code == 0, got.err
        return got

    return run


@pytest.mark.thorough
def test_models(sample, tmp_path: Path) -> None:
    got = sample("models.cntk")
    output = tmp_path / "sample_configs/output"
    assert "Based on Err[0]: Best model = sample_configs/output/models.dnn" in got.err
    found = [float(value) for _, value, _ in ERROR.findall(got.err)]
    assert max(found[3:]) < 25  # of 100, after four epochs, also for the smaller model
    rows = [line.split() for line in (output / "models.results.txt").read_text().splitlines()]
    assert [row[0] for row in rows] == ["errors", "ce"]
    assert (output / "models.small.dnn").stat().st_size < (output / "models.dnn").stat().st_size
    after = re.findall(r"Finished Epoch\[ (\d) of 2\]: \[Training\] ce = ([\d.]+) \* 1400", got.err)
    assert float(after[1][1]) < float(after[0][1])
    names = {path.name for path in output.glob("models.*.grad")}
    assert {"models.W1.grad", "models.features.grad"} <= names
    assert "models.dot" in {path.name for path in output.iterdir()}

    from cntkpy.networks.files.model_file import load_model

    frozen = load_model(str(output / "models.frozen.dnn"))
    assert [node.name for node in frozen.parameters()] == ["W2", "b2"]


@pytest.mark.thorough
def test_fine_tuning(sample, tmp_path: Path) -> None:
    got = sample("fine_tuning.cntk")
    output = tmp_path / "sample_configs/output"
    rows = [line.split() for line in (output / "fine.h2").read_text().splitlines()]
    assert {len(row) for row in rows} == {20}
    errors = [float(value) for value in re.findall(r"Finished Epoch\[ 3 of 3\].*errs = ([\d.]+)%", got.err)]
    assert errors[2] < errors[1] < 20  # with all parameters trained, and with those of the new layer only
    (tested,) = [float(value) for value in re.findall(r"^Final Results: .*errs = ([\d.]+)%?", got.err, re.MULTILINE)]
    assert tested < 15

    from cntkpy.networks.files.model_file import load_model

    digits, top = (load_model(str(output / f"fine.{name}.dnn")) for name in ("digits", "top"))
    for name in ("h1.arrayOfFunctions[0].W", "h2.arrayOfFunctions[0].b"):
        assert (top[f"h.{name}"].value == digits[name].value).all()
    assert [node.name for node in top.parameters()] == ["z.W", "z.b"]
    assert load_model(str(output / "fine.softer.dnn"))["h1"].operation == "Sigmoid"


@pytest.mark.thorough
def test_batch_normalization(sample) -> None:
    got = sample("batch_normalization.cntk")
    found = [float(value) for _, value, _ in ERROR.findall(got.err)]
    assert len(found) == 2
    assert max(found) < 15


def test_label_map(sample, tmp_path: Path) -> None:
    got = sample("label_map.cntk")
    names = (tmp_path / "sample_configs/output/fruit.names.txt").read_text().split()
    assert sorted(names) == ["apple", "banana", "plum"]
    assert float(ERROR.findall(got.err)[0][1]) < 0.05


def test_word_classes(sample, tmp_path: Path) -> None:
    sample("word_classes.cntk")
    rows = [line.split() for line in (tmp_path / "sample_configs/output/words.vocabulary.txt").read_text().splitlines()]
    assert rows[0] == ["0", "23", "the", "0"]
    assert {row[3] for row in rows} == {"0", "1", "2", "3"}


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.sampled
def test_no_problems(name: str, cntkpy) -> None:
    assert cntkpy("check", f"sample_configs/{name}", cwd=ROOT).code == 0


def test_every_action_has_a_sample() -> None:
    texts = "\n".join((ROOT / "sample_configs" / name).read_text() for name in SAMPLES)
    used = {word for found in re.findall(r"action\s*=\s*([\w:]+)", texts) for word in found.split(":")}
    with_extras = {"export"}  # needs the packages of the extra onnx, which a clone's first command does not install
    for action in ACTIONS:
        assert action.unsupported or used & set(action.names) or action.names[0] in with_extras
