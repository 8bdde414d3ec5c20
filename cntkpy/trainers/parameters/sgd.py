"""The parameters of the `SGD` section and of its sub-sections, declared once: to read, check and document them."""

import re
from collections.abc import Iterator

from cntkpy.cntk_config.declare import (
    BOOLEAN,
    COUNT,
    FLOAT32,
    INTEGER,
    PATH,
    REAL,
    SAMPLES,
    SIZE,
    TEXT,
    Declared,
    Parameter,
    Type,
    array,
    choice,
    per_epoch,
    section_of,
)
from cntkpy.cntk_config.parameters import ConfigValue
from cntkpy.trainers.checkpoints.keeping import KEEP
from cntkpy.trainers.parameters.parallel import ParallelParameters

UNLIMITED = 2**64 - 1
"""The default of maxSamplesInRAM."""


def _parallel(value: ConfigValue) -> ParallelParameters | None:
    """Return the section; `parallelTrain = true` of the top level, which has the same name, is none."""
    return ParallelParameters(value.as_section()) if value.lstrip().startswith(("[", "(", "{")) else None


PARALLEL: Type[ParallelParameters | None] = Type(
    "section", _parallel, is_section=True, declared=lambda: ParallelParameters
)


class AutoAdjustParameters(Declared):
    """`AutoAdjust`: control of the learning rate and of the minibatch size by the trainer."""

    auto_adjust_lr = Parameter(
        "autoAdjustLR",
        choice(
            "none",
            "false",
            "searchBeforeEpoch",
            "beforeEpoch",
            "before",
            "adjustAfterEpoch",
            "afterEpoch",
            "after",
            ignore_case=True,
        ),
        default="none",
        help="Whether rates beyond the listed ones are searched before or adjusted after each epoch.",
    )
    reduce_if_less = Parameter(
        "reduceLearnRateIfImproveLessThan",
        REAL,
        default="0",
        help="Relative improvement below which the rate is reduced.",
    )
    decrease_factor = Parameter(
        "learnRateDecreaseFactor", REAL, default="0.618", help="Factor of a reduction, at most 1."
    )
    increase_if_more = Parameter(
        "increaseLearnRateIfImproveMoreThan",
        REAL,
        default="1#INF",
        help="Relative improvement above which the rate is increased.",
    )
    increase_factor = Parameter(
        "learnRateIncreaseFactor", REAL, default="1.382", help="Factor of an increase, at least 1."
    )
    continue_reduce = Parameter(
        "continueReduce",
        BOOLEAN,
        default="false",
        help="Once reduced, reduce after every epoch; stop at the second miss.",
    )
    interval = Parameter("learnRateAdjustInterval", COUNT, default="1", help="Epochs between decisions.")
    load_best = Parameter(
        "loadBestModel", BOOLEAN, default="true", help="Roll back to the better model on a degradation."
    )
    use_validation = Parameter(
        "UseCVSetControlLRIfCVExists", BOOLEAN, default="true", help="Decide on the validation data if there are any."
    )
    use_evaluation = Parameter(
        "UseEvalCriterionControlLR",
        BOOLEAN,
        default="false",
        help="Decide on the first evaluation node instead of the training criterion.",
    )
    previous_rates = Parameter(
        "numPrevLearnRates", SIZE, default="5", help="How many earlier rates give the start of a search."
    )
    best_search_epochs = Parameter(
        "numBestSearchEpoch", SIZE, default="1", help="Number of epochs that get the fine search."
    )
    search_samples = Parameter(
        "numSamples4Search", per_epoch(SIZE), default=None, help="Samples per trial; 500 minibatches if not given."
    )
    search_minibatches = Parameter(
        "numMiniBatch4LRSearch", per_epoch(COUNT), default=None, help="Minibatches per trial (old form)."
    )
    adjust_minibatch = Parameter(
        "autoAdjustMinibatch", BOOLEAN, default="false", help="Search the minibatch size before an epoch."
    )
    tuning_frequency = Parameter(
        "minibatchSizeTuningFrequency", SIZE, default="1", help="Epochs between searches of the minibatch size."
    )
    tuning_max = Parameter("minibatchSizeTuningMax", COUNT, default="1048576", help="Largest minibatch size tried.")
    error_margin = Parameter(
        "minibatchSearchCriterionErrorMargin", SIZE, default="1", help="Accepted loss of a larger size, in percent."
    )


