"""Small functions that the written module has where PyTorch has no function of that meaning."""

from __future__ import annotations

HELPERS: dict[str, str] = {
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
    "reverse_steps": '''\
def reverse_steps(x: Tensor, mask: Tensor) -> Tensor:
    """Return each sequence with its steps in the reverse order, padding stays at the end."""
    step = torch.arange(x.shape[1], device=x.device)
    index = (mask.sum(1, keepdim=True) - 1 - step).clamp(min=0)
    return x[torch.arange(len(x), device=x.device)[:, None], index]''',
}
