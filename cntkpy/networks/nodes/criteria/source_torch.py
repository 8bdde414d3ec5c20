"""Small functions that the written module has where PyTorch has no function of that meaning."""

from __future__ import annotations

HELPERS: dict[str, str] = {
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
}
