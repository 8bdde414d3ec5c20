"""Small functions that the written module has where PyTorch has no function of that meaning."""

from __future__ import annotations

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
}
