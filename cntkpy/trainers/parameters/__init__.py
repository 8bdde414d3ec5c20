"""The parameters of training, declared once."""

from cntkpy.cntk_config.entry import Entry

_SGD, _PARALLEL = "cntkpy.trainers.parameters.sgd", "cntkpy.trainers.parameters.parallel"
ENTRIES = (
    Entry(
        "section", ("SGD",), parameters=f"{_SGD}:SGDParameters", within=("train", "adapt"),
        example="SGD = [ maxEpochs = 10 ; minibatchSize = 64:256 ; learningRatesPerMB = 0.1*5:0.01 ; "
        "momentumPerMB = 0.9 ]",
    ),
    Entry(
        "section", ("AutoAdjust",), parameters=f"{_SGD}:AutoAdjustParameters", within=("SGD",),
        example="AutoAdjust = [ autoAdjustLR = adjustAfterEpoch ; learnRateDecreaseFactor = 0.5 ]",
    ),
    Entry(
        "section", ("ParallelTrain",), parameters=f"{_PARALLEL}:ParallelParameters", within=("SGD",),
        example="ParallelTrain = [ parallelizationMethod = DataParallelSGD ]",
    ),
    Entry(
        "section", ("DataParallelSGD",), parameters=f"{_PARALLEL}:DataParallelParameters", within=("ParallelTrain",),
        example="DataParallelSGD = [ gradientBits = 32 ]",
    ),
    Entry(
        "section", ("ModelAveragingSGD",), parameters=f"{_PARALLEL}:ModelAveragingParameters",
        within=("ParallelTrain",), example="ModelAveragingSGD = [ blockSizePerWorker = 40000 ]",
    ),
    Entry(
        "section", ("BlockMomentumSGD",), parameters=f"{_PARALLEL}:BlockMomentumParameters",
        within=("ParallelTrain",),
        example="BlockMomentumSGD = [ blockSizePerWorker = 120000 ; blockMomentumPerSync = 0.75 ]",
    ),
)  # fmt: skip
"""The section `SGD` and those in it."""