class TraceParameters(Declared):
    """The nodes whose values are printed while a network is computed; shared by all sections that compute one."""

    trace_real = Parameter("traceNodeNamesReal", array(TEXT), default="()", help="Nodes whose values are printed.")
    trace_category = Parameter(
        "traceNodeNamesCategory", array(TEXT), default="()", help="Nodes whose largest elements are printed."
    )
    trace_sparse = Parameter("traceNodeNamesSparse", array(TEXT), default="()", help="Nodes printed in sparse form.")


class IgnoredParameters(Declared):
    """Parameters of `SGD` that CNTK has and that change nothing here."""

    _PLANNED = "XLA plans the workspace of convolutions itself."
    _LATTICES = "sequence training with lattices is not supported."
    _DISTANCE = "event files have a value for every progress line, see numMBsToShowResult."

    workspace = Parameter("maxTempMemSizeInSamplesForCNN", TEXT, default="", ignored=_PLANNED)
    profile = Parameter("numMBsToCUDAProfile", TEXT, default="", ignored="use JAX's profiler.")
    event_distance = Parameter("tensorBoardNumMBsToLogResult", TEXT, default="", ignored=_DISTANCE)
    unit_test = Parameter("unitTest", TEXT, default="", ignored="CNTK reads it and does nothing with it.")
    engine = Parameter("executionEngine", TEXT, default="", ignored="there is one engine.")
    smoothing = Parameter("hSmoothingWeight", TEXT, default="", ignored=_LATTICES)
    frame_drop = Parameter("frameDropThresh", TEXT, default="", ignored=_LATTICES)
    reference_align = Parameter("doReferenceAlign", TEXT, default="", ignored=_LATTICES)
    uses_mbr = Parameter("seqGammarUsesMBR", TEXT, default="", ignored=_LATTICES)
    acoustic_factor = Parameter("seqGammarAMF", TEXT, default="", ignored=_LATTICES)
    language_factor = Parameter("seqGammarLMF", TEXT, default="", ignored=_LATTICES)
    bmmi_factor = Parameter("seqGammarBMMIFactor", TEXT, default="", ignored=_LATTICES)
    word_penalty = Parameter("seqGammarWordPen", TEXT, default="", ignored=_LATTICES)


class EvaluationParameters(TraceParameters):
    """Common parameters of sections that evaluate a network."""

    _READING = "how workers share the data is not chosen here."
    _PIECES = "an evaluation keeps nothing for gradients; lower minibatchSize to save memory."

    max_samples_in_ram = Parameter("maxSamplesInRAM", TEXT, default="", ignored=_PIECES)
    subminibatches = Parameter("numSubminibatches", TEXT, default="", ignored=_PIECES)
    distributed = Parameter(
        "distributedMBReading", TEXT, default="", aliases=("enableDistributedMBReading",), ignored=_READING
    )


def ignored(p: Declared) -> list[tuple[str, str]]:
    """Name and reason of the parameters that a section gives, but that change nothing."""
    return [
        (parameter.name, parameter.help)
        for parameter in p.parameters()
        if parameter.ignored and p.given(parameter.name)
    ]


