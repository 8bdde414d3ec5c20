"""`action=SVD`: ranks, values and graph against NumPy's own decomposition."""

import re
from pathlib import Path

import numpy as np
import pytest
import small_classification as actions

SVD = 'svd = [ action = SVD ; outputmodelPath = run/s ; NodeNameRegex = "W" ; AlignedSize = 1 ; KeepRatio = 0.5 ]\n'
TEST = "test = [ action = test ]\ndump = [ action = dumpNode ; modelPath = run/s ; printValues = false ]\n"


@pytest.fixture
def run(cntkpy, already_trained):
    already_trained(files=actions.files(""))

    def run(*words: str, more: str = "", **extra: str):
        return cntkpy("configFile=m.cntk", *words, files=actions.files(SVD + TEST + more) | extra)

    return run


def test_one_singular_value(run, tmp_path: Path) -> None:
    got = run("command=train:svd:test:dump", "test=[modelPath=run/s]")
    assert got.code == 0, got.err
    before, after = actions.model(tmp_path / "run/m"), actions.model(tmp_path / "run/s")
    u, values, v = np.linalg.svd(before["W"])
    assert values[0] > 0.5 * values.sum()
    np.testing.assert_allclose(after["W_U"] @ after["W_V"], values[0] * np.outer(u[:, 0], v[0]), atol=1e-12)
    assert np.linalg.norm(after["W_U"]) == pytest.approx(np.linalg.norm(after["W_V"]))  # the root of the value in both
    assert "W" not in after
    final = re.search(r"^Final Results: .* ce = (\S+) \*", got.err, re.M)
    assert final is not None
    low_rank = {**before, "W": values[0] * np.outer(u[:, 0], v[0])}
    assert float(final[1]) == pytest.approx(actions.criterion(low_rank), abs=1e-8)
    text = (tmp_path / "run/s.__AllNodes__.txt").read_text()
    for line in (
        "t=Times ( W_V , x )",
        "W_SVD=Times ( W_U , t )",
        "z=Plus ( W_SVD , b )",
        "W_U=LearnableParameter [3,1] ",
    ):
        assert line in text
    assert f"rank 1 now, with {100 * values[0] / values.sum():.1f}% of the sum" in got.err


@pytest.mark.parametrize(("ratio", "aligned", "rank"), [(0.999, 1, 2), (0.01, 1, 1), (0.01, 2, 2), (1, 8, 2)])
def test_ranks(ratio: float, aligned: int, rank: int, run, tmp_path: Path) -> None:
    assert run("command=train:svd", f"svd=[KeepRatio={ratio};AlignedSize={aligned}]").code == 0
    assert actions.model(tmp_path / "run/s")["W_U"].shape == (3, rank)


@pytest.mark.thorough
def test_everything_kept_changes_nothing(run, tmp_path: Path) -> None:
    got = run("command=train:test:svd", "svd=[KeepRatio=1]")
    again = run("command=test", "test=[modelPath=run/s]")
    finals = [re.search(r"^Final Results: .* ce = (\S+) \*", one.err, re.M) for one in (got, again)]
    assert finals[0] is not None and finals[1] is not None
    assert finals[0][1] == finals[1][1]


def test_an_output_keeps_its_name(run, tmp_path: Path) -> None:
    mel = f'm = LoadModel("{tmp_path}/run/m")\nSetProperty(t, output, true)\nSaveDefaultModel("{tmp_path}/run/e")\n'
    more = "edit = [ action = edit ; editPath = e.mel ]\n"
    got = run("command=train:edit:svd:dump", "svd=[modelPath=run/e]", more=more, **{"e.mel": mel})
    assert got.code == 0, got.err
    text = (tmp_path / "run/s.__AllNodes__.txt").read_text()
    for line in ("W_SVD=Times ( W_V , x )", "t=Times ( W_U , W_SVD )", "z=Plus ( t , b )"):
        assert line in text


@pytest.mark.thorough
def test_several_uses_become_a_product(run, tmp_path: Path) -> None:
    twice = "tw = [ action = train ; NDLNetworkBuilder = [ run = two ]\n"
    twice += "SGD = [ maxEpochs = 1 ; learningRatesPerSample = 0.01 ]\n"
    twice += actions.NETWORK.replace("net = [", "two = [").replace(
        "z = Plus(t, b)", "t2 = Times(W, x)\nz = Plus(t, t2)"
    )
    got = run("command=tw:test:svd:dump:test", "svd=[KeepRatio=1]", "makeMode=false", more=twice + "]\n")
    assert got.code == 0, got.err
    text = (tmp_path / "run/s.__AllNodes__.txt").read_text()
    for line in ("W=Times ( W_U , W_V )", "t=Times ( W , x )", "t2=Times ( W , x )"):
        assert line in text
    again = run("command=test", "test=[modelPath=run/s]")
    assert again.err.split("Final Results")[1].split("; perp")[0] in got.err


def test_a_file_of_expressions(run, tmp_path: Path) -> None:
    words = ("command=train:svd", "svd=[SVDConfig=svd.txt]")
    assert run(*words, **{"svd.txt": "\ufeffW 0.999\n\nb 0.5\nW.* 0.01\n"}).code == 0
    found = actions.model(tmp_path / "run/s")  # the vector b is left alone, and so are factors
    assert {name: found[name].shape for name in ("W_U", "W_V", "b")} == {"W_U": (3, 2), "W_V": (2, 2), "b": (3, 1)}


def test_nothing_matches(run, tmp_path: Path) -> None:
    got = run("command=train:svd", "svd=[NodeNameRegex=w]")
    assert got.code == 0
    assert "no matrix of the model matches" in got.err
    assert "W" in actions.model(tmp_path / "run/s")


def test_a_tensor_that_matches_is_told(run, tmp_path: Path) -> None:
    mel = "m = CreateModel()\nx = Input(2, 1, 2, tag=feature)\nK = Parameter(3, 2, 1, 2)\n"
    mel += f'z = Times(K, x, tag=output)\nSaveModel(m, "{tmp_path}/run/e")\n'
    more = "edit = [ action = edit ; editPath = e.mel ]\n"
    got = run("command=edit:svd", "svd=[modelPath=run/e;NodeNameRegex=K]", more=more, **{"e.mel": mel})
    assert got.code == 0 and "SVD: K [3 x 2 x 1 x 2] stays as it is" in got.err


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        ("svd=[KeepRatio=0]", 2, "the ratio to keep lies above 0"),
        ("svd=[KeepRatio=1.5]", 2, "the ratio to keep lies above 0"),
        ("svd=[AlignedSize=0]", 2, "AlignedSize is at least 1"),
        ('svd=[NodeNameRegex="("]', 2, "not a regular expression"),
        ("svd=[NodeNameRegex=default]", 2, "needs NodeNameRegex or SVDConfig"),
        ("svd=[outputmodelPath=default]", 2, "outputmodelPath"),
        ("svd=[SVDConfig=none.txt]", 2, "'none.txt': no such file"),
        ("svd=[SVDConfig=bad.txt]", 2, "bad.txt:2: a line has a regular expression and a ratio"),
        ("svd=[SVDConfig=bad2.txt]", 2, "bad2.txt:1: the ratio to keep lies above 0 and up to 1, not x"),
        ("svd=[modelPath=none]", 2, "there is no model none"),
    ],
)
def test_errors(words: str, code: int, expected: str, run) -> None:
    got = run("command=svd", words, **{"bad.txt": "W 0.1\nW\n", "bad2.txt": "W x\n"})
    assert got.code == code, got.err
    assert expected in got.message
