"""A network as a picture: text for Graphviz.

`dot_text` is a pure function. `render` and `draw` run Graphviz' program `dot`, if it is installed; there is no shell
in between, and it gets the text and the name of a picture format only.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.writing import output_file
from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.network import GROUPS, Network, Node

FORMATS = ("svg", "png", "pdf", "ps", "eps", "jpg", "gif")
"""Picture formats that may be asked for."""
MAX_SECONDS = 300

_STYLES = {
    "feature": 'shape=house, style=filled, fillcolor="#d5e8d4"',
    "label": 'shape=house, style=filled, fillcolor="#fff2cc"',
    "criterion": 'shape=octagon, style=filled, fillcolor="#f8cecc"',
    "evaluation": 'shape=octagon, style=filled, fillcolor="#ffe6cc"',
    "output": 'shape=doubleoctagon, style=filled, fillcolor="#dae8fc"',
}
_PARAMETER = 'shape=box, style="filled,rounded", fillcolor="#eeeeee"'
_CONSTANT = 'shape=box, style="filled,rounded,dashed", fillcolor="#eeeeee"'
_STATISTIC = 'shape=box, style="filled,rounded", fillcolor="#e1d5e7"'


def dot_text(network: Network, title: str = "") -> str:
    """Return the network as a digraph in Graphviz' language, arrows from inputs to their users.

    Nodes say name, operation and shape; delay nodes have dashed arrows; nodes of the five groups, parameters and
    constants (parameters that are not trained) look different.
    """
    lines = ["digraph network {", "  rankdir = BT;", '  node [fontname = "Helvetica", fontsize = 10];']
    if title:
        lines.append(f"  label = {_quoted(title)};")
    names = {node: f"n{index}" for index, node in enumerate(network.nodes.values())}
    for node, name in names.items():
        label = "\n".join((node.name, node.operation, shapes.text(node.shape)))
        lines.append(f"  {name} [label = {_quoted(label)}, {_style(network, node)}];")
    for node, name in names.items():
        dashed = " [style = dashed, constraint = false]" if node.kind.time.delay else ""
        lines.extend(f"  {names[source]} -> {name}{dashed};" for source in node.inputs if source in names)
    for group in GROUPS:
        members = [names[node] for node in network.groups[group] if node in names]
        if members and group in ("feature", "label"):
            lines.append(f"  {{ rank = source; {'; '.join(members)}; }}")
    return "\n".join([*lines, "}", ""])


def _style(network: Network, node: Node) -> str:
    for group in ("criterion", "evaluation", "output", "feature", "label"):
        if node in network.groups[group]:
            return _STYLES[group]
    if node.is_parameter:
        return _PARAMETER if node.trainable else _CONSTANT
    return _STATISTIC if node.kind.precompute else "shape=ellipse"


def _quoted(text: str) -> str:
    """Return a text as a string of Graphviz; the only characters with a meaning in it are `"` and the backslash."""
    clean = "".join(c if c.isprintable() or c == "\n" else "?" for c in text)
    return '"' + clean.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def graphviz() -> str | None:
    """Return the path of Graphviz' program `dot`, or None if it is not installed."""
    return shutil.which("dot")


def render(dot_file: str | Path, picture: str | Path, form: str | None = None) -> None:
    """Draw a file of Graphviz text.

    Args:
        dot_file: the text.
        picture: the file to be written.
        form: one of `FORMATS`; by default the ending of `picture`.

    Raises:
        UserError: `dot` is not installed, or failed; or an unknown format.
    """
    form = _checked(form or Path(picture).suffix[1:])
    hint = f"install Graphviz; or draw {dot_file} elsewhere: dot -T{form} -o PICTURE {Path(dot_file).name}"
    _run([f"-T{form}", str(Path(dot_file).absolute())], picture, hint)


def draw(text: str, picture: str | Path) -> None:
    """Draw a text of Graphviz.

    Args:
        text: the text.
        picture: the file to be written; its ending is one of `FORMATS`.

    Raises:
        UserError: `dot` is not installed, or failed; or an unknown format.
    """
    form = _checked(Path(picture).suffix[1:])
    _run([f"-T{form}"], picture, "install Graphviz; or write a file that ends in .dot, and draw it elsewhere", text)


def _checked(form: str) -> str:
    if form.lower() not in FORMATS:
        message, hint = f"'{form.lower()}' is not a picture format of plots", f"the formats are {', '.join(FORMATS)}"
        raise UserError("UnknownFormat", message, hint=hint)
    return form.lower()


def _run(words: list[str], picture: str | Path, hint: str, text: str = "") -> None:
    """Draw the file that `words` name, or a text, with `dot`."""
    program = graphviz()
    if program is None:
        message = f"{picture} cannot be drawn: Graphviz' program 'dot' is not installed"
        raise UserError("MissingPackage", message, hint=hint)
    try:
        done = subprocess.run(
            [program, *words], input=text.encode("utf-8"), capture_output=True, timeout=MAX_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired, ValueError) as problem:
        raise UserError("CannotWrite", f"'dot' failed to draw {picture}: {problem}") from None
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip()[:500]
        raise UserError("CannotWrite", f"'dot' failed to draw {picture}: {said or f'exit status {done.returncode}'}")
    with output_file(picture) as file:
        file.write(done.stdout)
