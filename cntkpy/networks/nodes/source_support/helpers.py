"""Small functions that the written module has where PyTorch has no function of that meaning."""

from __future__ import annotations

NEEDS: dict[str, tuple[str, ...]] = {
    "cosine_with_negatives": ("cosine",),
    "errors_of_top": ("first_largest",),
    "errors": ("first_largest",),
    "hardmax": ("first_largest",),
    "logistic_loss": ("log",),
    "lambda_rank": ("ranks",),
    "first_gain": ("ranks",),
    "additive_attention": ("attention_weights",),
}
"""By name of a helper, the helpers that it calls."""

HELPERS: dict[str, str] = {
    "first_largest": '''\
def first_largest(x: Tensor) -> Tensor:
    """Return the place of the largest element, the first one of equal ones."""
    return (x == x.amax(-1, keepdim=True)).to(torch.uint8).argmax(-1)''',
    "hardmax": '''\
def hardmax(x: Tensor) -> Tensor:
    """Return one-hot vectors of the largest elements."""
    return F.one_hot(first_largest(x), x.shape[-1]).to(x.dtype)''',
    "log": '''\
def log(x: Tensor) -> Tensor:
    """Return the natural logarithm, -85.1 where it would be below that."""
    return torch.where(x < 1e-37, -85.1, x.clamp(min=1e-37).log())''',
    "reciprocal": '''\
def reciprocal(x: Tensor) -> Tensor:
    """Return 1 / x, and 0 where x is 0."""
    return torch.where(x == 0, 0.0, 1 / torch.where(x == 0, 1.0, x))''',
    "log_plus": '''\
def log_plus(x: Tensor, y: Tensor) -> Tensor:
    """Return log(exp(x) + exp(y)); the larger operand where the other one is 9.21 below it."""
    total = torch.logaddexp(x, y)
    far = (x - y).abs() > 9.2103404
    return total + torch.where(far, torch.maximum(x, y) - total, 0.0).detach()''',
    "clip": '''\
def clip(x: Tensor, lowest: Tensor | float, highest: Tensor | float) -> Tensor:
    """Return x within bounds, the lower one first; bounds have no gradient."""
    lowest, highest = (torch.as_tensor(bound).to(x).detach() for bound in (lowest, highest))
    return torch.where(x < lowest, lowest, torch.minimum(x, highest))''',
    "cosine": '''\
def cosine(x: Tensor, y: Tensor) -> Tensor:
    """Return the cosine of the angle between vectors."""
    x, y = (v / v.norm(dim=-1, keepdim=True).clamp(min=1e-30) for v in (x, y))
    return (x * y).sum(-1, keepdim=True)''',
    "cosine_with_negatives": '''\
def cosine_with_negatives(x: Tensor, y: Tensor, shift: int, count: int) -> Tensor:
    """Return the cosines with the same sample of y, then with others of the minibatch."""
    shifted = [torch.roll(y, -(shift + number), 0) for number in range(count)]
    return torch.cat([cosine(x, operand) for operand in (y, *shifted)], dim=-1)''',
    "largest": '''\
def largest(x: Tensor, dim: int) -> Tensor:
    """Return the largest element; each of several equal ones has the whole gradient."""
    value = x.amax(dim, keepdim=True).detach()
    equal = (x == value).to(x.dtype)
    return value + (equal * (x - x.detach())).sum(dim, keepdim=True)''',
    "smallest": '''\
def smallest(x: Tensor, dim: int) -> Tensor:
    """Return the smallest element; each of several equal ones has the whole gradient."""
    value = x.amin(dim, keepdim=True).detach()
    equal = (x == value).to(x.dtype)
    return value + (equal * (x - x.detach())).sum(dim, keepdim=True)''',
    "cross_entropy": '''\
def cross_entropy(z: Tensor, labels: Tensor) -> Tensor:
    """Return the sum of the cross entropies of labels (one-hot or probabilities) and softmax(z)."""
    return F.cross_entropy(z, labels, reduction="sum")''',
    "logistic_loss": '''\
def logistic_loss(labels: Tensor, p: Tensor, weights: Tensor | None = None) -> Tensor:
    """Return the cross entropy of labels 0 or 1 and probabilities, with a weight for each sample.

    The value is divided by the mean weight, its gradient is not.
    """
    labels = labels.detach()
    likelihood = log(labels * p + (1 - labels) * (1 - p))
    if weights is None:
        return -likelihood.sum()
    weights = weights.detach()
    loss = -(weights * likelihood).sum()
    return loss + (loss * (len(weights) / weights.sum() - 1)).detach()''',
    "errors": '''\
def errors(z: Tensor, labels: Tensor) -> Tensor:
    """Return the number of samples whose largest output is not that of the labels."""
    return (first_largest(z) != first_largest(labels)).sum().to(z.dtype)''',
    "errors_of_top": '''\
def errors_of_top(z: Tensor, labels: Tensor, count: int) -> Tensor:
    """Return the number of samples whose label is not among the `count` largest outputs."""
    wanted = first_largest(labels)[..., None]
    score = z.gather(-1, wanted)
    earlier = torch.arange(z.shape[-1], device=z.device) < wanted
    rank = ((z > score) | ((z == score) & earlier)).sum(-1)
    return (rank >= count).sum().to(z.dtype)''',
    "class_based_loss": '''\
def class_based_loss(labels: Tensor, h: Tensor, weights: Tensor, score: Tensor) -> Tensor:
    """Return the cross entropy of words: of their class, and of the word among those of its class.

    A label is: word, class, first word of the class, word behind the last one of the class.
    """
    word, group, first, end = labels.long().unbind(-1)
    places = torch.arange(len(weights), device=h.device)
    inside = (places >= first[:, None]) & (places < end[:, None])
    scores = (h @ weights.T).masked_fill(~inside, -torch.inf)
    of_class = F.cross_entropy(score, group, reduction="sum")
    return of_class + F.cross_entropy(scores, word, reduction="sum")''',
    "ranks": '''\
def ranks(gain: Tensor, score: Tensor, query: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the number of each document's query, its place in it, and its place by score.

    The documents of a query follow each other. Of equal scores the smaller gain comes first.
    """
    begins = torch.ones_like(query, dtype=torch.bool)
    begins[1:] = query[1:] != query[:-1]
    number = begins.cumsum(0) - 1
    here = torch.arange(len(query), device=query.device)
    place = here - here[begins][number]
    order = gain.argsort(stable=True)
    order = order[score[order].argsort(descending=True, stable=True)]
    order = order[number[order].argsort(stable=True)]
    rank = torch.empty_like(here)
    rank[order] = here
    return number, place, rank - here[begins][number]''',
    "lambda_rank": '''\
class LambdaRank(torch.autograd.Function):
    """The loss of a ranking; its gradient is that of pairs of documents of a query."""

    @staticmethod
    def forward(ctx, gain: Tensor, score: Tensor, query: Tensor) -> Tensor:
        """Return how far the discounted gains are below the best possible ones."""
        ctx.save_for_backward(gain, score, query)
        number, place, rank = ranks(gain, score, query)
        zeros = gain.new_zeros(int(number.max()) + 1)
        ideal = zeros.index_add(0, number, gain / torch.log(2.0 + place))
        actual = zeros.index_add(0, number, gain / torch.log(2.0 + rank))
        ratio = torch.where(ideal == 0, 0.0, actual / torch.where(ideal == 0, 1.0, ideal))
        return (1 - ratio.mean()) * 100 * len(gain)

    @staticmethod
    def backward(ctx, _: Tensor) -> tuple[None, Tensor, None]:
        """Return how much the documents of each pair should move apart."""
        gain, score, query = ctx.saved_tensors
        number, place, rank = ranks(gain, score, query)
        zeros = gain.new_zeros(int(number.max()) + 1)
        ideal = zeros.index_add(0, number, gain / torch.log(2.0 + place))[number]
        least = zeros.fill_(torch.inf).scatter_reduce(0, number, gain, "amin")[number]
        discount = torch.log(2.0 + rank)
        pairs = (number[:, None] == number) & (place[:, None] < place)
        pairs &= (gain[:, None] != gain) & (gain > least)[:, None] & (ideal != 0)[:, None]
        weight = (gain[:, None] - gain) * (discount[:, None] - discount)
        weight = weight / (discount[:, None] * discount) / torch.where(ideal == 0, 1.0, ideal)[:, None]
        slope = -torch.sigmoid(score - score[:, None]) * weight.abs()
        slope = torch.where(pairs, slope, 0.0)
        return None, slope.sum(1) - slope.sum(0), None


lambda_rank = LambdaRank.apply''',
    "first_gain": '''\
def first_gain(gain: Tensor, score: Tensor, query: Tensor) -> Tensor:
    """Return the gain of the document with the best score relative to the best one of its query."""
    number, place, rank = ranks(gain, score, query)
    zeros = gain.new_zeros(int(number.max()) + 1)
    best = zeros.index_add(0, number, torch.where(place == 0, gain, 0.0))
    chosen = zeros.index_add(0, number, torch.where(rank == 0, gain, 0.0))
    ratio = torch.where(best == 0, 0.0, chosen / torch.where(best == 0, 1.0, best))
    return ratio.mean() * 100 * len(gain)''',
    "unpool": '''\
def unpool(x: Tensor, places: Tensor, size: tuple[int, ...]) -> Tensor:
    """Return values put back at the places of maxima, and zeros elsewhere."""
    zeros = x.new_zeros(*x.shape[:2], math.prod(size))
    return zeros.scatter_add(2, places.flatten(2), x.flatten(2)).unflatten(2, size)''',
    "pool_regions": '''\
def pool_regions(
    images: Tensor,
    regions: Tensor,
    grid: tuple[int, int],
    scale: float = 0.0,
    average: bool = False,
) -> Tensor:
    """Return the largest elements, or the means, of the cells of a grid over regions of images.

    A region is x, y, width and height relative to the image, or with `scale` two corners in pixels.
    """
    height, width = images.shape[-2:]

    def windows(axis: int, count: int, size: int) -> Tensor:
        first, second = regions[..., axis].detach(), regions[..., axis + 2].detach()
        factor = scale or size
        begin, end = ((v * factor).abs().add(0.5).floor() * v.sign() for v in (first, second))
        extent = (end - begin + 1 if scale else end).clamp(min=1)[..., None]
        cell = torch.arange(count, device=images.device)
        place = torch.arange(size, device=images.device)
        low = (begin[..., None] + (cell * extent / count).floor()).clamp(min=0)
        high = (begin[..., None] + ((cell + 1) * extent / count).ceil()).clamp(max=size)
        return (place >= low[..., None]) & (place < high[..., None])

    columns, rows = windows(0, grid[0], width), windows(1, grid[1], height)
    cells = rows[:, :, :, None, :, None] & columns[:, :, None, :, None, :]
    cells = cells[:, :, None].flatten(-2)
    seen = images[:, None, :, None, None].flatten(-2)
    filled = cells.any(-1)
    if average:
        return (seen * cells).sum(-1) / cells.sum(-1).clamp(min=1)
    largest = torch.where(cells, seen, -torch.inf).max(-1).values
    return torch.where(filled, largest, 0.0)''',
    "past_value": '''\
def past_value(x: Tensor, steps: int = 1, initial: float | Tensor = 0.0) -> Tensor:
    """Return the values `steps` earlier in the same sequence, `initial` before its start."""
    start = torch.as_tensor(initial, dtype=x.dtype, device=x.device)
    if start.ndim == x.ndim - 1 and start.shape[:1] == x.shape[:1]:
        start = start[:, None]
    start = start.expand(x.shape[0], steps, *x.shape[2:])
    return torch.cat([start, x], dim=1)[:, : x.shape[1]]''',
    "future_value": '''\
def future_value(x: Tensor, mask: Tensor, steps: int = 1, initial: float | Tensor = 0.0) -> Tensor:
    """Return the values `steps` later in the same sequence, `initial` behind its end."""
    after = torch.as_tensor(initial, dtype=x.dtype, device=x.device)
    if after.ndim == x.ndim - 1 and after.shape[:1] == x.shape[:1]:
        after = after[:, None]
    x = torch.where(mask.reshape(*mask.shape, *[1] * (x.ndim - 2)), x, after)
    return torch.cat([x, after.expand(x.shape[0], steps, *x.shape[2:])], dim=1)[:, steps:]''',
    "last_step": '''\
def last_step(x: Tensor, mask: Tensor) -> Tensor:
    """Return the value at the last step of each sequence."""
    return x[torch.arange(len(x), device=x.device), mask.sum(1) - 1]''',
    "kept_steps": '''\
def kept_steps(flags: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return the numbers of the steps that flags mark, and which of these there are."""
    flags = flags & mask
    index = (~flags).to(torch.uint8).argsort(dim=1, stable=True)
    kept = torch.arange(flags.shape[1], device=flags.device) < flags.sum(1, keepdim=True)
    longest = max(1, int(flags.sum(1).max()))
    return torch.where(kept, index, 0)[:, :longest], kept[:, :longest]''',
    "repeated_steps": '''\
def repeated_steps(mask: Tensor, factor: float) -> tuple[Tensor, Tensor]:
    """Return the numbers of steps so that there are `factor` times as many, and which there are."""
    lengths = torch.ceil(mask.sum(1, dtype=torch.float64) * factor * (1 - 1e-9))
    step = torch.arange(int(lengths.max()), device=mask.device)
    kept = step < lengths[:, None]
    return (step / factor * (1 + 1e-9)).long() * kept, kept''',
    "gather_steps": '''\
def gather_steps(x: Tensor, index: Tensor) -> Tensor:
    """Return the steps of x (batch, steps, ...) that have the numbers (batch, kept steps)."""
    return x[torch.arange(len(x), device=x.device)[:, None], index.long()]''',
    "scatter_steps": '''\
def scatter_steps(x: Tensor, index: Tensor, steps: int, kept: Tensor | None = None) -> Tensor:
    """Return zeros (batch, steps, ...) with the steps of x added at the numbers (batch, kept)."""
    if kept is not None:
        x = x * kept.reshape(*kept.shape, *[1] * (x.ndim - 2))
    zeros = x.new_zeros(x.shape[0], steps, *x.shape[2:])
    rows = torch.arange(len(x), device=x.device)[:, None].expand_as(index)
    return zeros.index_put((rows, index.long()), x, accumulate=True)''',
    "with_steps": '''\
def with_steps(x: Tensor, steps: int, padding: float = 0.0) -> Tensor:
    """Return a value with another number of steps: some are cut off, or padding is added."""
    missing = steps - x.shape[1]
    return F.pad(x, (*[0, 0] * (x.ndim - 2), 0, missing), value=padding) if missing else x''',
    "attention_weights": '''\
def attention_weights(weights: Tensor, keys: Tensor, query: Tensor, mask: Tensor) -> Tensor:
    """Return, for each step of the query, shares of the steps of the keys that sum to 1."""
    scores = torch.tanh(keys[:, None] + query[:, :, None]) @ weights
    return torch.softmax(scores.masked_fill(~mask[:, None], -torch.inf), dim=-1)[..., None]''',
    "additive_attention": '''\
def additive_attention(
    weights: Tensor, keys: Tensor, values: Tensor, query: Tensor, mask: Tensor
) -> Tensor:
    """Return means of the values of all steps, weighted by how well keys go with the query."""
    shares = attention_weights(weights, keys, query, mask)[..., 0]
    return shares @ values.masked_fill(~mask[..., None], 0.0)''',
    "dot_product_attention": '''\
def dot_product_attention(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """Return means of the values of all steps (batch, steps, heads, elements) by attention."""
    query, keys, values = (x.transpose(1, 2) for x in (query, keys, values))
    values = values.masked_fill(~mask[:, None, :, None], 0.0)
    attended = F.scaled_dot_product_attention(
        query, keys, values, attn_mask=mask[:, None, None], scale=1.0
    )
    return attended.transpose(1, 2)''',
    "reverse_steps": '''\
def reverse_steps(x: Tensor, mask: Tensor) -> Tensor:
    """Return each sequence with its steps in the reverse order, padding stays at the end."""
    step = torch.arange(x.shape[1], device=x.device)
    index = (mask.sum(1, keepdim=True) - 1 - step).clamp(min=0)
    return x[torch.arange(len(x), device=x.device)[:, None], index]''',
}


def with_needs(names: set[str]) -> list[str]:
    """Return helpers in the order of this file, with those that they call."""
    result, waiting = set[str](), list(names)
    while waiting:
        name = waiting.pop()
        if name not in result:
            result.add(name)
            waiting += NEEDS.get(name, ())
    return [name for name in HELPERS if name in result]
