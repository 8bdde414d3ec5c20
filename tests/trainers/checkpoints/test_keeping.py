"""`keepModels`: which models of single epochs stay (C8)."""

from pathlib import Path

import pytest
import small_classification as actions
from hypothesis import given
from hypothesis import strategies as st

from cntkpy.trainers.checkpoints.keeping import Kept

WORDS = ("configFile=m.cntk", "command=train", "train=[SGD=[maxEpochs=5]]")


@pytest.fixture
def models(cntkpy, tmp_path: Path):
    """Trains; the names of the files that are there then."""

    def models(*words: str) -> list[str]:
        got = cntkpy(*WORDS, *words, files=actions.files(""))
        assert got.code == 0, got.err
        return sorted(path.name for path in (tmp_path / "run").iterdir() if not path.name.endswith(".lock"))

    return models


@pytest.mark.parametrize(
    ("keep", "there"),
    [
        ("all", ["m", "m.0", "m.1", "m.2", "m.3", "m.4", "m.ckp"]),
        ("last", ["m", "m.ckp"]),
        ("3", ["m", "m.3", "m.4", "m.ckp"]),
    ],
)
def test_models_that_stay(models, keep: str, there: list[str]) -> None:
    assert models(f"train/SGD/keepModels={keep}") == there


def test_the_best_model_stays(models, tmp_path: Path, cntkpy) -> None:
    """The rate is far too large from the third epoch on."""
    rates = "train=[SGD=[learningRatesPerSample=0.05*2:5;keepModels=best]]"
    assert models(rates) == ["m", "m.2", "m.ckp"]
    got = cntkpy(*WORDS, rates, "makeMode=false")
    assert "The best model is that of epoch 2, 'run/m.2'." in got.err


def test_the_best_one_is_known_after_a_restart(models, cntkpy) -> None:
    rates = "train=[SGD=[learningRatesPerSample=0.05*2:5;keepModels=best]]"
    assert models(rates, "train=[SGD=[maxEpochs=3]]") == ["m", "m.2", "m.ckp"]
    assert "m.2" in models(rates)


def test_a_rate_that_is_adjusted_may_go_back(models) -> None:
    """The model to which the control goes back is there until the end."""
    adjust = "train=[SGD=[keepModels=last;learningRatesPerSample=9;AutoAdjust=[autoAdjustLR=adjustAfterEpoch]]]"
    assert models(adjust, "train=[SGD=[maxEpochs=3]]") == ["m", "m.ckp"]


@pytest.mark.parametrize(("epochs", "keep", "said"), [(3, "", 0), (4, "", 1), (4, "train/SGD/keepModels=all", 0)])
def test_many_models_are_mentioned_once(cntkpy, monkeypatch, epochs: int, keep: str, said: int) -> None:
    monkeypatch.setattr("cntkpy.trainers.fronts.config.files.MANY_MODELS", 3)
    words = (*WORDS, f"train/SGD/maxEpochs={epochs}", *filter(None, [keep]))
    got = cntkpy(*words, files=actions.files(""))
    assert got.code == 0 and got.err.count("the models of 3 epochs are there and stay; keepModels=best") == said


@pytest.mark.parametrize("done", [2, 5])
@pytest.mark.parametrize(
    ("keep", "there"),
    [
        ("all", ["m", "m.0", "m.1", "m.2", "m.3", "m.4", "m.ckp"]),
        ("last", ["m", "m.ckp"]),
        ("best", ["m", "m.2", "m.ckp"]),
    ],
)
@pytest.mark.sampled
def test_what_a_kill_after_a_save_left(
    models, tmp_path: Path, monkeypatch, keep: str, there: list[str], done: int
) -> None:
    """A run killed between the new model and the removal of what is older than it leaves that to the next run."""
    words = ("train=[SGD=[learningRatesPerSample=0.05*2:5]]", f"train/SGD/keepModels={keep}")
    with monkeypatch.context() as killed:
        killed.setattr("cntkpy.trainers.fronts.config.files.remove_needless", lambda *_: None)
        models(*words)
    for epoch in range(6):
        model = tmp_path / "run" / ("m" if epoch == 5 else f"m.{epoch}")
        checkpoint = Path(f"{model}.ckp")
        if epoch > done:
            model.unlink()
        if epoch > done or epoch < done - 1:
            checkpoint.unlink(missing_ok=True)
    assert models(*words) == there


def test_checkpoints_kept_on_purpose_stay(models, tmp_path: Path) -> None:
    """As CNTK leaves them when a run without `keepCheckPointFiles` continues."""
    models("train/SGD/keepCheckPointFiles=true", "train=[SGD=[maxEpochs=3]]")
    assert "m.2.ckp" in models()


def test_a_word_that_says_nothing(cntkpy) -> None:
    got = cntkpy(*WORDS, "train/SGD/keepModels=0", files=actions.files(""))
    assert got.code == 2
    assert "write all, last, best, or a number of models" in got.err


@given(st.sampled_from(["last", "best", "1", "2", "7"]), st.integers(1, 30), st.integers(0, 30), st.integers(0, 4))
def test_the_newest_and_what_one_may_go_back_to_always_stay(keep: str, done: int, best: int, back: int) -> None:
    kept = Kept(keep, done, best, back)
    assert all(epoch in kept for epoch in range(done - back, done + 1))
    assert (best in kept) or keep != "best"
