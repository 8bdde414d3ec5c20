"""The data of a training as code: files read by functions of the program, or by `cntkpy.readers`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from cntkpy.networks.nodes.source_support.values import Dims

FRAMES, STEPS, ONE_EACH, TOGETHER = "frames", "steps", "one", "together"
"""Forms of a stream in a batch: (samples, ...) of single samples; padded (batch, steps, ...); one sample for each
sequence; all samples of all sequences (samples, ...)."""


@dataclass(frozen=True)
class Stream:
    """A stream of the data, and an input of the program.

    Args:
        name: its key in a batch.
        alias: its name in the file, or of the reader's stream.
        size: elements of a sample in the file.
        dims: axes of a sample in the code.
        sparse: whether the file has pairs INDEX:VALUE.
        index: whether the code takes the number of the one of a one-hot vector.
        form: of the batch.
    """

    name: str
    alias: str
    size: int
    dims: Dims
    sparse: bool = False
    index: bool = False
    form: str = FRAMES

    @property
    def shaped(self) -> bool:
        """Return whether samples have several axes in the code."""
        return not self.index and self.dims != (self.size,)


@dataclass(frozen=True)
class Text:
    """A CNTK text file.

    Args:
        path: the file.
        by_line: whether every line is a sequence.
    """

    path: str
    by_line: bool = False


@dataclass(frozen=True)
class Columns:
    """A file with a record a line.

    Args:
        path: the file.
        features: name of the stream of features.
        first: the field of the first feature.
        size: how many there are.
        labels: name of the stream of labels; empty: there are none.
        first_label: the field of the first label.
        label_size: fields of labels, or classes.
        mapping: file with the names of classes; empty: labels are numbers.
        delimiter: a character between fields beside blanks.
        point: a character in the place of the decimal point.
    """

    path: str
    features: str
    first: int
    size: int
    labels: str = ""
    first_label: int = 0
    label_size: int = 0
    mapping: str = ""
    delimiter: str = ""
    point: str = ""


@dataclass(frozen=True)
class Pictures:
    """Pictures that a map file lists.

    Args:
        path: the map file.
        features: name of the stream of pictures.
        labels: name of the stream of classes; empty: there are none.
        classes: how many there are.
        gray: whether pictures have one channel.
        transforms: statements that change `picture`, (height, width, channels).
        mean: file with a mean picture; empty: there is none.
    """

    path: str
    features: str
    labels: str
    classes: int
    gray: bool
    transforms: tuple[str, ...]
    mean: str = ""


@dataclass(frozen=True)
class Reader:
    """A reader of cntkpy.

    Args:
        config: the configuration.
        command: the command that trains.
        precision: of the data.
    """

    config: str
    command: str
    precision: str = "float"


Origin = Text | Columns | Pictures | Reader


@dataclass(frozen=True)
class Loading:
    """Everything about the data of a training.

    Args:
        origin: where they come from.
        streams: what a batch has.
        masks: by name of a mask in a batch, the stream whose lengths it has.
        counted: name of the mask whose steps are the samples of the criterion; empty: they are the sequences.
        shuffled: whether the order is another one in each epoch.
        epoch_size: samples of an epoch; 0: one pass.
        cut: whether an epoch ends inside of a minibatch.
        sequences: whether the file has sequences of several samples.
        cells: names of the streams whose cells count in momentum and regularisation; none: nothing reads them.
        length: the stream whose samples are the length of a sequence; empty: the longest one.
    """

    origin: Origin
    streams: Sequence[Stream]
    masks: dict[str, str] = field(default_factory=dict[str, str])
    counted: str = ""
    shuffled: bool = False
    epoch_size: int = 0
    cut: bool = False
    sequences: bool = False
    cells: Sequence[str] = ()
    length: str = ""


@dataclass(frozen=True)
class Written:
    """Code that reads data.

    Args:
        imports: lines, besides that of `Iterator`.
        constants: lines.
        functions: texts.
        data: the expression that reads what `minibatches` takes.
    """

    imports: Sequence[str]
    constants: Sequence[str]
    functions: Sequence[str]
    data: str


def text(value: str) -> str:
    """Return a text as Python writes it, in double quotes."""
    return json.dumps(value)


def written(loading: Loading) -> Written:
    """Return the code that reads the data of a training; `minibatches` yields batches and how many cells they have."""
    if isinstance(loading.origin, Reader):
        return _of_reader(loading, loading.origin)
    if isinstance(loading.origin, Columns):
        return _of_columns(loading, loading.origin)
    if isinstance(loading.origin, Pictures):
        return _of_pictures(loading, loading.origin)
    return _of_text(loading, loading.origin)


def _function(head: str, doc: str, *body: str) -> str:
    """Return the text of a function; statements in it are indented by four blanks."""
    return "\n".join([f"def {head}:", f'    """{doc}"""', *(f"    {line}" for line in body)])


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _order(loading: Loading, source: str = "file") -> str:
    return "in an order of its own" if loading.shuffled else f"in the order of the {source}"


def _reshape(stream: Stream) -> str:
    """Return the method call that gives the samples of a stream their axes; empty if they have one."""
    return f".reshape(-1, {', '.join(map(str, stream.dims)) or '1'})" if stream.shaped else ""


# ---- minibatches of frames


def _places(loading: Loading, ending: str = "") -> list[str]:
    """Statements that loop over the places of minibatches; `rows` is the index of their samples.

    Args:
        loading: the data.
        ending: of the expression of an index in a shuffled order.
    """
    lines: list[str] = []
    size = "taken" if loading.epoch_size and loading.cut else "size"
    chosen = f"slice(first, first + {size})"
    if loading.shuffled:
        lines.append("order = torch.randperm(count, generator=torch.Generator().manual_seed(epoch))")
        chosen = f"order[first : first + {size}]{ending}"
    if not loading.epoch_size:
        return [*lines, "for first in range(0, count, size):", f"    rows = {chosen}"]
    return [
        *lines,
        "begin, end = epoch * EPOCH_SIZE, (epoch + 1) * EPOCH_SIZE",
        "while begin < end:",
        "    first = begin % count",
        f"    taken = min(size, {'end - begin, ' * loading.cut}count - first)",
        f"    rows = {chosen}",
        "    begin += taken",
    ]


def _minibatches_of_frames(loading: Loading) -> str:
    return _function(
        "minibatches(data: dict[str, Tensor], epoch: int, size: int) -> Iterator[dict[str, Tensor]]",
        f"Yield the minibatches of an epoch, {_order(loading)}.",
        "count = len(next(iter(data.values())))",
        *_places(loading),
        "    yield {name: values[rows] for name, values in data.items()}",
    )


# ---- CNTK's text format


_DENSE = '''\
def dense(rows: list[list[str]], size: int) -> Tensor:
    """Return pairs INDEX:VALUE as vectors."""
    values = torch.zeros(len(rows), size)
    for row, pairs in zip(values, rows, strict=True):
        for pair in pairs:
            index, value = pair.split(":")
            row[int(index)] += float(value)
    return values'''

_WORDS = '''\
def numbers(rows: list[list[str]]) -> Tensor:
    """Return the numbers of the ones of one-hot vectors INDEX:1."""
    return torch.tensor([int(pair.split(":")[0]) for (pair,) in rows])'''


def _converted(stream: Stream) -> str:
    """Return the entry of a dictionary that makes a tensor of the texts of a stream's samples, in `rows`."""
    rows = f'rows["{stream.name}"]'
    if stream.index:
        made = f"numbers({rows})"
    elif stream.sparse:
        made = f"dense({rows}, {stream.size}){_reshape(stream)}"
    else:
        made = f"torch.tensor([[float(value) for value in row] for row in {rows}]){_reshape(stream)}"
    return f'"{stream.name}": {made},'


