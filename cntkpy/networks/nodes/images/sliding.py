"""Kernels slid over images with channels last, all channels together or in groups."""

from __future__ import annotations

import itertools
from typing import Any

from cntkpy.cntk_config.base.lazy_modules import np
from cntkpy.networks.arrays.lazy import Array, jnp
from cntkpy.networks.nodes.images import few_channels
from cntkpy.networks.nodes.images.channels_last import (
    by_groups,
    channels_last,
    each_channel,
    few_terms,
    has_few_terms,
)
from cntkpy.networks.nodes.images.geometry import Geometry
from cntkpy.networks.nodes.images.windows import Window, moved

SEVERAL = 32
"""Up to so many groups of several channels are convolutions of their own: XLA's code for CPUs does them six times as
fast as one convolution with groups, and compiles each of them in 0.05 seconds."""

LONGEST_BAND = 512
"""Elements of an axis up to which a kernel along it is a product with a matrix."""


def convolve(images: Array, kernel: Array, geometry: Geometry, groups: int = 1) -> Array:
    """Return the convolution of images (N, ..., C) with kernels (M, C / groups, ...): (N, ..., M).

    Args:
        images: with channels last.
        kernel: with channels second.
        geometry: of the axes between N and C.
        groups: each group of kernels sees one group of channels.
    """
    kernel = jnp.moveaxis(kernel, (0, 1), (-1, -2))
    axis = _only_axis(geometry) if kernel.shape[-2:] == (1, 1) else None
    if axis is not None:
        return _along(images, kernel.reshape(-1), geometry, axis)
    window = Window(geometry.stride, geometry.padding, (1,) * len(geometry.stride), geometry.dilation)
    if 1 < groups == images.shape[-1] == kernel.shape[-1]:
        return each_channel(window)(images, kernel[..., 0, :])
    if (kernel.shape[-2] == 1 < groups) or groups > SEVERAL:
        return _by_elements(images, kernel, window, groups)
    if has_few_terms(kernel, groups) and not (groups == 1 and few_channels.beats_sums(images, kernel, window)):
        return few_terms(window, groups)(images, kernel)
    if groups == 1:
        return channels_last(window)(images, kernel)
    return by_groups(images, kernel, window, groups)


def _only_axis(geometry: Geometry) -> int | None:
    """Return the axis along which a kernel lies that moves along no other; None: there is none, or it is too long."""
    moved = zip(geometry.kernel, geometry.stride, geometry.padding, strict=True)
    axes = [axis for axis, how in enumerate(moved) if how != (1, 1, (0, 0))]
    if len(axes) != 1 or max(geometry.inputs[axes[0]], geometry.outputs[axes[0]]) > LONGEST_BAND:
        return None
    return axes[0]


def _along(images: Array, kernel: Array, geometry: Geometry, axis: int) -> Array:
    """Images (N, ..., 1) of one channel with one kernel along an axis, as a product with a matrix that is a band.

    This is how BrainScript writes local response normalisation, with the channels of the image as this axis. XLA's
    convolution takes thirty times as long for it.
    """
    last = jnp.moveaxis(images[..., 0], axis + 1, -1)
    result = jnp.matmul(last, _band(kernel, geometry, axis), precision="highest")
    return jnp.moveaxis(result, -1, axis + 1)[..., None]


def _band(kernel: Array, geometry: Geometry, axis: int) -> Array:
    """Return the matrix (elements of the axis, windows) by which a product slides a kernel."""
    first = np.arange(geometry.outputs[axis]) * geometry.stride[axis] - geometry.padding[axis][0]
    element, between = np.divmod(np.arange(geometry.inputs[axis]) - first[:, None], geometry.dilation[axis])
    element[(element < 0) | (element >= len(kernel)) | (between > 0)] = len(kernel)
    return jnp.append(kernel, jnp.zeros((), kernel.dtype))[element].T


def band_of(kernel: Array, geometry: Geometry) -> Array | None:
    """Return the matrix by which a product slides one kernel along the second axis of images (1, C, ...).

    Args:
        kernel: (1, 1, ...).
        geometry: of the images, with the one channel.

    Returns:
        (C, windows); None: the kernel slides along another axis, too, or the axis is too long.
    """
    inner = geometry.without_first()
    return _band(kernel.reshape(-1), inner, 0) if _only_axis(inner) == 0 else None


def _by_elements(images: Array, kernel: Array, window: Window, groups: int) -> Array:
    """For each element of the kernel (..., C / groups, M) the image moved by its place, weighted and added."""
    channels, maps = kernel.shape[-2], kernel.shape[-1] // groups
    total: Any = jnp.zeros((), images.dtype)
    taps = kernel.shape[:-2]
    cells = itertools.product(*map(range, taps))
    for cell, image in zip(cells, moved(images, taps, window), strict=True):
        weight = kernel[cell].reshape(channels, groups, maps)
        part = image.reshape(*image.shape[:-1], groups, channels)
        total = total + jnp.einsum("...gc,cgm->...gm", part, weight, precision="highest")
    return total.reshape(*total.shape[:-2], groups * maps)
