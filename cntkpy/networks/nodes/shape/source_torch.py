"""Small functions that the written module has where PyTorch has no function of that meaning."""

from __future__ import annotations

HELPERS: dict[str, str] = {
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
}
