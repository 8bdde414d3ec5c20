"""`action = SVD`: weight matrices replaced by products of two smaller ones (singular value decomposition)."""

from __future__ import annotations

import logging
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING

from cntkpy.cntk_config import ConfigParameters
from cntkpy.cntk_config.base.files import read_input
from cntkpy.cntk_config.base.lines import split_lines
from cntkpy.cntk_config.declare import COUNT, PATH, REAL, TEXT, Declared, Parameter
from cntkpy.cntk_config.entry import Entry
from cntkpy.commands.actions.networks_and_readers import load

if TYPE_CHECKING:
    from cntkpy.commands.context.run_context import RunContext
    from cntkpy.networks.graph.network import Network, Node

log = logging.getLogger("cntkpy.commands")


ENTRY = Entry(
    "action",
    ("SVD",),
    parameters="cntkpy.commands.actions.svd:SVDParameters",
    factory="cntkpy.commands.actions.svd:svd",
    traits=frozenset({"without JAX"}),
    example="svd = [ action = SVD ; modelPath = m ; outputmodelPath = small ; KeepRatio = 0.5 ]",
)


class SVDParameters(Declared):
    """`action=SVD`: replaces weight matrices of a model by products of two smaller ones."""

    model_path = Parameter("modelPath", PATH, help="The model file.")
    output_path = Parameter("outputmodelPath", PATH, help="Where the new model goes.")
    keep = Parameter("KeepRatio", REAL, default="0.4", help="Share of the sum of singular values that is kept.")
    aligned = Parameter("AlignedSize", COUNT, default="8", help="The rank is rounded up to a multiple of this.")
    regex = Parameter("NodeNameRegex", TEXT, default="", help="Matrices to replace: the whole name matches.")
    config_file = Parameter(
        "SVDConfig", PATH, default=None, help="Instead: a file of lines `regex ratio`; the first that matches counts."
    )


def svd(section: ConfigParameters, context: RunContext) -> None:
    """Run the action on its section."""
    p = SVDParameters(section)
    if p.aligned < 1:
        raise p.error("AlignedSize", "AlignedSize is at least 1")
    groups, output = _groups(p), str(p.output_path)
    network = load(str(p.model_path), context)
    from cntkpy.networks.files.model_file import save_model

    chosen = [(node, _ratio_of(node, groups)) for node in network.nodes.values()]
    replaced = False
    for node, ratio in chosen:
        if ratio is not None:
            factorise(network, node, ratio, p.aligned)
            replaced = True
    if not replaced:
        log.warning("SVD: no matrix of the model matches; the new model equals the old one")
    save_model(output, network.validate())


def _ratio_of(node: Node, groups: list[tuple[re.Pattern[str], float]]) -> float | None:
    """Return the ratio of the first expression that matches a matrix; None for a node that stays."""
    shape = node.shape or ()
    if not node.is_parameter or len(shape) < 2 or (len(shape) == 2 and min(shape) < 2):
        return None
    ratio = next((ratio for pattern, ratio in groups if pattern.fullmatch(node.name)), None)
    if ratio is not None and len(shape) > 2:
        dims = " x ".join(map(str, shape))
        log.info("SVD: %s [%s] stays as it is: it has more than two axes, so it is not a matrix", node.name, dims)
        return None
    return ratio