class SGDParameters(TraceParameters, IgnoredParameters):
    """`SGD`: how a network is trained."""

    model_path = Parameter("modelPath", PATH, help="The final model; files of single epochs add `.0`, `.1`, ...")
    max_epochs = Parameter("maxEpochs", COUNT, help="Number of epochs, those of an interrupted run included.")
    epoch_size = Parameter("epochSize", SAMPLES, default="0", help="Samples per epoch; 0 is one pass over the data.")
    minibatch_size = Parameter("minibatchSize", per_epoch(COUNT), default="256", help="Samples per minibatch.")
    rates_per_mb = Parameter(
        "learningRatesPerMB", per_epoch(FLOAT32), default=None, help="Learning rates per minibatch of the nominal size."
    )
    rates_per_sample = Parameter(
        "learningRatesPerSample", per_epoch(FLOAT32), default=None, help="Learning rates per sample."
    )
    min_rate = Parameter(
        "minLearningRatePerSample",
        REAL,
        default="9.999999717180685e-10",
        help="Training ends when the rate per sample falls below this.",
    )
    momentum_per_mb = Parameter(
        "momentumPerMB",
        per_epoch(FLOAT32),
        default=None,
        help="Momentum per minibatch of the nominal size; 0.9 if no momentum is given in any form.",
    )
    momentum_per_sample = Parameter("momentumPerSample", per_epoch(FLOAT32), default=None, help="Momentum per sample.")
    momentum_time_constant = Parameter(
        "momentumAsTimeConstant",
        per_epoch(FLOAT32),
        default=None,
        help="Momentum as a time constant in samples; 0 is no momentum.",
    )
    nesterov = Parameter("useNAG", BOOLEAN, default="false", help="Nesterov's form of momentum.")
    update_type = Parameter(
        "gradUpdateType",
        choice("none", "", "normal", "simple", "adagrad", "rmsProp", "fsAdagrad", ignore_case=True),
        default="none",
        help="The update rule.",
    )
    use_adagrad = Parameter(
        "useAdagrad", BOOLEAN, default="false", help="Old form of `gradUpdateType=adagrad`; it wins."
    )
    normalise = Parameter(
        "normWithAveMultiplier", BOOLEAN, default="true", help="AdaGrad and RMSProp: divide by the mean step factor."
    )
    rms_gamma = Parameter("rms_gamma", REAL, default="0.99", help="RMSProp: how much of the mean square is kept.")
    rms_inc = Parameter("rms_wgt_inc", REAL, default="1.2", help="RMSProp: growth of a step factor.")
    rms_dec = Parameter("rms_wgt_dec", REAL, default="0.75", help="RMSProp: decline of a step factor.")
    rms_max = Parameter("rms_wgt_max", REAL, default="10.0", help="RMSProp: largest step factor.")
    rms_min = Parameter("rms_wgt_min", REAL, default="0.1", help="RMSProp: smallest step factor.")
    variance_time_constant = Parameter(
        "varianceTimeConstant", SIZE, default="720000", help="FSAdaGrad: memory of the mean square, in samples."
    )
    target_denominator = Parameter(
        "fsAdagradTargetAvDenom", REAL, default="1.0", help="FSAdaGrad: scale of the normalised gradient."
    )
    noise = Parameter(
        "gaussianNoiseInjectStd",
        REAL,
        default="0",
        help="Standard deviation of noise added to the weights at each update.",
    )
    l2 = Parameter("L2RegWeight", REAL, default="0", help="L2 regularisation per sample.")
    l1 = Parameter("L1RegWeight", REAL, default="0", help="L1 regularisation per sample.")
    clipping = Parameter(
        "clippingThresholdPerSample", REAL, default="1#INF", help="Bound of the gradient, per sample of the minibatch."
    )
    clip_elements = Parameter(
        "gradientClippingWithTruncation",
        BOOLEAN,
        default="true",
        help="Clip element by element (true) or scale by the norm (false).",
    )
    dropout_rate = Parameter("dropoutRate", per_epoch(REAL), default="0", help="Rate of all Dropout nodes.")
    bn_time_constant = Parameter(
        "batchNormalizationTimeConstant",
        per_epoch(REAL),
        default="0",
        help="Memory of the running statistics of BatchNormalization nodes, in samples.",
    )
    bn_blend_time_constant = Parameter(
        "batchNormalizationBlendTimeConstant",
        per_epoch(REAL),
        default="0",
        help="How much of the running statistics enters the normalisation.",
    )
    no_bn_regularisation = Parameter(
        "disableRegInBatchNormalization",
        BOOLEAN,
        default="false",
        aliases=("disableWkInBatchNormal",),
        help="No L1/L2 on BatchNormalization parameters.",
    )
    truncated = Parameter("truncated", BOOLEAN, default="false", help="Truncated back-propagation through time.")
    max_samples_in_ram = Parameter(
        "maxSamplesInRAM", SIZE, default=str(UNLIMITED), help="Split a minibatch so that no piece has more samples."
    )
    subminibatches = Parameter(
        "numSubminibatches", SIZE, default="1", help="Split every minibatch into that many pieces."
    )
    trace_level = Parameter(
        "traceLevel",
        INTEGER,
        default="0",
        help="0: results only; 1: progress; 2: also times, memory, gradients; 3: also shapes.",
    )
    show_every = Parameter(
        "numMBsToShowResult", COUNT, default="10", help="Minibatches between progress lines; 0 is never."
    )
    show_first = Parameter(
        "firstMBsToShowResult", COUNT, default="0", help="Also a line for each of the first minibatches."
    )
    perf_trace_level = Parameter("perfTraceLevel", INTEGER, default="0", help="1: times of every minibatch.")
    event_folder = Parameter("tensorBoardLogDir", PATH, default=None, help="Folder of event files for TensorBoard.")
    keep_checkpoints = Parameter(
        "keepCheckPointFiles", BOOLEAN, default="false", help="Keep the checkpoints of all epochs."
    )
    keep_models = Parameter(
        "keepModels",
        KEEP,
        default="all",
        help="Models of single epochs that stay: all; last; best: also the best; or the number of newest ones.",
    )
    save_best = Parameter(
        "saveBestModelPerCriterion",
        BOOLEAN,
        default="false",
        help="Keep, beside the others, the best model by each criterion on the data of cvReader, as MODEL_CRITERION.",
    )
    checkpoint_minutes = Parameter(
        "checkpointEveryMinutes", REAL, default="0", help="Save the state inside an epoch that often; 0 is never."
    )
    train_criterion = Parameter(
        "trainCriterionNodeName", TEXT, default="", help="The node to train; the first criterion."
    )
    eval_criterion = Parameter(
        "evalCriterionNodeName", TEXT, default="", help="The node to report; all evaluation nodes."
    )
    precompute_on_all_data = Parameter(
        "UseAllDataForPreComputedNode",
        BOOLEAN,
        default="true",
        help="Means and deviations over the whole data (true) or over one epoch.",
    )
    gradient_check = Parameter(
        "gradientcheck", BOOLEAN, default="false", help="Compare gradients with finite differences (double precision)."
    )
    significant_figures = Parameter("sigFigs", REAL, default="6", help="Digits of the gradient check.")
    adaptation_type = Parameter(
        "adaptationRegType", choice("none", "kl", "klReg", ignore_case=True), default="none", help="action=adapt only."
    )
    adaptation_weight = Parameter("adaptationRegWeight", REAL, default="0", help="action=adapt only: 0 to 1.")
    auto_adjust = Parameter(
        "AutoAdjust",
        section_of("cntkpy.trainers.parameters.sgd:AutoAdjustParameters"),
        default="()",
        help="Automatic rates.",
    )
    parallel_train = Parameter(
        "ParallelTrain", PARALLEL, default=None, help="Training by several workers: processes, devices."
    )

    def idle(self) -> Iterator[tuple[str, str, str]]:
        """Return weights below 0, which count as 0, as in CNTK."""
        for name, weight in (
            ("L1RegWeight", self.l1),
            ("L2RegWeight", self.l2),
            ("gaussianNoiseInjectStd", self.noise),
        ):
            if weight < 0:
                yield name, f"{weight:g} has no effect: it is negative", "write a number above 0, or leave it out"


