"""Small functions that the written module has where PyTorch has no function of that meaning."""

from __future__ import annotations

HELPERS: dict[str, str] = {
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
}