def factorise(network: Network, node: Node, ratio: float, aligned: int) -> None:
    """Replace a matrix W by U V with as few columns of U as `ratio` of the sum of singular values needs.

    Where the matrix only multiplies something from the left, W x becomes U (V x); elsewhere W becomes the product.
    As in CNTK the inner product has the name of the old one, but where that is a member of a group: there it is the
    outer one, `W_SVD` being the inner.
    """
    import numpy as np

    from cntkpy.networks.nodes import operation

    assert node.shape is not None
    u, values, v = np.linalg.svd(node.matrix().astype(np.float64), full_matrices=False)
    share = np.cumsum(values) / values.sum() if values.any() else np.ones(len(values))
    rank = min(int(np.argmax(share > ratio)) + 1 if (share > ratio).any() else len(values), len(values))
    rank = min(math.ceil(rank / aligned) * aligned, len(values))
    root = np.sqrt(values[:rank])
    rows, columns = node.shape
    factors: list[Node] = []
    for suffix, matrix in (("U", u[:, :rank] * root), ("V", root[:, None] * v[:rank])):
        value = np.ascontiguousarray(matrix.T, network.dtype)
        factor = network.add(f"{node.name}_{suffix}", node.kind, options=node.options, shape=matrix.shape, value=value)
        factor.learning_rate_multiplier = node.learning_rate_multiplier
        factors.append(factor)
    left, right = factors
    users = [user for user in network.nodes.values() if node in user.inputs]
    name = node.name
    if (
        len(users) == 1
        and users[0].operation == "Times"
        and users[0].inputs[0] is node
        and users[0].inputs[1] is not node
    ):
        inner, outer_name = users[0], f"{name}_SVD"
        if any(inner in members for members in network.groups.values()):
            outer_name = inner.name  # an output or a criterion is asked for by its name
            network.rename(inner.name, f"{name}_SVD")
        outer = network.add(outer_name, operation("Times"), (left, inner), inner.options)
        _redirect(network, inner, outer, {outer})
        inner.inputs[0] = right
        inner.shape = None
        network.remove(name)
    else:
        network.rename(name, f"{name}_SVD")
        product = network.add(name, operation("Times"), (left, right))
        _redirect(network, node, product, {product})
        network.remove(node.name)
    log.info(
        "SVD: %s [%d x %d] has rank %d now, with %.1f%% of the sum of singular values: %d instead of %d parameters",
        name,
        rows,
        columns,
        rank,
        100 * share[rank - 1],
        rank * (rows + columns),
        rows * columns,
    )


def _redirect(network: Network, old: Node, new: Node, but: set[Node]) -> None:
    """Everything that uses `old`, groups included, uses `new`."""
    for user in network.nodes.values():
        if user not in but:
            user.inputs = [new if source is old else source for source in user.inputs]
    for members in network.groups.values():
        members[:] = [new if member is old else member for member in members]


def _groups(p: SVDParameters) -> list[tuple[re.Pattern[str], float]]:
    """Return the regular expressions, each with its ratio."""
    if not p.config_file:
        if not p.regex:
            hint = 'name the matrices, for instance NodeNameRegex = "W.*"'
            raise p.error("NodeNameRegex", "SVD needs NodeNameRegex or SVDConfig", hint, kind="MissingParameter")
        return [(_pattern(p, "NodeNameRegex", str(p.regex)), _ratio(p, "KeepRatio", str(p.keep)))]
    path = Path(p.config_file)
    try:
        lines = split_lines(read_input(path).decode("utf-8-sig", "replace"))
    except OSError as error:
        raise p.error("SVDConfig", f"cannot read {path}: {error.strerror or error}") from None
    groups: list[tuple[re.Pattern[str], float]] = []
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words:
            continue
        place = f"{path}:{number}: "
        if len(words) != 2:
            raise p.error("SVDConfig", f"{place}a line has a regular expression and a ratio")
        groups.append((_pattern(p, "SVDConfig", words[0], place), _ratio(p, "SVDConfig", words[1], place)))
    return groups


def _pattern(p: SVDParameters, name: str, text: str, place: str = "") -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise p.error(name, f"{place}not a regular expression: {error}") from None


def _ratio(p: SVDParameters, name: str, text: str, place: str = "") -> float:
    try:
        ratio = float(text)
    except ValueError:
        ratio = math.nan
    if not 0 < ratio <= 1:
        raise p.error(name, f"{place}the ratio to keep lies above 0 and up to 1, not {text}")
    return ratio