def _of_text(loading: Loading, origin: Text) -> Written:
    streams = loading.streams
    names = {stream.alias: stream.name for stream in streams}
    renamed = any(alias != name for alias, name in names.items())
    key, every = ("STREAMS[name]", "STREAMS.values()") if renamed else ("name", "STREAMS")
    known = ", ".join(f'"{stream.name}"' for stream in streams) + "," * (len(streams) == 1)
    listed = f"{json.dumps(names)}  # names in the file, and those of the network" if renamed else f"({known})"
    helpers = [_DENSE] if any(stream.sparse and not stream.index for stream in streams) else []
    helpers += [_WORDS] if any(stream.index for stream in streams) else []
    conversions = _indented(list(map(_converted, streams)))
    constants = [f"DATA = {text(origin.path)}", f"STREAMS = {listed}"]
    if not loading.sequences:
        read = _function(
            "read_ctf(path: str) -> dict[str, Tensor]",
            "Return the streams of a CNTK text file, a row for each line.",
            f"rows: dict[str, list[list[str]]] = {{name: [] for name in {every}}}",
            "for line in Path(path).read_text().splitlines():",
            *_fields("rows", key),
            *("return {", *conversions, "}"),
        )
        return Written([], constants, [*helpers, read, _minibatches_of_frames(loading)], "read_ctf(DATA)")
    numbered = "each line is one" if origin.by_line else "lines of a sequence begin with the same number"
    read = _function(
        "read_ctf(path: str) -> list[dict[str, Tensor]]",
        f"Return the sequences of a CNTK text file; {numbered}.",
        "sequences: list[dict[str, list[list[str]]]] = []",
        *_new_sequences(origin, every),
        *_fields("sequences[-1]", key),
        *("return [", "    {", *_indented(conversions), "    }", "    for rows in sequences", "]"),
    )
    functions = [*helpers, read, _minibatches_of_sequences(loading), _collate(loading)]
    functions += [CELLS] if loading.cells else []
    imports = [*_padding_imports(loading), *(["import random"] if loading.shuffled else [])]
    return Written(imports, constants, functions, "read_ctf(DATA)")


