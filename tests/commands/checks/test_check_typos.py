"""30 misspellings in a configuration of 200 lines: all are found, at their places, nearly all with the right repair."""

import re
from pathlib import Path

import pytest

SPEECH = Path(__file__).with_name("speech.cntk").read_text(encoding="utf-8")

TYPOS = [
    # (the right word, which occurrence of it from 0, the misspelling)
    ("traceLevel", 0, "tracelevl"),
    ("numCPUThreads", 0, "numCPUThread"),
    ("makeMode", 0, "makeMod"),
    ("trainDNN", 0, "trainDNM"),
    ("modelPath", 1, "modelpaht"),
    ("action", 2, "acton"),
    ("run", 1, "rnu"),
    ("epochSize", 0, "epochsSize"),
    ("minibatchSize", 0, "miniBatchSizes"),
    ("learningRatesPerMB", 0, "learningRatePerMB"),
    ("momentumPerMB", 0, "momentumPrMB"),
    ("maxEpochs", 0, "maxEpoch"),
    ("dropoutRate", 0, "dropoutRat"),
    ("L2RegWeight", 0, "L2RegWieght"),
    ("gradUpdateType", 0, "gradUpdatType"),
    ("keepCheckPointFiles", 0, "keepCheckpointFile"),
    ("autoAdjustLR", 0, "autoAjustLR"),
    ("adjustAfterEpoch", 0, "adjustAfterEpochs"),
    ("learnRateDecreaseFactor", 0, "learningRateDecreaseFactor"),
    ("CNTKTextFormatReader", 0, "CNTKTextFormatRaeder"),
    ("randomizationWindow", 0, "randomisationWindow"),
    ("cvReader", 0, "cvReder"),
    ("dense", 0, "dens"),
    ("alias", 0, "alais"),
    ("featureDim", 1, "featureDims"),
    ("Sigmoid", 0, "Sigmiod"),
    ("initValueScale", 0, "initValueScal"),
    ("SigmoidLayer", 2, "SigmoidLayr"),
    ("layerSizes", 0, "layersizs"),
    ("CNTKTextFormatDeserializer", 0, "CNTKTextFormatDeserialiser"),
]


def place(word: str, occurrence: int) -> re.Match[str]:
    """Where a word stands, comments aside."""
    found = [
        one
        for one in re.finditer(rf"(?<![\w/.]){re.escape(word)}(?!\w)", SPEECH)
        if "#" not in SPEECH[SPEECH.rfind("\n", 0, one.start()) + 1 : one.start()]
    ]
    return found[occurrence]


def seed(folder: Path, typo: tuple[str, int, str]) -> tuple[int, int]:
    """Write the configuration with a misspelling; return its line and column."""
    word, occurrence, wrong = typo
    at = place(word, occurrence)
    text = SPEECH[: at.start()] + wrong + SPEECH[at.end() :]
    (folder / "speech.cntk").write_text(text, encoding="utf-8")
    (folder / "data").mkdir(exist_ok=True)
    for name in ("train", "dev", "test"):
        (folder / f"data/{name}.ctf").touch()
    begin = at.start() - (SPEECH[at.start() - 1] == "$")  # the place of a variable is that of its $
    return SPEECH.count("\n", 0, begin) + 1, begin - SPEECH.rfind("\n", 0, begin)


def test_the_configuration_is_good(tmp_path: Path, cntkpy) -> None:
    seed(tmp_path, ("action", 0, "action"))
    assert cntkpy("check", "speech.cntk").out == "no problems in 1 configuration\n"
    assert 190 <= SPEECH.count("\n") <= 210
    assert len(TYPOS) == len(set(TYPOS)) == 30


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.thorough)])
def test_typos_are_found_at_their_places_and_nearly_always_repaired(tmp_path: Path, cntkpy, every: int) -> None:
    wrong = []
    for typo in TYPOS[::every]:
        line, column = seed(tmp_path, typo)
        got = cntkpy("check", "speech.cntk")
        assert got.code in (1, 2), f"{typo}: {got.out}"
        found = [one for one in got.out.splitlines() if one.startswith(f"speech.cntk:{line}:{column}: ")]
        assert any(re.match(r"[^ ]+ (error|warning): ", one) for one in found), f"{typo}: {got.out}"
        if not any(f"'{typo[0]}'" in one.split(" - ")[-1] for one in found):
            wrong.append(typo)
    assert len(wrong) <= 3 // every, wrong


