"""Edit distance of sequences: how many substitutions, deletions and insertions make one of the other.

R. Wagner and M. Fischer, "The string-to-string correction problem", Journal of the ACM 21, 1974.

CNTK's reference of edit_distance_error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cntkpy.networks.arrays.largest import first_largest
from cntkpy.networks.arrays.lazy import Array, jax, jnp
from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.shapes import Shape, ShapeProblem
from cntkpy.networks.nodes import rules
from cntkpy.networks.nodes.call import Call
from cntkpy.networks.nodes.declare import BOOLEAN, INTEGERS, REAL, NodeKind, Option, RecordForm, TimeRule, inputs

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int32

    from cntkpy.networks.graph.node import Node


Pair = tuple[Array, Array]
"""Costs and numbers of edits of two places."""


class Tokens(NamedTuple):
    """The tokens of sequences, from the first one on.

    Attributes:
        row: tokens; what follows the last one of a sequence has no meaning.
        count: how many a sequence has.
    """

    row: Int32[Array, "T S"]
    count: Int32[Array, " S"]  # pyright: ignore[reportIncompatibleMethodOverride]


def _shape(node: Node) -> Shape | None:
    """`[1]`; both have as many rows as each other."""
    first, second = node.connected
    rules.carrying_data(first, second)
    known = [operand for operand in (first, second) if operand.shape is not None and 0 not in operand.shape]
    if len(known) == 2 and shapes.size(first.shape or ()) != shapes.size(second.shape or ()):
        sizes = [f"'{operand.name}' has {shapes.size(operand.shape or ())}" for operand in known]
        raise ShapeProblem(f"both have a row for each token: {', '.join(sizes)}")
    return (1,)


def _tokens(values: Float[Array, "T S K"], mask: Bool[Array, "T S"], squash: bool, ignored: tuple[int, ...]) -> Tokens:
    """Return the rows of the largest elements: of equal neighbours the first if `squash`, without those that are
    ignored.
    """
    steps, slots = mask.shape
    row = first_largest(values)
    kept = mask
    if squash:
        kept = kept & jnp.concatenate([jnp.ones((1, slots), bool), row[1:] != row[:-1]])
    for token in ignored:
        kept = kept & (row != token)
    place = jnp.where(kept, jnp.cumsum(kept, axis=0) - 1, steps)
    packed = jnp.zeros((steps, slots), row.dtype).at[place, jnp.arange(slots)[None]].set(row, mode="drop")
    return Tokens(packed, jnp.sum(kept, axis=0, dtype=jnp.int32))


class Penalties(NamedTuple):
    """Costs of the kinds of edits."""

    substitution: float
    deletion: float
    insertion: float


def _distances(first: Tokens, second: Tokens, cost: Penalties, dtype: object) -> Float[Array, " S"]:
    """Return the smallest sum of penalties of edits that make the second of the first, for each sequence.

    Row i of the table has the distances of the first i tokens to the first j, for all j at once: an insertion adds to
    the element before in the same row, so a row is a running minimum.
    """
    places = jnp.arange(second.row.shape[0] + 1)[:, None]
    inserted = (places * cost.insertion).astype(dtype)

    def step(row: Array, column: tuple[Array, Array]) -> tuple[Array, None]:
        token, place = column
        changed = jnp.where(second.row == token[None], 0, cost.substitution).astype(dtype)
        deleted = row + cost.deletion
        best = jnp.concatenate([deleted[:1], jnp.minimum(deleted[1:], row[:-1] + changed)])
        best = jax.lax.cummin(best - inserted, axis=0) + inserted
        return jnp.where(place < first.count, best, row), None

    start = jnp.broadcast_to(inserted, (len(places), first.row.shape[1]))
    steps = jnp.arange(first.row.shape[0])
    last, _ = jax.lax.scan(step, start, (first.row, steps))
    return jnp.take_along_axis(last, second.count[None], axis=0)[0]


def _edits(first: Tokens, second: Tokens, cost: Penalties, dtype: object) -> Float[Array, " S"]:
    """Count the edits of the cheapest way that makes the second of the first, for each sequence.

    Among ways of the same cost a substitution goes before a deletion, and this after an insertion, as in CNTK.
    """
    places, slots = jnp.arange(second.row.shape[0] + 1), first.row.shape[1]
    wide = (len(places), slots)
    start = jnp.broadcast_to((places * cost.insertion).astype(dtype)[:, None], wide)
    counts = jnp.broadcast_to(places[:, None], wide).astype(dtype)

    def step(row: tuple[Array, Array], column: tuple[Array, Array]) -> tuple[tuple[Array, Array], None]:
        token, place = column
        costs, numbers = row

        def place_after(left: Pair, here: tuple[Array, ...]) -> tuple[Pair, Pair]:
            same, corner, corner_number, above, above_number = here
            changed, deleted, inserted = corner + cost.substitution, above + cost.deletion, left[0] + cost.insertion
            is_change = (changed <= deleted) & (changed <= inserted)
            is_deletion = deleted < inserted
            value = jnp.where(is_change, changed, jnp.where(is_deletion, deleted, inserted))
            number = jnp.where(is_change, corner_number, jnp.where(is_deletion, above_number, left[1])) + 1
            cheapest = jnp.where(same, corner, value), jnp.where(same, corner_number, number)
            return cheapest, cheapest

        begin = costs[0] + cost.deletion, numbers[0] + 1
        same = second.row == token[None]
        _, after = jax.lax.scan(place_after, begin, (same, costs[:-1], numbers[:-1], costs[1:], numbers[1:]))
        both = (jnp.concatenate([start[None], following]) for start, following in zip(begin, after, strict=True))
        there = place < first.count
        return tuple(jnp.where(there, new, old) for new, old in zip(both, row, strict=True)), None

    steps = jnp.arange(first.row.shape[0])
    (_, last), _ = jax.lax.scan(step, (start, counts), (first.row, steps))
    return jnp.take_along_axis(last, second.count[None], axis=0)[0]


def _edit_distance_error(call: Call, first: Array, second: Array) -> Array:
    options = call.options
    grids = [call.context.grid(node.axis).mask for node in call.node.connected]
    ignored = tuple(int(option) for option in options["tokensToIgnore"])
    left, right = (
        _tokens(jax.lax.stop_gradient(call.flat(values, index)), grids[index], bool(options["squashInputs"]), ignored)
        for index, values in enumerate((first, second))
    )
    penalties = Penalties(*(float(options[name]) for name in ("subPen", "delPen", "insPen")))
    dtype = first.dtype
    count = _distances if penalties == (1, 1, 1) else _edits  # with penalties of 1 the cost is the number of edits
    distance = jnp.sum(count(left, right, penalties, dtype))
    real = jnp.any(grids[0], axis=0)
    tokens = jnp.sum(jnp.where(real, jnp.maximum(left.count, 1), 0)).astype(dtype)
    frames = jnp.sum(grids[0]).astype(dtype)
    return (distance * frames / jnp.maximum(tokens, 1)).reshape(1)


KINDS = [
    NodeKind(
        "EditDistanceError",
        (inputs("a", "b"),),
        "Edits of the cheapest way from one sequence of tokens to another, the rows of the largest elements of each "
        "step, relative to the number of tokens of the first: the mean over the steps is the error rate.",
        "steps of a * sum of edits / sum of max (1, tokens of a)",
        _shape,
        _edit_distance_error,
        options=(
            Option("subPen", REAL, 1.0, "what another token in the place of one costs"),
            Option("delPen", REAL, 1.0, "what a token of a that b does not have costs"),
            Option("insPen", REAL, 1.0, "what a token of b that a does not have costs"),
            Option("squashInputs", BOOLEAN, False, "equal tokens in neighbouring steps are one"),
            Option("tokensToIgnore", INTEGERS, (), "tokens that are left out, after equal neighbours became one"),
        ),
        layout="none",
        differentiable=False,
        time=TimeRule(reduces_time=True, own_slots=True, across=True),
        record=RecordForm(names={"tokensToIgnore": "ignored"}),
        example="err = EditDistanceError(labels, z, squashInputs=true, tokensToIgnore=2, tag=eval)",
        not_exported="it compares sequences of labels; export the output of the network",
    )
]