def _padding_imports(loading: Loading) -> list[str]:
    padded = any(stream.form == STEPS for stream in loading.streams)
    return ["from torch.nn.utils.rnn import pad_sequence"] if padded else []


def _new_sequences(origin: Text, every: str) -> list[str]:
    """Statements that begin a loop over lines, and a sequence where one begins."""
    begin = f"sequences.append({{name: [] for name in {every}}})"
    loop = "for line in Path(path).read_text().splitlines():"
    if origin.by_line:
        return [loop, f"    {begin}"]
    return [
        'last = ""',
        loop,
        '    key = line.partition("|")[0].strip()',
        "    if not sequences or (key and key != last):",
        f"        {begin}",
        "    last = key or last",
    ]


def _fields(target: str, key: str) -> list[str]:
    """Statements that put the fields of a line where they belong."""
    return [
        '    for field in line.split("|")[1:]:',
        '        name, *values = field.split() or [""]',
        "        if name in STREAMS:",
        f"            {target}[{key}].append(values)",
    ]


CELLS = '''\
def cells(lengths: list[int]) -> int:
    """Return steps times slots of CNTK's minibatch: each sequence is in the first slot with room.

    CNTK counts them as samples in its momentum and regularisation.
    """
    steps, slots = max(lengths), []
    for length in lengths:
        slot = next((slot for slot, filled in enumerate(slots) if filled + length <= steps), None)
        if slot is None:
            slots.append(length)
        else:
            slots[slot] += length
    return steps * len(slots)'''


def _minibatches_of_sequences(loading: Loading) -> str:
    """Yield minibatches of at most `steps` steps, at least one sequence."""
    item = "dict[str, Tensor]"
    length = f'len(sequence["{loading.length}"])' if loading.length else "max(map(len, sequence.values()))"
    shuffled = ["sequences = random.Random(epoch).sample(sequences, len(sequences))"] if loading.shuffled else []
    yielded = [
        f"    length = {length}",
        "    if batch and steps + length > size:",
        "        yield batch",
        "        batch, steps = [], 0",
    ]
    sweep = ["batch, steps = [], 0", "for sequence in sequences:", *yielded]
    if loading.epoch_size:
        body = [
            "position, first, end = 0, epoch * EPOCH_SIZE, (epoch + 1) * EPOCH_SIZE",
            "while position < end:",
            *_indented(sweep),
            "        if not batch and position >= end:",
            "            return",
            "        if position >= first:",
            "            batch.append(sequence)",
            "            steps += length",
            "        position += length",
            "    if batch:",
            "        yield batch",
        ]
    else:
        body = [*sweep, "    batch.append(sequence)", "    steps += length", "yield batch"]
    return _function(
        f"minibatches(sequences: list[{item}], epoch: int, size: int) -> Iterator[list[{item}]]",
        f"Yield the sequences of minibatches of at most `size` steps, {_order(loading)}.",
        *shuffled,
        *body,
    )


