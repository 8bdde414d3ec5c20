"""Losses that are made of other operators: noise contrastive estimation, F-measures, a softmax of two levels."""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Callable

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.builders.python.functions.blocks import mark_sparse_gradient
from cntkpy.networks.builders.python.functions.checks import check_flag, check_number, check_whole
from cntkpy.networks.builders.python.functions.deferring import needs_shapes
from cntkpy.networks.builders.python.functions.function import Function, as_node
from cntkpy.networks.builders.python.functions.leaves import GLOROT, UNKNOWN
from cntkpy.networks.builders.python.functions.variables import layer_parameter
from cntkpy.networks.builders.python.operations.composed import softplus
from cntkpy.networks.builders.python.operations.elements import one_hot
from cntkpy.networks.builders.python.operations.operators import (
    floor,
    log,
    negate,
    plus,
    random_sample,
    random_sample_inclusion_frequency,
    softmax,
    times,
    times_transpose,
)
from cntkpy.networks.builders.python.operations.reductions import reduce_sum
from cntkpy.networks.builders.python.operations.reshaping import Operand, number, reshape


def nce_loss(
    weights: Operand,
    biases: Operand,
    inputs: Operand,
    labels: Operand,
    noise_distribution: Operand,
    num_samples: int = 32,
    allow_duplicates: bool = True,
    seed: int | None = None,
    name: str = "",
) -> Function:
    """Noise contrastive estimation (C. Dyer, "Notes on noise contrastive estimation and negative sampling", 2014).

    Classes are drawn for every minibatch, the same for all its samples. Of the label and of each of them, a logistic
    regression tells whether it is the label or noise: with the logit s of a class, and how often it is expected among
    those that are drawn, e, the probability of a label is sigmoid (s - ln e).

    Args:
        weights: a parameter (classes, elements of an input).
        biases: a parameter (classes, 1).
        inputs: a vector; the logits of classes are weights * inputs + biases.
        labels: one-hot vectors.
        noise_distribution: how often each class is drawn: positive numbers, whatever their sum.
        num_samples: how many classes are drawn.
        allow_duplicates: a class may be drawn twice.
        seed: see `random_sample`.
        name: names the result.

    Returns:
        A number for each sample.

    Raises:
        UserError: weights, biases, labels and noise are not of as many classes as each other.
    """
    w = as_node(weights)
    check_whole("nce_loss: num_samples", num_samples, 1)
    check_flag("nce_loss: allow_duplicates", allow_duplicates)
    draws = num_samples, allow_duplicates, seed
    held = (lambda: w) if UNKNOWN in w.shape else w  # its shape follows from that of the inputs, and waits for nothing
    return _nce_loss(held, biases, inputs, labels, noise_distribution, draws, name=name)


@needs_shapes
def _nce_loss(
    weights: Function | Callable[[], Function],
    biases: Operand,
    inputs: Operand,
    labels: Operand,
    noise: Operand,
    draws: tuple[int, bool, int | None],
    name: str,
) -> Function:
    b, x, y, q = map(as_node, (biases, inputs, labels, noise))
    w = weights if isinstance(weights, Function) else weights()
    if UNKNOWN in w.shape:
        _ = times_transpose(x, w).shape  # the parameter gets its shape
    sizes = {"biases": b, "labels": y, "noise_distribution": q}
    for label, size in ((label, math.prod(operand.shape)) for label, operand in sizes.items()):
        if size != w.shape[0]:
            raise UserError("BadShape", f"nce_loss: the weights are of {w.shape[0]} classes, {label} of {size}")
    drawn = random_sample(q, *draws)
    expected = reshape(random_sample_inclusion_frequency(q, *draws), (-1, 1))
    for parameter in (w, b):
        if parameter.is_parameter:
            mark_sparse_gradient(parameter.root)  # zero but for the classes of labels and of those that are drawn
    shift = reshape(b, (-1, 1)) - log(expected)
    of_label = reduce_sum(times(y, w) * x) + times(y, shift)
    of_noise = times_transpose(x, times(drawn, w)) + reshape(times(drawn, shift), (-1,))
    return number(plus(softplus(negate(of_label)), reduce_sum(softplus(of_noise))), name)


@needs_shapes
def fmeasure(output: Operand, target: Operand, beta: float = 1) -> Function:
    """1 - F, where F is the weighted harmonic mean of precision and recall (C. J. van Rijsbergen, 1979).

    Sums of products stand for counts: of o and t, F = (1 + beta^2) sum o t / (beta^2 sum t + sum o).

    Args:
        output: probabilities.
        target: 0 or 1, of the shape of `output`.
        beta: how many times more recall counts than precision.

    Returns:
        A number for each sample, with axes of one element; of three axes (classes, rows, columns) one for each class.

    Raises:
        UserError: output and target have different numbers of axes.
    """
    o, t = as_node(output), as_node(target)
    weight = check_number("fmeasure: beta", beta, 0.0) ** 2
    if len(o.shape) != len(t.shape):
        message = f"fmeasure: the output has the shape {o.shape}, the target {t.shape}"
        raise UserError("BadShape", message, hint="both need as many axes as each other: reshape one of them")
    axes = (1, 2) if len(o.shape) == 3 else None
    right, predicted, wanted = (reduce_sum(value, axes) for value in (o * t, o, t))
    return 1.0 - (1.0 + weight) * right / (weight * wanted + predicted)


def hierarchical_softmax_layer(
    input_var: Operand, label_index: Operand, label_dim: int, label_classes: int | None = None
) -> tuple[Function, Function, list[Function]]:
    """Return a softmax of two levels: that of the classes of labels, and in each class one of its labels (J. Goodman,
    2001).

    Label i is number i mod n of class i // n, where n = label_dim / label_classes, rounded up.

    Args:
        input_var: a vector.
        label_index: the number of the label, from 0 on.
        label_dim: how many labels there are.
        label_classes: how many classes; None: the root of `label_dim`, rounded up.

    Returns:
        The probability of the label (1,), those of the classes (label_classes,), and for each class those of its labels
        (n,). The parameters are called hsoftmax_w1, hsoftmax_b1, hsoftmax_w2s and hsoftmax_b2s.
    """
    labels = check_whole("hierarchical_softmax_layer: label_dim", label_dim, 1)
    classes = math.ceil(math.sqrt(labels)) if label_classes is None else label_classes
    check_whole("hierarchical_softmax_layer: label_classes", classes, 1)
    size = math.ceil(labels / classes)
    x, index = as_node(input_var), as_node(label_index)
    shapes = {"w1": (0, classes), "w2s": (0, classes, size)}
    w1, w2 = (layer_parameter(shape, GLOROT, f"hsoftmax_{name}") for name, shape in shapes.items())
    b1, b2 = (layer_parameter(shape[1:], 0.0, f"hsoftmax_b{name[1:]}") for name, shape in shapes.items())
    of_classes = softmax(times(x, w1) + b1)
    in_classes = softmax(times(x, w2, output_rank=2) + b2, -1)
    joint = in_classes * reshape(of_classes, (classes, 1))
    of_index = floor((index + 0.5) / size)
    chosen = one_hot(reshape(of_index, ()), classes), one_hot(reshape(index - of_index * size, ()), size)
    places = reshape(chosen[0], (classes, 1)) * reshape(chosen[1], (1, size))
    label = reshape(reduce_sum(joint * places), (1,))
    return label, of_classes, [reshape(joint[number], (size,)) for number in range(classes)]


__all__ = ["fmeasure", "hierarchical_softmax_layer", "nce_loss"]
