"""Recurrent networks over sequences that are cut into pieces, and what counts as a sample there."""

import re

import pytest

DATA = "".join(f"{key} |x {value}\n" for key, values in enumerate([[1, 2, 3], [4], [5, 6], [7]]) for value in values)
CONFIG = """
precision = double
command = train:one:three:out
modelPath = run/m
train = [
    action = train
    NDLNetworkBuilder = [ run = net ]
    net = [
        x = Input(1)
        before = PastValue(1, sums, defaultHiddenActivity=0)
        sums = Plus(x, before)
        W = Parameter(1, 1, init=fixedValue, value=1)
        own = Times(W, x)
        each = SumColumnElements(own)
        all = SumElements(own)
        total = SumElements(sums)
        FeatureNodes = (x)
        CriterionNodes = (CRITERION)
        EvalNodes = (total)
        OutputNodes = (sums)
    ]
    SGD = [ minibatchSize = 9 ; maxEpochs = 1 ; learningRatesPerSample = 0.01 ; momentumPerMB = 0 ; L2RegWeight = 0.5 ]
    reader = [ READER ]
]
one = [ action = test ; minibatchSize = 2 ; reader = [ READER ; truncated = true ; truncationLength = 1 ] ]
three = [ action = test ; minibatchSize = 6 ; reader = [ READER ; truncated = true ; truncationLength = 3 ] ]
out = [ action = write ; outputPath = - ; reader = [ READER ; truncated = true ; truncationLength = 1 ] ]
""".replace(
    "READER",
    'randomize = false ; deserializers = ([ type = CNTKTextFormatDeserializer ; file = "d.txt" ; '
    "input = [ x = [ dim = 1 ; format = dense ] ] ])",
)


@pytest.fixture
def run(cntkpy):
    def run(criterion: str, delay: str = "PastValue(1, sums, "):
        config = CONFIG.replace("CRITERION", criterion).replace("PastValue(1, sums, ", delay)
        got = cntkpy("configFile=m.cntk", files={"m.cntk": config, "d.txt": DATA})
        assert got.code == 0, got.err
        return got

    return run


def test_sequences_go_on_in_the_next_minibatch_however_short_the_pieces_are(run) -> None:
    got = run("each")
    totals = re.findall(r"Final Results:.*total = ([\d.]+) \* 7", got.err)
    assert [float(total) for total in totals] == [pytest.approx((1 + 3 + 6 + 4 + 5 + 11 + 7) / 7)] * 2


def test_a_delay_may_be_longer_than_the_pieces(run) -> None:
    got = run("each", "PastValue(1, sums, timeStep=2, ")
    totals = re.findall(r"Final Results:.*total = ([\d.]+) \* 7", got.err)
    assert [float(total) for total in totals] == [pytest.approx((1 + 2 + 4 + 4 + 5 + 6 + 7) / 7)] * 2


def test_whole_sequences_are_written_though_the_reader_cuts_them(run) -> None:
    got = run("each")
    assert got.out.split() == [f"{value:f}" for value in (1, 3, 6, 4, 5, 11, 7)]


@pytest.mark.parametrize(("criterion", "samples"), [("each", 7), ("all", 9)])
def test_gaps_count_unless_the_criterion_has_a_value_for_each_sample(criterion: str, samples: int, run) -> None:
    got = run(criterion)
    weight = 1 - 0.01 * (sum(range(8)) + 0.5 * samples)  # the regularisation counts samples
    average = re.search(rf"Final Results:.*{criterion} = ([\d.]+) \* 7", got.err)
    assert average and float(average[1]) == pytest.approx(weight * 4)