def _collate(loading: Loading) -> str:
    """Return the function that makes tensors of the sequences of a minibatch."""
    streams = "streams = {name: [sequence[name] for sequence in sequences] for name in sequences[0]}"
    return _collating("sequences: list[dict[str, Tensor]]", loading, [streams])


def _collating(argument: str, loading: Loading, streams: Sequence[str]) -> str:
    """Return the function `collate`.

    Args:
        argument: of the function.
        loading: the data.
        streams: statements that make lists of tensors in `streams`.
    """
    padded = "; sequences are padded at their ends" if loading.masks else ""
    head = f"collate({argument}) -> dict[str, Tensor]"
    return _function(head, f"Return the tensors of a minibatch{padded}.", *streams, *_batch_of(loading))


def _batch_of(loading: Loading) -> list[str]:
    """Statements that make a batch of lists of tensors in `streams`."""
    forms = {stream.form == STEPS for stream in loading.streams}
    if forms == {True}:
        lines = ["batch = {name: pad_sequence(values, batch_first=True) for name, values in streams.items()}"]
    elif True not in forms:
        lines = ["batch = {name: torch.cat(values) for name, values in streams.items()}"]
    else:
        lines = ["batch = {"]
        for stream in loading.streams:
            whole = f'streams["{stream.name}"]'
            made = f"pad_sequence({whole}, batch_first=True)" if stream.form == STEPS else f"torch.cat({whole})"
            lines.append(f'    "{stream.name}": {made},')
        lines.append("}")
    for mask, name in loading.masks.items():
        lines.append(f'lengths = torch.tensor([len(values) for values in streams["{name}"]])')
        lines.append(f'batch["{mask}"] = torch.arange(int(lengths.max())) < lengths[:, None]')
    return [*lines, "return batch"]


# ---- files with a record a line


def _of_columns(loading: Loading, origin: Columns) -> Written:
    constants = [f"DATA = {text(origin.path)}"]
    line = "line"
    if origin.point:
        line += f'.replace({text(origin.point)}, ".")'
    if origin.delimiter:
        line += f'.replace({text(origin.delimiter)}, " ")'
    lines = [
        f"records = [{line}.split() for line in Path(path).read_text().splitlines() if line.strip()]",
        f"features = {_floats(origin.first, origin.size)}",
    ]
    parts = [f'"{origin.features}": torch.tensor(features)']
    if origin.labels and origin.mapping:
        constants.append(f"CLASSES = {text(origin.mapping)}  # a name a line")
        lines += [
            "names = Path(CLASSES).read_text().split()",
            f"numbers = torch.tensor([names.index(record[{origin.first_label}]) for record in records])",
        ]
        parts.append(f'"{origin.labels}": F.one_hot(numbers, {origin.label_size}).float()')
    elif origin.labels:
        lines.append(f"labels = {_floats(origin.first_label, origin.label_size)}")
        parts.append(f'"{origin.labels}": torch.tensor(labels)')
    shaped = [stream for stream in loading.streams if stream.shaped]
    made = f"{{{', '.join(parts)}}}"
    if shaped:
        lines.append(f"data = {made}")
        lines += [f'data["{stream.name}"] = data["{stream.name}"]{_reshape(stream)}' for stream in shaped]
        made = "data"
    read = _function(
        "read_columns(path: str) -> dict[str, Tensor]",
        "Return the features and labels of a file that has a record a line.",
        *lines,
        f"return {made}",
    )
    return Written([], constants, [read, _minibatches_of_frames(loading)], "read_columns(DATA)")


def _floats(first: int, size: int) -> str:
    return f"[[float(value) for value in record[{first}:{first + size}]] for record in records]"


# ---- pictures


