"""Images whose channels lie last.

In a network's arrays channels come first. Convolutions take and give them last, which is the order that XLA is fast
in; functions of single elements and windows do as well with one order as with the other. So values are passed on in
the order in which they are made, and turned where another node needs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from cntkpy.networks.arrays.lazy import Array, jnp

if TYPE_CHECKING:
    from typing_extensions import TypeIs


class ChannelsLast(NamedTuple):
    """The value (T, S, C, ...) of a node as (T, S, ..., C)."""

    array: Array

    def plain(self) -> Array:
        """With channels first."""
        return jnp.moveaxis(self.array, -1, 2)


class OneChannel(NamedTuple):
    """The value (T, S, 1, C, ...) of a node as (T, S, ..., C): images of one channel, made of ones with C channels.

    Local response normalisation takes such images, to slide a kernel along their C elements.
    """

    array: Array

    def plain(self) -> Array:
        """With the one channel first."""
        return jnp.moveaxis(self.array, -1, 2)[:, :, None]


Turned: TypeAlias = "ChannelsLast | OneChannel"


def is_turned(value: object) -> TypeIs[Turned]:
    """Return whether the axes of a value are in another order than those of the node."""
    return isinstance(value, (ChannelsLast, OneChannel))


def is_image(value: object) -> TypeIs[ChannelsLast]:
    """Return whether channels lie last."""
    return isinstance(value, ChannelsLast)


def plain(value: Array | Turned) -> Array:
    """Return a value with channels first."""
    return value.plain() if is_turned(value) else value


def as_given(value: Array | ChannelsLast) -> Array:
    """Return the array of a value, in its order."""
    return value.array if is_image(value) else value


def images_of(value: Array | ChannelsLast, axes: tuple[int, ...]) -> Array:
    """Return the images (N, ..., C) in a value.

    Args:
        value: of a node; with T and S in front, or a single image.
        axes: (C, ...), sizes of the axes of an image.
    """
    if is_image(value):
        return value.array.reshape(-1, *axes[1:], axes[0])
    return jnp.moveaxis(value.reshape(-1, *axes), 1, -1)


def value_of(images: Array, like: Array | ChannelsLast, has_layout: bool) -> Array | ChannelsLast:
    """Images (N, ..., C) as the value of a node.

    Args:
        images: what the node computes.
        like: value of the operand, for T and S.
        has_layout: whether it has T and S; else there is one image.
    """
    if has_layout:
        return ChannelsLast(images.reshape(*as_given(like).shape[:2], *images.shape[1:]))
    return jnp.moveaxis(images[0], -1, 0)
