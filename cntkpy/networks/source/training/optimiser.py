"""CNTK's update rules as an optimiser class of PyTorch that has what one training needs, and nothing else."""

from __future__ import annotations

import math
from dataclasses import dataclass

MOMENTUM, NESTEROV, ADAGRAD, RMSPROP, FSADAGRAD = "momentum", "nesterov", "adagrad", "rmsprop", "fsadagrad"


@dataclass(frozen=True)
class Rule:
    """An update rule and what comes before and after it.

    Args:
        kind: which rule.
        moving: whether there is momentum in any epoch.
        normalise: AdaGrad and its like divide the rate by the mean factor of the steps.
        rms: RMSProp's constants: how much of the mean square is kept; growth, decline, largest and smallest step.
        memory: FSAdaGrad's memory of the mean square, in samples.
        target: FSAdaGrad's size of a normalised gradient.
        clipping: bound of a gradient, per sample.
        by_element: whether elements are clipped; else the norm of the gradient of a parameter.
        l2: weight of L2 regularisation, per sample.
        l1: weight of L1 regularisation, per sample.
        scaled: whether parameters have rates of their own.
        unregularised: whether parameters are left out of the regularisation.
        by_row: whether tables are updated row by row.
        by_column: whether matrices are updated column by column.
    """

    kind: str = MOMENTUM
    moving: bool = True
    normalise: bool = True
    rms: tuple[float, float, float, float, float] = (0.99, 1.2, 0.75, 10.0, 0.1)
    memory: float = 720000.0
    target: float = 1.0
    clipping: float = math.inf
    by_element: bool = True
    l2: float = 0.0
    l1: float = 0.0
    scaled: bool = False
    unregularised: bool = False
    by_row: bool = False
    by_column: bool = False

    @property
    def has_rows(self) -> bool:
        """Return whether some parameters are updated row by row, or column by column."""
        return self.by_row or self.by_column

    @property
    def of_torch(self) -> bool:
        """Return whether `torch.optim.SGD` is this rule."""
        plain = self.kind in (MOMENTUM, NESTEROV) and not self.moving
        return plain and math.isinf(self.clipping) and not (self.l1 or self.l2 or self.scaled)

    @property
    def reads_momentum(self) -> bool:
        """Return whether momentum changes the steps."""
        return self.moving and self.kind in (MOMENTUM, NESTEROV, FSADAGRAD)

    @property
    def reads_samples(self) -> bool:
        """Return whether a step depends on the number of samples."""
        regularised = not math.isinf(self.clipping) or self.l1 or self.l2
        return bool(self.reads_momentum or regularised or self.kind == FSADAGRAD)

    @property
    def elementwise(self) -> bool:
        """Return whether an element of a parameter changes by its own gradient alone."""
        scales = self.kind in (ADAGRAD, RMSPROP) and self.normalise
        return not scales and (math.isinf(self.clipping) or self.by_element)


_NAMES = {MOMENTUM: "Sgd", NESTEROV: "Nesterov", ADAGRAD: "AdaGrad", RMSPROP: "RmsProp", FSADAGRAD: "FsAdaGrad"}

_DOCS = {
    MOMENTUM: "SGD whose velocity has the rate inside, with a momentum per sample, as CNTK has it.",
    NESTEROV: "Nesterov's momentum, per sample, with the rate inside of the velocity, as CNTK has it.",
    ADAGRAD: "AdaGrad as CNTK has it{mean}.",
    RMSPROP: "CNTK's RMSProp: steps grow while a gradient keeps its sign{mean}.",
    FSADAGRAD: "AdaGrad with a forgetting mean square, a bounded scale, then momentum, as CNTK has it.",
}

