"""Small functions that written functions of JAX have where JAX has none of that meaning."""

from __future__ import annotations

HELPERS: dict[str, str] = {
    "cross_entropy": '''\
def cross_entropy(z: Array, labels: Array, mask: Array | None = None) -> Array:
    """Return the sum of the cross entropies of labels (one-hot or probabilities) and softmax(z)."""
    return -(labels * jax.nn.log_softmax(z)).sum(-1).sum(where=mask)''',
    "plain_cross_entropy": '''\
def plain_cross_entropy(labels: Array, p: Array, mask: Array | None = None) -> Array:
    """Return the sum of the cross entropies of labels and probabilities."""
    return -(labels * log(p)).sum(-1).sum(where=mask)''',
    "with_slope": '''\
def with_slope(value: Array, slope: Array, z: Array) -> Array:
    """Return the sum of a value, whose gradient by z is given."""
    zero = (jax.lax.stop_gradient(slope) * (z - jax.lax.stop_gradient(z))).sum()
    return jax.lax.stop_gradient(value).sum() + zero''',
    "square_error": '''\
def square_error(x: Array, y: Array, mask: Array | None = None) -> Array:
    """Return the sum of the squares of differences."""
    return jnp.square(x - y).sum(-1).sum(where=mask)''',
    "logistic_loss": '''\
def logistic_loss(
    labels: Array, p: Array, weights: Array | None = None, mask: Array | None = None
) -> Array:
    """Return the cross entropy of labels 0 or 1 and probabilities, with a weight for each sample.

    The value is divided by the mean weight, its gradient is not.
    """
    labels = jax.lax.stop_gradient(labels)
    likelihood = log(labels * p + (1 - labels) * (1 - p)).sum(-1)
    if weights is None:
        return -likelihood.sum(where=mask)
    weights = jax.lax.stop_gradient(weights[..., 0])
    loss = -(weights * likelihood).sum(where=mask)
    mean = weights.mean(where=mask)
    return loss + jax.lax.stop_gradient(loss * (1 / mean - 1))''',
    "errors": '''\
def errors(z: Array, labels: Array, mask: Array | None = None) -> Array:
    """Return the number of samples whose largest output is not that of the labels."""
    wrong = jnp.argmax(z, axis=-1) != jnp.argmax(labels, axis=-1)
    return wrong.sum(where=mask).astype(z.dtype)''',
    "errors_of_top": '''\
def errors_of_top(z: Array, labels: Array, count: int, mask: Array | None = None) -> Array:
    """Return the number of samples whose label is not among the `count` largest outputs."""
    wanted = jnp.argmax(labels, axis=-1, keepdims=True)
    score = jnp.take_along_axis(z, wanted, axis=-1)
    earlier = jnp.arange(z.shape[-1]) < wanted
    rank = ((z > score) | ((z == score) & earlier)).sum(-1)
    return (rank >= count).sum(where=mask).astype(z.dtype)''',
    "class_based_loss": '''\
def class_based_loss(
    labels: Array, h: Array, weights: Array, score: Array, mask: Array | None = None
) -> Array:
    """Return the cross entropy of words: of their class, and of the word among those of its class.

    A label is: word, class, first word of the class, word behind the last one of the class.
    """
    word, group, first, end = jnp.moveaxis(labels.astype(int), -1, 0)[..., None]
    places = jnp.arange(len(weights))
    inside = (places >= first) & (places < end)
    of_word = jax.nn.log_softmax(jnp.where(inside, h @ weights.T, -jnp.inf))
    of_word = jnp.take_along_axis(of_word, word, axis=-1)
    of_class = jnp.take_along_axis(jax.nn.log_softmax(score), group, axis=-1)
    return -(of_class + of_word)[..., 0].sum(where=mask)''',
    "ranks": '''\
def ranks(gain: Array, score: Array, query: Array) -> tuple[Array, Array, Array]:
    """Return the number of each document's query, its place in it, and its place by score.

    The documents of a query follow each other. Of equal scores the smaller gain comes first.
    """
    begins = jnp.concatenate([jnp.ones(1, bool), query[1:] != query[:-1]])
    number = jnp.cumsum(begins) - 1
    here = jnp.arange(len(query))
    first = jax.ops.segment_min(here, number, len(query))[number]
    rank = jnp.zeros_like(here).at[jnp.lexsort((gain, -score, number))].set(here)
    return number, here - first, rank - first''',
    "lambda_rank": '''\
@jax.custom_vjp
def lambda_rank(gain: Array, score: Array, query: Array) -> Array:
    """Return how far the discounted gains are below the best possible ones, in percent."""
    number, place, rank = ranks(gain, score, query)
    count = len(query)
    ideal = jax.ops.segment_sum(gain / jnp.log(2.0 + place), number, count)
    actual = jax.ops.segment_sum(gain / jnp.log(2.0 + rank), number, count)
    ratio = jnp.where(ideal == 0, 0.0, actual / jnp.where(ideal == 0, 1.0, ideal))
    queries = number[-1] + 1
    return (1 - ratio.sum() / queries) * 100 * count


def _lambda_rank(gain: Array, score: Array, query: Array) -> tuple[Array, tuple[Array, ...]]:
    """Return the loss, and what its gradient needs."""
    return lambda_rank(gain, score, query), (gain, score, query)


def _lambda_rank_gradient(kept: tuple[Array, ...], _: Array) -> tuple[None, Array, None]:
    """Return how much the documents of each pair of a query should move apart."""
    gain, score, query = kept
    number, place, rank = ranks(gain, score, query)
    count = len(query)
    ideal = jax.ops.segment_sum(gain / jnp.log(2.0 + place), number, count)[number]
    least = jax.ops.segment_min(gain, number, count)[number]
    discount = jnp.log(2.0 + rank)
    pairs = (number[:, None] == number) & (place[:, None] < place)
    pairs &= (gain[:, None] != gain) & (gain > least)[:, None] & (ideal != 0)[:, None]
    weight = (gain[:, None] - gain) * (discount[:, None] - discount)
    weight = weight / (discount[:, None] * discount) / jnp.where(ideal == 0, 1.0, ideal)[:, None]
    slope = -jax.nn.sigmoid(score - score[:, None]) * jnp.abs(weight)
    slope = jnp.where(pairs, slope, 0.0)
    return None, slope.sum(1) - slope.sum(0), None


lambda_rank.defvjp(_lambda_rank, _lambda_rank_gradient)''',
    "first_gain": '''\
def first_gain(gain: Array, score: Array, query: Array) -> Array:
    """Return the gain of the document with the best score relative to the best one of its query."""
    number, place, rank = ranks(gain, score, query)
    count = len(query)
    best = jax.ops.segment_sum(jnp.where(place == 0, gain, 0.0), number, count)
    chosen = jax.ops.segment_sum(jnp.where(rank == 0, gain, 0.0), number, count)
    ratio = jnp.where(best == 0, 0.0, chosen / jnp.where(best == 0, 1.0, best))
    return ratio.sum() / (number[-1] + 1) * 100 * count''',
}