def _width(value: ConfigValue) -> ConfigValue:
    """Check the text between `%` and `f`: flags, width and precision (four digits at most), C's size of a number."""
    if not re.fullmatch(r"[-+ #0]*[0-9]{0,4}(\.[0-9]{0,4})?[hlL]?", value):
        message = f"'{value}' is no width and precision of printf"
        raise value.error("BadValue", message, "write for instance .4 (four decimals) or 12.6 (and twelve columns)")
    return value


class FormatParameters(Declared):
    """`format`: how `write` turns values into text."""

    kind = Parameter(
        "type",
        choice("real", "category", "sparse"),
        default="real",
        own=True,
        help="Numbers, the index of the largest element, or only the elements that are not zero.",
    )
    label_file = Parameter(
        "labelMappingFile", PATH, default=None, help="One label a line: written instead of (or beside) an index."
    )
    transpose = Parameter(
        "transpose", BOOLEAN, default="true", help="One line per sample (true) or per element (false)."
    )
    prologue = Parameter("prologue", TEXT, default="", help="Text at the start of a file.")
    epilogue = Parameter("epilogue", TEXT, default="", help="Text at the end of a file.")
    sequence_prologue = Parameter("sequencePrologue", TEXT, default="", help="Text before each sequence.")
    sequence_epilogue = Parameter("sequenceEpilogue", TEXT, default="\\n", help="Text after each sequence.")
    sequence_separator = Parameter(
        "sequenceSeparator", TEXT, default="", help="Text between the sequences of a minibatch."
    )
    element_separator = Parameter("elementSeparator", TEXT, default="\\s", help="Text between the numbers of a line.")
    sample_separator = Parameter("sampleSeparator", TEXT, default="\\n", help="Text between the lines of a sequence.")
    precision = Parameter(
        "precisionFormat",
        Type("text", _width),
        default="",
        help="Width and precision of a number, as in printf: `.4`, `12.6`.",
    )
