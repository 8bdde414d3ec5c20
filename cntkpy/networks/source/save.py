"""The folder that is written: `model.py`, `weights.safetensors`, `README.md`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.writing import atomic_write, not_written
from cntkpy.networks.files.tensor_file import write_tensors
from cntkpy.networks.graph.network import Network
from cntkpy.networks.onnx import ours
from cntkpy.networks.source.check import GRADIENTS, VALUES, Difference
from cntkpy.networks.source.export import FORMS, Settings, Source, export, shape_text
from cntkpy.networks.source.writer import quoted

MODEL, WEIGHTS, README = "model.py", "weights.safetensors", "README.md"

FORMATS = tuple(FORMS)
"""Forms that a network can be written in."""


def write_source(
    folder: str | Path,
    source: Source,
    origin: str,
    differences: Sequence[Difference] = (),
    extra: dict[str, str] | None = None,
    notes: Sequence[str] = (),
) -> list[Path]:
    """Write a network as source.

    Args:
        folder: where the files go; it is made.
        source: the module, or the functions.
        origin: what the network was read from.
        differences: from the network, as far as they are known.
        extra: texts of further files by name.
        notes: what the training of the configuration has, and `train.py` has not.

    Returns:
        The files.

    Raises:
        UserError: a file cannot be written, or a program that is there has another text: somebody may have edited it.
    """
    folder = Path(folder)
    programs = {MODEL: source.text, **(extra or {})}
    if edited := [name for name, text in programs.items() if _is_other_text(folder / name, text)]:
        message = f"{folder} has {' and '.join(edited)} already, with another text; nothing is written"
        raise UserError("CannotWrite", message, hint="name another folder, or move what is there away")
    texts = {MODEL: source.text, README: readme(source, origin, differences, extra or {}, notes), **(extra or {})}
    path = folder / WEIGHTS
    try:
        write_tensors(path, source.arrays(), {"format": "pt" if source.framework == "pytorch" else "np"})
        for name, text in texts.items():
            path = folder / name
            with atomic_write(path) as file:
                file.write(text.encode())
    except OSError as error:
        raise UserError("CannotWrite", not_written(error, path)) from None
    return [folder / name for name in (MODEL, WEIGHTS, README, *(extra or {}))]


def _is_other_text(path: Path, text: str) -> bool:
    """Return whether a file exists whose text differs."""
    try:
        return path.read_bytes() != text.encode()
    except OSError:
        return False


def save_source(folder: str | Path, network: Network, outputs: tuple[str, ...], framework: str) -> None:
    """Write a network as source, unchecked.

    Args:
        folder: where the files go; its name is that of the class.
        network: the network.
        outputs: names of nodes.
        framework: a word of `FORMATS`.

    Raises:
        UserError: nodes have no code; a file cannot be written.
    """
    name = Path(folder).name
    source = export(network.validate(), ours.constants, Settings(outputs, title=name, framework=framework))
    write_source(folder, source, "a function of Python")


def readme(
    source: Source,
    origin: str,
    differences: Sequence[Difference],
    extra: dict[str, str],
    of_training: Sequence[str] = (),
) -> str:
    """Return the text of `README.md`."""
    graph = source.graph
    lines = [
        *(_of_torch(source, origin) if source.framework == "pytorch" else _of_jax(source, origin)),
        "",
        "## Inputs and outputs",
        "| name | in the network | shape |",
        "|---|---|---|",
    ]
    for name, node in source.arguments.items():
        index = node in source.indices
        kind = "integers " if index else ""
        lines.append(f"| `{name}` | `{node.name}` | {kind}{shape_text(node, graph.along_time, index)} |")
    for name, axis in source.masks.items():
        time = "the time axis" if axis == "*" else f"the time axis `{axis}`"
        lines.append(f"| `{name}` | {time} | booleans (batch, steps), False where a sequence has ended |")
    lines += [f"| result | `{node.name}` | {shape_text(node, graph.along_time)} |" for node in graph.outputs]
    if graph.along_time:
        lines += ["", "Sequences of a batch are padded at their ends; what the results have there has no meaning."]
    if source.indices:
        lines += ["", "Integers are the numbers of the ones of CNTK's sparse one-hot vectors."]
    if differences:
        lines += [
            "",
            "## Compared with the network",
            "The largest differences on random data, and on the first data of the configuration's reader if there is",
            "one, relative to the largest element if that is above 1; values may",
            f"differ by {VALUES:g}, gradients by {GRADIENTS:g}.",
            "",
            "| of | difference |",
            "|---|---|",
            *(f"| {item.name} | {item.largest:.1e} |" for item in differences),
        ]
    notes = [*source.notes, *source.layers]
    if notes:
        lines += ["", "## Notes", *(f"- {note}" for note in notes)]
    if "train.py" in extra:
        lines += ["", "## Training", "`python train.py` repeats the training of the configuration; see its head."]
        lines += ["", *(f"- {line}" for line in of_training)] if of_training else []
    return "\n".join(lines) + "\n"


def _of_torch(source: Source, origin: str) -> list[str]:
    """Return the head of the README, with the use of a module of PyTorch."""
    call = ", ".join([*source.arguments, *source.masks])
    return [
        f"# {source.name}",
        "",
        f"`{MODEL}` is the network of {origin} as a module of PyTorch, written by `cntkpy export --to pytorch`.",
        f"It needs torch and, to read `{WEIGHTS}`, safetensors.",
        "",
        "```python",
        "from safetensors.torch import load_file",
        "",
        f"from model import {source.name}",
        "",
        f"model = {source.name}()",
        f'model.load_state_dict(load_file("{WEIGHTS}"))',
        "model.eval()",
        f"outputs = model({call})",
        "```",
    ]


def _of_jax(source: Source, origin: str) -> list[str]:
    """Return the head of the README, with the use of functions of JAX."""
    file = source.file
    trees = ", ".join(file.trees)
    call = ", ".join([*file.trees, *source.arguments, *source.masks, *["jax.random.key(0)"] * file.draws])
    lines = [
        f"# {quoted(source.title)}",
        "",
        f"`{MODEL}` is the network of {origin} as functions of JAX, written by `cntkpy export --to jax`.",
        f"It needs jax and, to read `{WEIGHTS}`, safetensors.",
        "",
        "```python",
        *(["import jax", ""] if file.draws else []),
        f"from model import apply{', load' if trees else ''}",
        "",
        *([f'{trees} = load("{WEIGHTS}")'] if trees else []),
        f"outputs{', state' if file.renews else ''} = apply({call})",
        "```",
        "",
        "`apply` is pure: `jax.jit`, `jax.grad` and `jax.vmap` take it.",
    ]
    if "params" in file.trees:
        lines.append("`params` are the arrays that a training changes, a tree of dicts.")
    frozen = [
        name
        for name, tensor in source.tensors.items()
        if not name.startswith("state.") and tensor.source is not None and not tensor.source.trainable
    ]
    if frozen:
        listed = ", ".join(f"`{name}`" for name in frozen)
        lines.append(f"The network does not train {listed}: give an optimiser no gradient of them.")
    if "state" in file.trees:
        lines.append("`state` has constants and statistics.")
    if file.renews:
        lines.append(
            "With `training=True` batches are normalised by their own statistics, towards which the new state moves;"
        )
        lines.append('compile it with `jax.jit(apply, static_argnames="training")`.')
    if "key: Array | None = None" in file.text:
        lines.append("With `key` elements are dropped at random; without it none are.")
    return lines