_ROWS = {
    MOMENTUM: [
        'smoothed = state.setdefault("smoothed", torch.zeros_like(weight))',
        "smoothed[rows] = torch.lerp(gradient[rows], smoothed[rows], momentum)",
        "weight[rows] -= rate * smoothed[rows]",
    ],
    NESTEROV: [
        'velocity = state.setdefault("velocity", torch.zeros_like(weight))',
        "step = (1 - momentum) * rate * gradient[rows]",
        "velocity[rows] = momentum * velocity[rows] + step",
        "weight[rows] -= momentum * velocity[rows] + step",
    ],
    ADAGRAD: [
        'squares = state.setdefault("squares", torch.zeros_like(weight))',
        "squares[rows] += gradient[rows] ** 2",
        "scale = (squares[rows] + 1e-16).rsqrt()",
        "weight[rows] -= {rate} * gradient[rows] * scale",
    ],
}
"""Statements that change the rows of a matrix that a minibatch touches; RMSProp and FSAdaGrad are AdaGrad there."""


def _rate(rule: Rule) -> str:
    return "rate / scale.mean()" if rule.normalise else "rate"


def optimiser(rule: Rule) -> str:
    """Return the text of the class; empty if `torch.optim.SGD` is this rule."""
    if rule.of_torch:
        return ""
    mean = ", divided by their mean" if rule.normalise else ""
    keys = {"rate": "0.0"}
    if rule.reads_momentum:
        keys["momentum"] = "0.0"
    if rule.scaled:
        keys["factor"] = "1.0"
    if rule.unregularised:
        keys["regularised"] = "True"
    if rule.by_row:
        keys["by_row"] = "False"
    if rule.by_column:
        keys["by_column"] = "False"
    defaults = ", ".join(f'"{key}": {value}' for key, value in keys.items())
    argument = ", samples: int" if rule.reads_samples else ""
    lines = [
        f"class {_NAMES[rule.kind]}(torch.optim.Optimizer):",
        f'    """{_DOCS[rule.kind].format(mean=mean)}"""',
        "",
        "    def __init__(self, parameters: Iterable[Tensor] | list[dict]) -> None:",
        f"        super().__init__(parameters, {{{defaults}}})",
        "",
        "    @torch.no_grad()",
        f"    def step(self{argument}) -> None:",
        '        """Take one step; gradients are sums over the samples of the minibatch."""',
        "        for group in self.param_groups:",
    ]
    rate = 'group["rate"] * group["factor"]' if rule.scaled else 'group["rate"]'
    lines.append(f"            rate = {rate}")
    if rule.reads_momentum:
        lines.append('            momentum = group["momentum"] ** samples')
    lines.append('            for weight in group["params"]:')
    lines += [f"                {line}" for line in _body(rule)]
    return "\n".join(lines)


def _body(rule: Rule) -> list[str]:
    """Return the statements for one parameter."""
    lines: list[str] = []
    if rule.has_rows:
        lines += _touched(rule)
    if not math.isinf(rule.clipping):
        lines.append(
            f"limit = {rule.clipping!r} * samples  # of an element"
            if rule.by_element
            else f"limit = {rule.clipping!r} * samples  # of the norm"
        )
        lines.append(
            "gradient = gradient.clamp(-limit, limit)"
            if rule.by_element
            else "gradient = gradient * (limit / gradient.norm().clamp(min=limit))"
        )
    if rule.l2:
        statement = f"gradient = gradient + {rule.l2!r} * samples * weight"
        lines += ['if group["regularised"]:', f"    {statement}"] if rule.unregularised else [statement]
    rule_lines = _RULES[rule.kind](rule)
    if rule.has_rows:
        kind = rule.kind if rule.kind in _ROWS else ADAGRAD
        rows = [line.format(rate=_rate(rule)) for line in _ROWS[kind]]
        if not rule.moving:
            rows = ["weight[rows] -= rate * gradient[rows]"] if kind in (MOMENTUM, NESTEROV) else rows
        lines += ["if rows is not None:", *(f"    {line}" for line in rows), "else:"]
        lines += [f"    {line}" for line in rule_lines]
    else:
        lines += rule_lines
    if rule.l1:
        statement = f"weight.copy_(F.softshrink(weight, rate * {rule.l1!r} * samples))"
        lines += ['if group["regularised"]:', f"    {statement}"] if rule.unregularised else [statement]
    with_state = any("state" in line for line in lines)
    return ["gradient, state = weight.grad, self.state[weight]" if with_state else "gradient = weight.grad", *lines]


