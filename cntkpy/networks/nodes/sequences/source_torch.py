"""Small functions that the written module has where PyTorch has no function of that meaning."""

from __future__ import annotations

HELPERS: dict[str, str] = {
    "last_step": '''\
def last_step(x: Tensor, mask: Tensor) -> Tensor:
    """Return the value at the last step of each sequence."""
    return x[torch.arange(len(x), device=x.device), mask.sum(1) - 1]''',
    "last_steps": '''\
def last_steps(x: Tensor, mask: Tensor, count: int, initial: float = 0.0) -> Tensor:
    """Return the last steps of each sequence (batch, count, ...), the last one first.

    Before the start of a sequence stands `initial`.
    """
    step = mask.sum(1, keepdim=True) - 1 - torch.arange(count, device=x.device)
    values = x[torch.arange(len(x), device=x.device)[:, None], step.clamp(min=0)]
    inside = (step >= 0).reshape(*step.shape, *[1] * (x.ndim - 2))
    return torch.where(inside, values, initial)''',
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
}
