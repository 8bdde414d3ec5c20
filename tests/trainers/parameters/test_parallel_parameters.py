"""What `ParallelTrain` may say: defaults, older names, and what is refused."""

import pytest

from cntkpy.cntk_config import parse
from cntkpy.cntk_config.base.diagnostics import ConfigError
from cntkpy.trainers.parameters.parallel import ParallelParameters
from cntkpy.trainers.parameters.sgd import SGDParameters


def read(section: str) -> ParallelParameters:
    found = SGDParameters(parse(f"ParallelTrain = [\n{section}\n]\n")).parallel_train
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("parallelizationMethod = sgd", "'sgd' is not one of none, DataParallelSGD"),
        ("parallelizationStartEpoch = 0", "epochs are counted from 1"),
        ("parallelizationStartEpoch = -1", "epochs are counted from 1"),
        ("syncPerfStats = -1", "at least 0"),
        ("DataParallelSGD = [ gradientBits = 0 ]", "gradientBits lies between 1 and 64 in double precision"),
        ("DataParallelSGD = [ gradientBits = 1:65 ]", "gradientBits lies between 1 and 64 in double precision"),
        ("ModelAveragingSGD = [ blockSize = 8 ; blockSizePerWorker = 4 ]", "either blockSize or blockSizePerWorker"),
        ("ModelAveragingSGD = [ syncPeriod = 8 ; syncFrequencyInFrames = 4 ]", "syncFrequencyInFrames or syncPeriod"),
        ("ModelAveragingSGD = [ blockSizePerWorker = 0 ]", "at least one sample"),
        ("BlockMomentumSGD = [ blockSize = 0 ]", "at least one sample"),
        ("BlockMomentumSGD = [ blockMomentumPerSync = 1 ]", "blockMomentumPerSync is at least 0 and below 1"),
        ("BlockMomentumSGD = [ blockMomentumPerSync = 0.5 ; blockMomentumAsTimeConstant = 9 ]", "not both"),
        ("BlockMomentumSGD = [ blockMomentumAsTimeConstant = -1 ]", "blockMomentumAsTimeConstant is a finite number"),
        ("BlockMomentumSGD = [ blockLearningRate = 0 ]", "blockLearningRate is above 0"),
    ],
)
def test_what_is_refused(section: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        read(section).check("double")
    assert caught.value.span is not None
    assert caught.value.span.line == 2


def test_asynchronous_training_is_for_one_worker() -> None:
    p = read("parallelizationMethod = dataParallelASGD\nDataParallelASGD = [ syncPeriod = 128 ; UsePipeline = true ]")
    p.check("float")
    p.check_workers(1)
    with pytest.raises(ConfigError, match="not supported with 2 workers") as caught:
        p.check_workers(2)
    assert "use DataParallelSGD" in str(caught.value.diagnostic.hint)


def test_defaults_and_older_names() -> None:
    p = read("")
    p.check("float")
    assert (p.method, p.start_epoch, p.distributed_reading, p.sync_statistics) == ("none", 1, None, 0)
    assert p.averaging.block_size(3, 40000) == 120000
    b = p.block_momentum
    assert (b.reset, b.nesterov, b.rate, b.per_sync, b.time_constant) == (True, True, 1.0, None, None)
    for name in ("blockSizePerWorker", "syncFrequencyInFrames", "syncPeriod"):
        assert read(f"ModelAveragingSGD = [ {name} = 50 ]").averaging.block_size(3, 40000) == 150
    assert read("BlockMomentumSGD = [ blockSize = 50 ]").block_momentum.block_size(3, 40000) == 50
    assert read("parallelizationMethod = dataparallelsgd").method == "DataParallelSGD"


def test_a_word_is_no_section() -> None:
    """`parallelTrain = true` of the top level is found under the name of the section."""
    assert SGDParameters(parse("parallelTrain = true\n")).parallel_train is None
