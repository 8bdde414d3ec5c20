"""The top level of a configuration: the parameters of the run itself, and the commands to run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cntkpy.cntk_config import ConfigError, ConfigValue
from cntkpy.cntk_config.base.diagnostics import suggestion
from cntkpy.cntk_config.declare import (
    BOOLEAN,
    INTEGER,
    PATH,
    TEXT,
    Declared,
    Parameter,
    Type,
    among,
    array,
    choice,
    section_of,
)
from cntkpy.cntk_config.entry import Entry
from cntkpy.commands.context.device import DEVICE

if TYPE_CHECKING:
    from cntkpy.commands.context.run_context import Precision


def _joins(value: ConfigValue) -> bool | None:
    """Return the value of `parallelTrain`; None if it is a section for the trainer."""
    return None if value.lstrip().startswith(("[", "(", "{")) else value.as_bool()


JOINS: Type[bool | None] = Type("boolean", _joins)


ENTRIES = (
    Entry(
        "section",
        ("top level",),
        parameters="cntkpy.commands.context.root:RootParameters",
        example="command = train:test\ndeviceId = cpu\nstderr = log/run",
    ),
    Entry("section", ("command",), parameters="cntkpy.commands.context.root:CommandParameters", within=("top level",)),
    Entry(
        "section",
        ("tracking",),
        parameters="cntkpy.commands.tracking.parameters:TrackingParameters",
        within=("top level",),
        example="tracking = [ type = mlflow ; uri = http://localhost:5000 ; experiment = digits ]",
    ),
)


HALF = ("half", "float16", "fp16")
"""Names of the type of 16 bits that no run computes in."""

PRECISIONS: tuple[Precision, ...] = ("float", "double", "bfloat16")
"""Allowed values of `precision`."""


class RootParameters(Declared):
    """The top level: what is run, how precisely, on which device, and where the log goes."""

    command = Parameter("command", array(TEXT), default="train", help="The sections to run, in order.")
    precision = Parameter(
        "precision",
        among(TEXT, *PRECISIONS),
        default="float",
        help="Element type of the run; bfloat16: products in 16 bits, parameters, criteria and data in float.",
    )
    device = Parameter(
        "deviceId", DEVICE, default="auto", help="Where to compute: a word, the first N GPUs, or the number of one."
    )
    stderr = Parameter("stderr", TEXT, default="", help="Log file; folders are made. `-` is standard output.")
    trace_level = Parameter(
        "traceLevel",
        INTEGER,
        default="0",
        help="0: results only; 1: progress; 2: also times, memory, gradients; 3: also shapes.",
    )
    timestamping = Parameter(
        "timestamping", BOOLEAN, default="false", help="Time stamps on log lines; the commands in the log's name."
    )
    log_format = Parameter(
        "logFormat",
        choice("text", "json"),
        default="text",
        help="json: also one JSON object per event, in the log file's name + .jsonl, or in cntkpy.jsonl.",
    )
    record = Parameter(
        "record",
        BOOLEAN,
        default="true",
        help="Record a training in a folder: configuration, events, log. The classic form needs record=true.",
    )
    run_folder = Parameter(
        "runFolder", PATH, default="", help="Folder of the records; by default `runs` next to the model."
    )
    progress_tracing = Parameter(
        "progressTracing", BOOLEAN, default="false", help="PROGRESS lines on standard output, for clusters."
    )
    done_file = Parameter("doneFile", PATH, default="", help="Written when all commands have succeeded.")
    threads = Parameter(
        "numCPUThreads", INTEGER, default="0", help="CPU threads; 0 leaves their number to the libraries."
    )
    deterministic = Parameter(
        "forceDeterministicAlgorithms", BOOLEAN, default="false", help="One CPU thread, fixed order of all sums."
    )
    constant_seed = Parameter(
        "forceConstantRandomSeed", BOOLEAN, default="false", help="Every random initialisation uses seed 1."
    )
    parallel = Parameter(
        "parallelTrain",
        JOINS,
        default=None,
        help="false: processes started by MPI run each by itself; by default they train together.",
    )
    strict = Parameter(
        "strict",
        BOOLEAN,
        default="false",
        help="What the start of a run warns about is an error: names that nothing reads.",
    )
    allow_remote = Parameter(
        "allowRemote",
        BOOLEAN,
        default="false",
        help="Configurations may be URLs; only as a word of the command line, where --allow-remote says the same.",
    )
    tracking = Parameter(
        "tracking",
        section_of("cntkpy.commands.tracking.parameters:TrackingParameters"),
        default=None,
        own=True,
        help="Where the run is tracked: TensorBoard, MLflow.",
    )
    share_memory = Parameter("shareNodeValueMatrices", BOOLEAN, default="false", ignored="XLA plans memory.")
    compress_memory = Parameter("hyperCompressMemory", BOOLEAN, default="false", ignored="XLA plans memory.")
    truncated = Parameter(
        "truncated", BOOLEAN, default=None, own=True, help="Truncated back-propagation in all trainings and readers."
    )
    old_precision = Parameter("type", TEXT, default=None, own=True, help="The old name of precision; an error.")
    trace_memory = Parameter("traceGPUMemoryAllocations", INTEGER, default="0", ignored="XLA plans memory.")
    excluded_devices = Parameter("excludedDevices", array(TEXT), default="()", ignored="deviceId says what to use.")
    lock_device = Parameter("lockGPU", BOOLEAN, default="true", ignored="GPUs are not locked.")


class CommandParameters(Declared):
    """Every command section: what is done in it."""

    device = RootParameters.device

    action = Parameter("action", array(TEXT), help="What to do: one action or several.")
    trace_level = Parameter(
        "traceLevel",
        INTEGER,
        default="0",
        help="0: results only; 1: progress; 2: also times, memory, gradients; 3: also shapes.",
    )
    make_mode = Parameter("makeMode", BOOLEAN, default="true", help="Leave finished models alone, continue others.")
    threads = Parameter("numCPUThreads", INTEGER, default="0", help="CPU threads; 0 leaves it to the libraries.")


def check_precision(parameters: RootParameters) -> Precision:
    """Return one of `PRECISIONS`; anything else is an error."""
    precision = str(parameters.precision)
    for known in PRECISIONS:
        if precision == known:
            return known
    value = parameters.given("precision")
    message = f'precision is "float", "double" or "bfloat16", not "{precision}"'
    if precision.lower() in HALF:
        hint = "for products in 16 bits write bfloat16; it has the range of float, so losses need no scaling"
    else:
        hint = suggestion(precision, PRECISIONS) or "write float (32 bits) or double (64 bits)"
    raise ConfigError("BadPrecision", message, span=value.span if value is not None else None, hint=hint)


def check_deprecated(parameters: RootParameters) -> None:
    """Refuse the old name of `precision`."""
    value = parameters.old_precision
    if value is not None:
        message = 'the parameter "type" at the top level is now called "precision"'
        hint = f"write precision = {value}"
        raise ConfigError("DeprecatedKey", message, span=value.span, hint=hint)