def _of_pictures(loading: Loading, origin: Pictures) -> Written:
    constants = [f"DATA = {text(origin.path)}  # lines PATH TAB CLASS"]
    if origin.mean:
        constants.append(f"MEAN = {text(origin.mean)}  # a picture")
    flag = "cv2.IMREAD_GRAYSCALE" if origin.gray else "cv2.IMREAD_COLOR"
    axes = "picture[None]" if origin.gray else "picture.transpose(2, 0, 1)"
    read = _function(
        "read_picture(path: str) -> Tensor",
        "Return a picture, (channels, height, width) with values from 0 to 255, blue first.",
        'file, inside, name = path.partition("@")',
        "if inside:",
        '    encoded = zipfile.ZipFile(file).read(name.lstrip("/\\\\"))',
        "else:",
        "    encoded = Path(file).read_bytes()",
        f"picture = cv2.imdecode(np.frombuffer(encoded, np.uint8), {flag})",
        *origin.transforms,
        f"return torch.from_numpy(np.ascontiguousarray({axes}, np.float32))",
    )
    parts = [f'"{origin.features}": torch.stack([read_picture(name) for name, _ in pictures])']
    if origin.labels:
        numbers = "torch.tensor([number for _, number in pictures])"
        parts.append(f'"{origin.labels}": F.one_hot({numbers}, {origin.classes}).float()')
    batches = _function(
        "minibatches(data: list[tuple[str, int]], epoch: int, size: int) -> Iterator[dict[str, Tensor]]",
        f"Yield the minibatches of an epoch, {_order(loading, 'map')}.",
        "count = len(data)",
        *_places(loading, ".tolist()"),
        f"    pictures = {'[data[row] for row in rows]' if loading.shuffled else 'data[rows]'}",
        *("    yield {", *(f"        {part}," for part in parts), "    }"),
    )
    imports = ["import zipfile", "import cv2", "import numpy as np"]
    return Written(imports, constants, [*([_MEAN] if origin.mean else []), read, _LISTED, batches], "read_map(DATA)")


_LISTED = '''\
def read_map(path: str) -> list[tuple[str, int]]:
    """Return paths and classes; `...` in front of a path is the folder of the map file."""
    lines = [line.split("\\t") for line in Path(path).read_text().splitlines() if line.strip()]
    folder = str(Path(path).parent)
    return [(name.replace("...", folder, 1), int(number)) for *_, name, number in lines]'''

_MEAN = '''\
@functools.cache
def mean_picture() -> np.ndarray:
    """Return the mean picture, (height, width, channels)."""
    storage = cv2.FileStorage(MEAN, cv2.FILE_STORAGE_READ)
    height, width = (int(storage.getNode(name).real()) for name in ("Row", "Col"))
    return storage.getNode("MeanImg").mat().reshape(height, width, -1)'''


# ---- readers of cntkpy


_SEQUENCES = '''\
def sequences_of(minibatch: Any, name: str) -> list[Tensor]:
    """Return the sequences of a stream, each (steps, elements)."""
    layout, values = minibatch.layouts[name], minibatch.streams[name]
    values = values.toarray() if hasattr(values, "toarray") else values
    values = torch.from_numpy(values).reshape(layout.T, layout.S, -1)
    order = layout.sequences[layout.sequences[:, 0].argsort()]
    return [values[begin:end, slot] for _, slot, begin, end in order.tolist()]'''


def _of_reader(loading: Loading, origin: Reader) -> Written:
    opened = _function(
        "open_reader() -> Any",
        "Open the reader of the configuration, whose order is that of CNTK.",
        'section = load([f"configFile={CONFIG}"]).section(COMMAND)',
        f'return create_reader(section.section("reader"), "{origin.precision}")',
    )
    batches = _function(
        "minibatches(reader: Any, epoch: int, size: int) -> Iterator[Any]",
        "Yield the minibatches of an epoch as the reader has them.",
        f"reader.start_minibatch_loop(size, epoch, {'EPOCH_SIZE' if loading.epoch_size else 'None'})",
        "while (minibatch := reader.get_minibatch()) is not None:",
        "    yield minibatch",
    )
    streams = ["streams = {"]
    for stream in loading.streams:
        value = f'sequences_of(minibatch, "{stream.alias}")'
        change = ".argmax(-1)" if stream.index else _reshape(stream)
        if change:
            value = f"[values{change} for values in {value}]"
        streams.append(f'    "{stream.name}": {value},')
    imports = [
        "from typing import Any",
        "from cntkpy.cntk_config import load",
        "from cntkpy.readers import create_reader",
        *_padding_imports(loading),
    ]
    constants = [f"CONFIG, COMMAND = {text(origin.config)}, {text(origin.command)}"]
    collate = _collating("minibatch: Any", loading, [*streams, "}"])
    return Written(imports, constants, [opened, batches, _SEQUENCES, collate], "open_reader()")
