"""The text of a configuration that trains on a table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import ceil
from pathlib import PurePosixPath

from cntkpy.cntk_config.base.diagnostics import shorten
from cntkpy.readers.formats.tables.csv.table import CsvTable
from cntkpy.readers.formats.tables.files import ArrowTable, ParquetTable, TableFile

from .columns import TRAINING, VALIDATION
from .plan import CLASSIFICATION, MISSING_CLASS, OTHER_CLASS, Category, Plan

HIDDEN, MINIBATCH, UPDATES, MOST_EPOCHS = 64, 32, 4000, 150
"""Hidden elements, rows of a minibatch, updates of the parameters at most but for one epoch, epochs at most."""
_DESERIALIZERS: dict[type[TableFile], str] = {
    CsvTable: "CsvDeserializer",
    ParquetTable: "ParquetDeserializer",
    ArrowTable: "ArrowDeserializer",
}


def stream_names(plan: Plan) -> dict[str, Category]:
    """Return the streams of the columns of categories, by name."""
    result: dict[str, Category] = {}
    for category in plan.categories:
        stem = re.sub(r"\W+", "_", category.column.name.lower(), flags=re.ASCII).strip("_") or "column"
        name, number = f"category_{stem}", 2
        while name in result:
            name, number = f"category_{stem}{number}", number + 1
        result[name] = category
    return result


def number(value: float) -> str:
    """Return a number of seven digits."""
    return f"{value:.7g}"


def text_of(plan: Plan, name: str, classes: str) -> str:
    """Return the configuration.

    Args:
        plan: what it is to say.
        name: its file name without the ending, for the files that it writes.
        classes: the folder with the lists of categories.
    """
    streams = stream_names(plan)
    declared = [*_numbers(plan), *_categories(streams, classes)]
    target = _target(plan, classes)
    features = [stream for stream, _ in declared]
    epochs = min(MOST_EPOCHS, max(1, ceil(UPDATES * MINIBATCH / max(1, plan.rows.training))))
    filter_of = [
        f"random({plan.seed}) < {TRAINING}",
        f"random({plan.seed}) >= {TRAINING} and random({plan.seed}) < {VALIDATION}",
    ]
    train, validation, test = (
        _reader(plan, [*features, "target"], "$rows$", condition)
        for condition in (*filter_of, f"random({plan.seed}) >= {VALIDATION}")
    )
    lines = [
        *_head(plan, name),
        "command = train:test",
        f'modelPath = "models/{name}.model"',
        f'rows = "{plan.path}"',
        f'newRows = "{plan.path}"  # what `command=predict` reads; it needs no target',
        "",
        "# The columns that are read, and what stands for missing values.",
        *(f"{stream}Column = {section}" for stream, section in [*declared, ("target", target)]),
        "",
        "train = [",
        "    action = train",
        *_network(plan, declared, streams),
        "    SGD = [",
        f"        maxEpochs = {epochs}",
        f"        minibatchSize = {MINIBATCH}",
        "        gradUpdateType = fsAdaGrad",
        "        learningRatesPerMB = 0.01",
        "        momentumPerMB = 0.9",
        "        L2RegWeight = 0.0003",
        "        AutoAdjust = [  # halves the rate where the validation gets worse, and goes on from the best model",
        "            autoAdjustLR = adjustAfterEpoch",
        "            reduceLearnRateIfImproveLessThan = 0",
        "            learnRateDecreaseFactor = 0.5",
        "            increaseLearnRateIfImproveMoreThan = infinity",
        "            loadBestModel = true",
        "        ]",
        "    ]",
        f"    reader = {train}",
        f"    cvReader = {validation}",
        "]",
        "",
        "test = [",
        "    action = test",
        f"    reader = {test}",
        "]",
        "",
        "predict = [",
        "    action = write",
        f"    outputNodeNames = {'posterior' if plan.task == CLASSIFICATION else 'prediction'}",
        f'    outputPath = "{name}.predictions"',
        *([f'    format = [ type = category ; labelMappingFile = "{classes}/target.txt" ]'] * bool(plan.classes)),
        f"    reader = {_reader(plan, features, '$newRows$', '')}",
        "]",
        "",
    ]
    return "\n".join(lines)


def _head(plan: Plan, name: str) -> list[str]:
    rows = plan.rows
    filled = [column.name for column in plan.numbers if column.missing]
    lines = [
        f"Predicts '{plan.target.name}' of {PurePosixPath(plan.table.path).name}: {plan.task}.",
        f"    cntkpy check --data {name}.cntk",
        f"    cntkpy run {name}.cntk                                     (trains, then tests)",
        f"    cntkpy run {name}.cntk command=predict newRows=NEW.csv     (writes {name}.predictions)",
        "",
        f"{rows.all:,} rows: {rows.training:,} for training, {rows.validation:,} validation, {rows.test:,} test, by a",
        f"random number of each row; another number in random({plan.seed}) splits anew. Means, lists of categories",
        "and the normalisation are those of the training part.",
    ]
    if filled:
        lines += [f"Missing numbers ({shorten(', '.join(filled), 80)}): the mean, and an indicator, which is 1 there."]
    if plan.categories:
        lines += [f"Missing categories are {MISSING_CLASS}, those that the training part lacks {OTHER_CLASS}."]
    if rows.without_target:
        lines += [f"{rows.without_target:,} rows without a target are left out."]
    for column, reason in plan.left_out.items():
        lines += [f"Left out: {shorten(column, 60)} ({reason})."]
    return [*(f"# {line}".rstrip() for line in lines), ""]


def _numbers(plan: Plan) -> list[tuple[str, str]]:
    """Return the streams of numbers and of indicators, and their sections."""
    result: list[tuple[str, str]] = []
    for stream, columns, ending in (
        ("numbers", plan.numbers, f"missing = ({':'.join(number(column.mean) for column in plan.numbers)})"),
        ("indicators", [column for column in plan.numbers if column.missing], "indicators = true"),
    ):
        if columns:
            names = ":".join(f'"{column.name}"' for column in columns)
            result.append((stream, f"[ dim = {len(columns)} ; columns = ({names}) ; {ending} ]"))
    return result


def _categories(streams: dict[str, Category], classes: str) -> list[tuple[str, str]]:
    return [
        (
            stream,
            f'[ dim = {len(category.names) + 2} ; format = sparse ; alias = "{category.column.name}" ; '
            f'labelMappingFile = "{classes}/{stream}.txt" ; missing = "{MISSING_CLASS}" ; other = "{OTHER_CLASS}" ]',
        )
        for stream, category in streams.items()
    ]


def _target(plan: Plan, classes: str) -> str:
    alias = f'alias = "{plan.target.name}"'
    if plan.task != CLASSIFICATION:
        return f"[ dim = 1 ; {alias} ]"
    listed = "" if plan.numbered else f' ; labelMappingFile = "{classes}/target.txt"'
    return f"[ dim = {len(plan.classes)} ; format = sparse ; {alias}{listed} ]"


def _reader(plan: Plan, streams: Sequence[str], file: str, part: str) -> str:
    target = f"`{plan.target.name}`"
    conditions = [part, f"{target} is not null"]
    if plan.no_targets:
        conditions.append(f"{target} not in ({', '.join(repr(text) for text in plan.no_targets)})")
    condition = f'filter = "{" and ".join(conditions)}"' if part else ""
    inner = " ; ".join(f"{stream} = ${stream}Column$" for stream in streams)
    lines = [
        "[",
        *([] if part else ["        randomize = none"]),
        "        deserializers = ([",
        f"            type = {_DESERIALIZERS[type(plan.table)]}",
        f'            file = "{file}"',
        *([f"            {condition}"] * bool(condition)),
        f"            input = [ {inner} ]",
        "        ])",
        "    ]",
    ]
    return "\n".join(lines)


def _network(plan: Plan, declared: Sequence[tuple[str, str]], streams: dict[str, Category]) -> list[str]:
    """Return the network: a layer of rectified elements beside a linear one, of all columns."""
    sizes = {
        stream: len(streams[stream].names) + 2
        if stream in streams
        else len(plan.numbers if stream == "numbers" else [column for column in plan.numbers if column.missing])
        for stream, _ in declared
    }
    inputs = [
        f"{stream} = {'SparseInput' if stream in streams else 'Input'} {{{size}}}" for stream, size in sizes.items()
    ]
    normal = ["scaled = PerDimMeanVarNormalization (numbers, Mean (numbers), InvStdDev (numbers))"] * (
        "numbers" in sizes
    )
    terms = " + ".join(
        f"ParameterTensor {{(n:{size})}} * {'scaled' if stream == 'numbers' else stream}"
        for stream, size in sizes.items()
    )
    classes = len(plan.classes)
    lines = [
        *inputs,
        f"target = Input {{{classes or 1}}}",
        "",
        *normal,
        f"weighted (n) = {terms} + ParameterTensor {{n, init = 'fixedValue', value = 0}}",
        f"hidden = ReLU (weighted ({HIDDEN}))",
        f"z = weighted ({classes or 1}) + ParameterTensor {{({classes or 1}:{HIDDEN})}} * hidden",
        "",
    ]
    if plan.task == CLASSIFICATION:
        lines += [
            "posterior = Softmax (z)",
            "criterion = CrossEntropyWithSoftmax (target, z)",
            "errors = ClassificationError (target, z)",
        ]
        evaluated, output = "errors", "posterior"
    else:
        mean, deviation = number(plan.target.mean), number(plan.target.deviation)
        lines += [
            "# The target is trained in standard deviations from its mean: 1 is the error of predicting the mean.",
            f"prediction = z * Constant ({deviation}) + Constant ({mean})",
            f"scaledTarget = (target - Constant ({mean})) .* Constant ({number(1 / (plan.target.deviation or 1))})",
            "criterion = SquareError (scaledTarget, z)",
            f"absoluteError = ReduceSum (Abs (target - prediction))  # in units of '{plan.target.name}'",
        ]
        evaluated, output = "absoluteError", "prediction"
    lines += [
        "",
        f"featureNodes = ({':'.join(sizes)})",
        "labelNodes = (target)",
        "criterionNodes = (criterion)",
        f"evaluationNodes = ({evaluated})",
        f"outputNodes = ({output})",
    ]
    return ["    BrainScriptNetworkBuilder = {", *(f"        {line}".rstrip() for line in lines), "    }"]