def _touched(rule: Rule) -> list[str]:
    """Return the statements that find the rows which a minibatch touches."""
    lines: list[str] = []
    if rule.by_column:
        lines += ['if group["by_column"]:', "    weight, gradient = weight.T, gradient.T"]
    chosen = " or ".join(f'group["{name}"]' for name in ("by_row", "by_column") if getattr(rule, name))
    lines.append(f"rows = gradient.any(dim=1) if {chosen} else None  # those that inputs touch")
    return lines


def _momentum(rule: Rule) -> list[str]:
    if not rule.moving:
        return ["weight.sub_(gradient, alpha=rate)"]
    return [
        'velocity = state.setdefault("velocity", torch.zeros_like(weight))',
        "velocity.mul_(momentum).add_(gradient, alpha=(1 - momentum) * rate)",
        "weight.sub_(velocity)",
    ]


def _nesterov(rule: Rule) -> list[str]:
    if not rule.moving:
        return _momentum(rule)
    return [
        'velocity = state.setdefault("velocity", torch.zeros_like(weight))',
        "step = (1 - momentum) * rate * gradient",
        "velocity.mul_(momentum).add_(step)",
        "weight.sub_(momentum * velocity + step)",
    ]


def _adagrad(rule: Rule) -> list[str]:
    return [
        'squares = state.setdefault("squares", torch.zeros_like(weight))',
        "squares.add_(gradient**2)",
        "scale = (squares + 1e-16).rsqrt()",
        f"weight.sub_({_rate(rule)} * gradient * scale)",
    ]


def _rmsprop(rule: Rule) -> list[str]:
    kept, growth, decline, largest, smallest = rule.rms
    return [
        "square, sign = gradient**2, gradient.sign()",
        "if not state:",
        '    state["square"], state["sign"] = square.clone(), torch.zeros_like(sign)',
        '    state["step"] = torch.full_like(weight, 0.02)',
        f'state["square"].mul_({kept!r}).add_(square, alpha={round(1 - kept, 12)!r})',
        f'longer = (state["step"] * {growth!r}).clamp(max={largest!r})',
        f'shorter = (state["step"] * {decline!r}).clamp(min={smallest!r})',
        'step = torch.where(state["sign"] * sign > 0, longer, shorter)',
        'state["sign"], state["step"] = sign, step',
        'scale = step * (state["square"] + 1e-6).rsqrt()',
        f"weight.sub_({_rate(rule)} * gradient * scale)",
    ]


def _fsadagrad(rule: Rule) -> list[str]:
    start = ["if not state:", '    state["count"], state["square"] = 0.0, torch.zeros_like(weight)']
    if rule.moving:
        start.append('    state["smoothed"] = torch.zeros_like(weight)')
    lines = [
        *start,
        f"kept = math.exp(-samples / {rule.memory!r})",
        'state["count"] = kept * state["count"] + (1 - kept) * samples',
        "kept = torch.tensor(kept, dtype=weight.dtype)  # rounded, as CNTK has it",
        'state["square"] = kept * state["square"] + (1 - kept) * gradient**2',
        f'size = {"" if rule.target == 1 else f"{rule.target!r} * "}math.sqrt(state["count"])',
        'scale = (size * state["square"].rsqrt()).clamp(max=10.0)',
        'gradient = torch.where(state["square"] > 0, scale, 1.0) * gradient',
    ]
    if rule.moving:
        lines += [
            "if momentum > 0:",
            '    gradient = state["smoothed"].mul_(momentum).add_(gradient, alpha=1 - momentum)',
        ]
    return [*lines, "weight.sub_(gradient, alpha=rate)"]


_RULES = {MOMENTUM: _momentum, NESTEROV: _nesterov, ADAGRAD: _adagrad, RMSPROP: _rmsprop, FSADAGRAD: _fsadagrad}


def class_of(rule: Rule) -> str:
    """Return the name of the optimiser's class."""
    return "torch.optim.SGD" if rule.of_torch else _NAMES[rule.kind]