def test_a_name_in_the_wrong_section_is_told_where_it_belongs(tmp_path: Path, cntkpy) -> None:
    text = re.sub(r"AutoAdjust *= *\[[^\]]*\]", "loadBestModel = true", SPEECH)
    assert text != SPEECH
    (tmp_path / "speech.cntk").write_text(text, encoding="utf-8")
    (found,) = (one for one in cntkpy("check", "speech.cntk").out.splitlines() if "loadBestModel" in one)
    assert found.endswith("hint: SGD: nothing reads 'loadBestModel' - it is a parameter of 'AutoAdjust' [CK011]")


def test_the_time_is_linear_in_the_findings() -> None:
    """20,000 names that nothing reads took minutes (R10)."""
    import time

    from cntkpy.cntk_config import parse
    from cntkpy.commands.checks.look import look

    def seconds(count: int) -> float:
        names = "\n".join(f"nobodyHasHeardOf{number:05}=1" for number in range(count))
        root = parse(f"command=train\ntrain=[action=train;SGD=[maxEpochs=1\n{names}\n]]", "m.cntk")
        start = time.process_time()
        found = look(root)
        assert sum(one.kind == "UnusedParameter" for one in found) == count
        return time.process_time() - start

    seconds(100)
    assert seconds(2000) < 12 * seconds(500)


@pytest.mark.thorough
def test_the_time_is_linear_in_undefined_variables() -> None:
    """Every one of them looked for the nearest of all names."""
    import time

    from cntkpy.cntk_config import parse
    from cntkpy.commands.checks.look import look

    def seconds(count: int) -> float:
        names = "\n".join(f"colour{number:05} = $undefined{number:05}$" for number in range(count))
        root = parse(f"command=train\ntrain=[action=train;SGD=[maxEpochs=1\n{names}\n]]", "m.cntk")
        start = time.process_time()
        assert sum(one.kind == "UnknownVariable" for one in look(root)) == count
        return time.process_time() - start

    seconds(100)
    assert seconds(2400) < 10 * seconds(600)


@pytest.mark.parametrize("values", ["8,16,16", "1,000,000", "8, 16, 16"])
def test_values_that_come_twice_behind_commas(values: str, cntkpy) -> None:
    """The last ones are lost, too: the same name twice is a name without a value as well."""
    text = f"""command = t
t = [ action = train ; modelPath = m
    SimpleNetworkBuilder = [ layerSizes = 1:1 ; trainingCriterion = SquareError ; evalCriterion = SquareError ]
    SGD = [ maxEpochs = 3 ; learningRatesPerSample = 0.1 ; minibatchSize = {values} ]
    reader = [ file = d.ctf
        input = [ features = [ dim = 1 ; format = dense ] ; labels = [ dim = 1 ; format = dense ] ] ]
]
"""
    last = values.rpartition(",")[2].strip()
    result = cntkpy("check", "m.cntk", files={"m.cntk": text, "d.ctf": "|features 1 |labels 1\n"})
    assert result.code == 2
    assert f"error: SGD: '{last}' is read as a parameter of its own: what follows a comma is cut off" in result.out


@pytest.mark.parametrize("place", ["command = ()", "modelPath = m"])
def test_marks_of_a_merge(place: str, cntkpy) -> None:
    text = "command = ()\nt = [ action = test\nmodelPath = m\n]\n"
    merged = text.replace(place, f"<<<<<<< HEAD\n{place}\n=======\n{place}\n>>>>>>> other")
    result = cntkpy("check", "m.cntk", files={"m.cntk": merged.replace("()", "t")})
    assert result.out.count("is a mark of a merge of Git - keep one of the two versions") == 2
    assert result.code >= 1
