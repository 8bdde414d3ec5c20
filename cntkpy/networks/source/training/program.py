"""The text of `train.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cntkpy.networks.nodes.source_support.values import number
from cntkpy.networks.source import layout
from cntkpy.networks.source.training import data, optimiser
from cntkpy.networks.source.training.data import Loading, Pictures, Reader
from cntkpy.networks.source.training.optimiser import Rule


@dataclass(frozen=True)
class Epochs:
    """Values of each epoch.

    Args:
        sizes: samples of a minibatch.
        rates: per sample.
        momenta: per sample.
        dropout: rates of dropout; none: they are those of the network.
        norm: time constants of batch normalisation, in samples; none: there is no such layer.
    """

    sizes: Sequence[int]
    rates: Sequence[float]
    momenta: Sequence[float]
    dropout: Sequence[float] = ()
    norm: Sequence[float] = ()


@dataclass(frozen=True)
class Group:
    """Parameters that are updated in another way than the rest.

    Args:
        options: of the optimiser.
        names: of the parameters.
    """

    options: Mapping[str, str]
    names: Sequence[str]


@dataclass(frozen=True)
class Training:
    """A training.

    Args:
        model: the class of the network.
        origin: the configuration.
        loading: its data.
        rule: its update rule.
        epochs: its schedules.
        inputs: expressions of the arguments of the network.
        outputs: names of what the network gives.
        criteria: the text of the function of criteria; empty: the network gives them.
        arguments: expressions of its arguments.
        results: names of the criteria, the loss first.
        frozen: names of parameters that are not trained.
        groups: parameters with options of their own.
        seen: samples that the statistics of batch normalisation are of already.
        notes: lines of the docstring.
    """

    model: str
    origin: str
    loading: Loading
    rule: Rule
    epochs: Epochs
    inputs: Sequence[str]
    outputs: Sequence[str]
    criteria: str
    arguments: Sequence[str]
    results: Sequence[str]
    frozen: Sequence[str] = ()
    groups: Sequence[Group] = ()
    seen: int = 0
    notes: Sequence[str] = field(default_factory=list[str])


def per_epoch(values: Sequence[float], digits: int = 0) -> str:
    """Return a list with a value for each epoch, without repetitions.

    Args:
        values: the values.
        digits: significant digits of each; 0: all.
    """
    runs: list[list[float]] = []
    for value in values:
        if runs and runs[-1][0] == value:
            runs[-1][1] += 1
        else:
            runs.append([value, 1])
    parts: list[str] = []
    for value, count in runs:
        text = f"{value:.{digits}g}" if digits else str(value) if isinstance(value, int) else number(value)
        if count < 3 and parts and not parts[-1].endswith(")") and parts[-1].endswith("]"):
            parts[-1] = f"{parts[-1][:-1]}, {', '.join([text] * int(count))}]"
        elif count < 3:
            parts.append(f"[{', '.join([text] * int(count))}]")
        else:
            parts.append(f"[{text}] * {int(count)}")
    return " + ".join(parts) or "[]"


def program(training: Training) -> str:
    """Return the text of `train.py`."""
    reading = data.written(training.loading)
    functions = [
        text
        for text in (
            optimiser.optimiser(training.rule),
            *reading.functions,
            training.criteria,
            _NORM if training.epochs.norm else "",
            _main(training, reading.data),
        )
        if text
    ]
    body = "\n\n\n".join(["\n".join(_constants(training, reading.constants)), *functions])
    ending = '\n\n\nif __name__ == "__main__":\n    main()\n'
    head = _docstring(training)
    imports = _imports(training, reading.imports, body)
    return layout.laid_out(f"{head}\n\n{imports}\n{body}{ending}")


def _docstring(training: Training) -> str:
    origin = training.origin.replace('"', "?").replace("\\", "?")
    notes = "".join(f"\n\n{note}" for note in training.notes)
    start = "Run it where the paths of the configuration lead; weights.safetensors has the start values."
    return f'"""Repeats the training of {origin}: python train.py\n\n{start}{notes}\n"""'


RATE_DIGITS = 7
"""Significant digits of rates, which are numbers of single precision."""

_STANDARD = ("functools", "math", "random", "zipfile", "collections", "pathlib", "typing")


def _imports(training: Training, wanted: Sequence[str], body: str) -> str:
    lines = {*wanted, "from pathlib import Path", "from safetensors.torch import load_file, save_file"}
    lines |= {"import torch", f"from model import {training.model}"}
    for name in ("math", "functools"):
        if f"{name}." in body:
            lines.add(f"import {name}")
    if "F." in body:
        lines.add("import torch.nn.functional as F")
    classes = [name for name in ("Tensor", "nn") if f"{name}." in body or f"{name}]" in body or f": {name}" in body]
    if "Tensor" not in classes and "Tensor" in body:
        classes.insert(0, "Tensor")
    if classes:
        lines.add(f"from torch import {', '.join(classes)}")
    lines.add(f"from collections.abc import {'Iterable, ' * ('Iterable' in body)}Iterator")
    standard = [line for line in lines if line.split()[1].split(".")[0] in _STANDARD]
    third_party = [line for line in lines if line not in standard]
    return "\n".join([*_sorted(standard), "", *_sorted(third_party)]) + "\n"


def _sorted(lines: Sequence[str]) -> list[str]:
    """Import lines in the order of ruff and isort: `import` before `from`, each by name."""
    return sorted(lines, key=lambda line: (line.startswith("from"), line.split()[1].lower()))


def _constants(training: Training, of_data: Sequence[str]) -> list[str]:
    epochs, loading = training.epochs, training.loading
    lines = ["HERE = Path(__file__).parent", *of_data]
    lines.append(f"SIZES = {per_epoch(epochs.sizes)}  # samples of a minibatch, of each epoch")
    if loading.epoch_size:
        lines.append(f"EPOCH_SIZE = {loading.epoch_size}  # samples")
    lines.append(f"RATES = {per_epoch(epochs.rates, RATE_DIGITS)}  # per sample")
    if training.rule.reads_momentum:
        lines.append(f"MOMENTA = {per_epoch(epochs.momenta)}  # per sample")
    if epochs.dropout:
        lines.append(f"DROPOUT = {per_epoch(epochs.dropout)}")
    if epochs.norm:
        lines.append(f"TIME_CONSTANTS = {per_epoch(epochs.norm)}  # of running statistics, in samples")
    if training.frozen:
        lines.append(f"FROZEN = {_tuple(training.frozen)}")
    return lines


def _tuple(names: Sequence[str]) -> str:
    listed = ", ".join(f'"{name}"' for name in names)
    return f"({listed},)" if len(names) == 1 else f"({listed})"


_NORM = '''\
def set_norms(model: nn.Module, constant: float, samples: int, seen: int) -> None:
    """Set the share of a minibatch in running statistics; that of the first one is 1."""
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            if not seen or not constant:
                module.momentum = 1.0
            elif constant > 0:
                module.momentum = -math.expm1(-samples / constant)
            else:
                module.momentum = samples / (samples + seen)'''


def _main(training: Training, source: str) -> str:
    rule, epochs, loading = training.rule, training.epochs, training.loading
    sequences = _has_sequences(loading)
    lines = [
        f"data = {source}",
        f"model = {training.model}()",
        'model.load_state_dict(load_file(HERE / "weights.safetensors"))',
        "model.train()",
    ]
    if training.frozen:
        lines += ["for name in FROZEN:", "    model.get_parameter(name).requires_grad_(False)"]
    lines += _optimiser(training)
    if epochs.norm:
        lines.append(f"seen = {training.seen}")
    results = len(training.results)
    rates = ["size", "rate"] + (["momentum"] if rule.reads_momentum else [])
    lists = ["SIZES", "RATES"] + (["MOMENTA"] if rule.reads_momentum else [])
    lines.append(f"for epoch, ({', '.join(rates)}) in enumerate(zip({', '.join(lists)}, strict=True)):")
    inner = ["for group in optimiser.param_groups:"]
    if rule.of_torch:
        inner.append('    group["lr"] = rate')
    elif rule.reads_momentum:
        inner.append('    group["rate"], group["momentum"] = rate, momentum')
    else:
        inner.append('    group["rate"] = rate')
    if epochs.dropout:
        inner += [
            "for module in model.modules():",
            "    if isinstance(module, nn.Dropout):",
            "        module.p = DROPOUT[epoch]",
        ]
    inner.append(f"totals, count = torch.zeros({results}), 0" if results > 1 else "total, count = 0.0, 0")
    item = (
        "sequences" if sequences and not isinstance(loading.origin, Reader) else "minibatch" if sequences else "batch"
    )
    inner.append(f"for {item} in minibatches(data, epoch, size):")
    inner += [f"    {line}" for line in _step(training, item, sequences)]
    values = "totals / count" if results > 1 else "[total / count]"
    inner.append(f'print(f"epoch {{epoch + 1}}:", *(f"{{value:.8f}}" for value in {values}))')
    lines += [f"    {line}" for line in inner]
    lines.append('save_file(model.state_dict(), HERE / "trained.safetensors")')
    body = "\n".join(f"    {line}" for line in lines)
    return f'def main() -> None:\n    """Train, and write the weights."""\n{body}'


def _has_sequences(loading: Loading) -> bool:
    return loading.sequences or isinstance(loading.origin, Reader)


def _optimiser(training: Training) -> list[str]:
    """Return the statements that make the optimiser."""
    rule = training.rule
    name = optimiser.class_of(rule)
    last = ", lr=0.0" if rule.of_torch else ""
    if not training.groups:
        trained = "model.parameters()"
        if training.frozen:
            trained = "(weight for weight in model.parameters() if weight.requires_grad)"
            if not last:
                trained = trained[1:-1]
        return [f"optimiser = {name}({trained}{last})"]
    lines: list[str] = []
    for place, group in enumerate(training.groups):
        label = "special" if len(training.groups) == 1 else f"special{place + 1}"
        lines.append(f"{label} = {_tuple(group.names)}")
    every = (
        "special" if len(training.groups) == 1 else " + ".join(f"special{n + 1}" for n in range(len(training.groups)))
    )
    condition = f"name not in {every if len(training.groups) == 1 else f'({every})'}"
    if training.frozen:
        condition += " and weight.requires_grad"
    parts = ["weight", "for name, weight in model.named_parameters()", f"if {condition}"]
    one_line = f"rest = [{' '.join(parts)}]"
    lines += [one_line] if len(one_line) <= layout.WIDTH - 4 else ["rest = [", *(f"    {part}" for part in parts), "]"]
    lines.append(f"optimiser = {name}(")
    lines.append("    [")
    lines.append('        {"params": rest},')
    for place, group in enumerate(training.groups):
        label = "special" if len(training.groups) == 1 else f"special{place + 1}"
        options = "".join(f', "{key}": {value}' for key, value in group.options.items())
        lines.append(f'        {{"params": [model.get_parameter(name) for name in {label}]{options}}},')
    lines += ["    ]", ")"]
    return lines


def _step(training: Training, item: str, sequences: bool) -> list[str]:
    """Return the statements for a minibatch."""
    rule, loading, epochs = training.rule, training.loading, training.epochs
    lines: list[str] = []
    if sequences:
        lines.append(f"batch = collate({item})")
    used = " ".join([*training.inputs, *training.arguments])
    for mask in loading.masks:
        if used.count(f'batch["{mask}"]') + (loading.counted == mask) > 0:
            lines.append(f'{mask} = batch["{mask}"]')
    renamed = {f'batch["{mask}"]': mask for mask in loading.masks}
    inputs, arguments = ([_with(renamed, text) for text in texts] for texts in (training.inputs, training.arguments))
    first = loading.streams[0].name
    counted = f"int({loading.counted}.sum())" if loading.counted else f'len(batch["{_one_each(loading) or first}"])'
    if epochs.norm:
        lines += [f"samples = {counted}", "set_norms(model, TIME_CONSTANTS[epoch], samples, seen)", "seen += samples"]
        counted = "samples"
    call = f"model({', '.join(inputs)})"
    result = ", ".join(training.results)
    if training.criteria:
        lines += [f"{', '.join(training.outputs)} = {call}", f"{result} = criteria({', '.join(arguments)})"]
    else:
        lines.append(f"{result} = {call}")
    lines += ["optimiser.zero_grad()", f"{training.results[0]}.backward()"]
    lines.append(f"optimiser.step({_cells(loading, counted) if rule.reads_samples else ''})")
    if len(training.results) > 1:
        lines.append(f"totals += torch.stack([{result}]).detach()")
    else:
        lines.append(f"total += {result}.item()")
    lines.append(f"count += {counted}")
    return lines


def _one_each(loading: Loading) -> str:
    """Return the stream whose rows are the samples of the criterion."""
    forms = (data.ONE_EACH, data.FRAMES, data.TOGETHER)
    return next((stream.name for form in forms for stream in loading.streams if stream.form == form), "")


def _with(renamed: Mapping[str, str], text: str) -> str:
    for old, new in renamed.items():
        text = text.replace(old, new)
    return text


def _cells(loading: Loading, counted: str) -> str:
    """Return the expression of the number of samples that momentum and regularisation count."""
    if isinstance(loading.origin, Reader):
        aliases = {stream.name: stream.alias for stream in loading.streams}
        layouts = [f'minibatch.layouts["{aliases[name]}"]' for name in loading.cells]
        parts = [f"{text}.T * {text}.S" for text in layouts]
        return parts[0] if len(parts) == 1 else f"max({', '.join(parts)})"
    if not loading.sequences or isinstance(loading.origin, Pictures):
        return counted
    parts = [f'cells([len(sequence["{name}"]) for sequence in sequences])' for name in loading.cells]
    return parts[0] if len(parts) == 1 else f"max({', '.join(parts)})"
