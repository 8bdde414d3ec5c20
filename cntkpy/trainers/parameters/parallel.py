"""`ParallelTrain` and its sub-sections, declared once: to read, check and document them."""

import math

from cntkpy.cntk_config.declare import (
    BOOLEAN,
    COUNT,
    INTEGER,
    REAL,
    SIZE,
    TEXT,
    Declared,
    Parameter,
    choice,
    per_epoch,
    section_of,
)

ASYNCHRONOUS = "DataParallelASGD"
METHODS = ("none", "DataParallelSGD", "ModelAveragingSGD", "BlockMomentumSGD", ASYNCHRONOUS)


class DataParallelParameters(Declared):
    """`DataParallelSGD`: synchronous SGD; gradients are summed over the workers in every minibatch."""

    bits = Parameter(
        "gradientBits",
        per_epoch(INTEGER),
        default=None,
        help="From 1 to the bits of the element type; gradients are always exchanged in full.",
    )
    zero_threshold = Parameter(
        "useZeroThresholdFor1BitQuantization", BOOLEAN, default="true", ignored="gradients are not quantised."
    )
    buffered = Parameter(
        "useBufferedAsyncGradientAggregation",
        BOOLEAN,
        default="false",
        ignored="every update uses the gradients of its own minibatch.",
    )


class _BlockParameters(Declared):
    """Return the samples between two synchronisations."""

    block_per_worker = Parameter(
        "blockSizePerWorker",
        SIZE,
        default=None,
        aliases=("syncFrequencyInFrames", "syncPeriod"),
        help="Samples per worker between two synchronisations.",
    )
    block = Parameter("blockSize", COUNT, default=None, help="The same for all workers together.")

    def block_size(self, workers: int, default: int) -> int:
        """Samples of all workers between two synchronisations; `default` is per worker.

        Raises:
            ConfigError: if more than one name of it is given, or the size is 0.
        """
        chosen = [
            name
            for parameter in (type(self).block, type(self).block_per_worker)
            for name in (parameter.name, *parameter.aliases)
            if self.config.exists(name)
        ]
        if len(chosen) > 1:
            raise self.error(chosen[0], f"give either {chosen[0]} or {chosen[1]}, not both")
        if 0 in (self.block, self.block_per_worker):
            raise self.error(chosen[0], "a block needs at least one sample")
        per_worker = default if self.block_per_worker is None else self.block_per_worker
        return workers * per_worker if self.block is None else self.block


class ModelAveragingParameters(_BlockParameters):
    """`ModelAveragingSGD`: workers train by themselves, and their models are averaged now and then."""


class BlockMomentumParameters(_BlockParameters):
    """`BlockMomentumSGD`: like model averaging, with a momentum over the changes of whole blocks."""

    reset = Parameter(
        "resetSGDMomentum", BOOLEAN, default="true", help="The update rule starts afresh after every block."
    )
    nesterov = Parameter("useNesterovMomentum", BOOLEAN, default="true", help="Nesterov's form of the block momentum.")
    rate = Parameter("blockLearningRate", REAL, default="1.0", help="Share of a block's change that is taken.")
    per_sync = Parameter(
        "blockMomentumPerSync", REAL, default=None, help="Momentum per block; 1 - 1/K for K workers if not given."
    )
    time_constant = Parameter(
        "blockMomentumAsTimeConstant", REAL, default=None, help="The same as a time constant in samples."
    )


class AsynchronousParameters(Declared):
    """`DataParallelASGD`: plain SGD, with one worker only. Its settings are for a parameter server."""

    period = Parameter("syncPeriod", per_epoch(INTEGER), default="256", help="No effect with one worker.")
    pipeline = Parameter("UsePipeline", BOOLEAN, default="false", help="No effect with one worker.")
    averages = Parameter("SimModelAverage", BOOLEAN, default="false", help="No effect with one worker.")
    adjust = Parameter(
        "AdjustLearningRateAtBeginning",
        TEXT,
        default=None,
        help="No effect: the rates of the first epochs can be listed.",
    )


class ParallelParameters(Declared):
    """`ParallelTrain`: training by several workers."""

    method = Parameter(
        "parallelizationMethod",
        choice(*METHODS, ignore_case=True),
        default="none",
        help="How the workers train together; none: each does the same.",
    )
    start_epoch = Parameter(
        "parallelizationStartEpoch", INTEGER, default="1", help="Earlier epochs are trained by every worker alike."
    )
    distributed_reading = Parameter(
        "distributedMBReading",
        BOOLEAN,
        default=None,
        help="Whether each worker reads its share only (true), or everything and takes its part; by default true "
        "where the minibatches stay those of one process.",
    )
    sync_statistics = Parameter(
        "syncPerfStats",
        INTEGER,
        default="0",
        help="Synchronisations (minibatches, or blocks) between log lines about the worker's share and speed; "
        "0 is never.",
    )
    data_parallel = Parameter(
        "DataParallelSGD",
        section_of("cntkpy.trainers.parameters.parallel:DataParallelParameters"),
        default="()",
        help="Settings of that method.",
    )
    averaging = Parameter(
        "ModelAveragingSGD",
        section_of("cntkpy.trainers.parameters.parallel:ModelAveragingParameters"),
        default="()",
        help="Settings of that method.",
    )
    block_momentum = Parameter(
        "BlockMomentumSGD",
        section_of("cntkpy.trainers.parameters.parallel:BlockMomentumParameters"),
        default="()",
        help="Settings of that method.",
    )
    asynchronous = Parameter(
        "DataParallelASGD",
        section_of("cntkpy.trainers.parameters.parallel:AsynchronousParameters"),
        default="()",
        help="Settings of that method, which is plain SGD with one worker, and not supported with several.",
    )

    def check_workers(self, workers: int) -> None:
        """Check whether the method works with a number of workers.

        Raises:
            ConfigError: DataParallelASGD with several workers.
        """
        if self.method == ASYNCHRONOUS and workers > 1:
            raise self.error(
                "parallelizationMethod",
                f"DataParallelASGD is not supported with {workers} workers: there is no parameter server",
                "use DataParallelSGD, or BlockMomentumSGD for slow networks; with one worker it is plain SGD",
                kind="NotSupported",
            )

    def check(self, precision: str) -> None:
        """Check the section.

        Raises:
            ConfigError: for values that make no sense.
        """
        _ = self.method  # raises its error
        if self.start_epoch < 1:
            raise self.error("parallelizationStartEpoch", "epochs are counted from 1")
        if self.sync_statistics < 0:
            raise self.error("syncPerfStats", "syncPerfStats is at least 0")
        width = 64 if precision == "double" else 32
        if any(not 1 <= bits <= width for bits in self.data_parallel.bits or ()):
            message = f"gradientBits lies between 1 and {width} in {precision} precision"
            raise self.data_parallel.error("gradientBits", message)
        b = self.block_momentum
        if b.per_sync is not None and b.time_constant is not None:
            message = "give blockMomentumPerSync or blockMomentumAsTimeConstant, not both"
            raise b.error("blockMomentumPerSync", message)
        if b.per_sync is not None and not 0 <= b.per_sync < 1:
            raise b.error("blockMomentumPerSync", "blockMomentumPerSync is at least 0 and below 1")
        if b.time_constant is not None and not 0 <= b.time_constant < math.inf:
            message = "blockMomentumAsTimeConstant is a finite number of samples, at least 0"
            raise b.error("blockMomentumAsTimeConstant", message)
        if not 0 < b.rate < math.inf:
            raise b.error("blockLearningRate", "blockLearningRate is above 0")
        for section in (self.averaging, b):
            section.block_size(workers=1, default=1)
