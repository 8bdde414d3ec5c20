"""A source as a `tf.data.Dataset` of TensorFlow, which is imported when one is made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cntkpy.cntk_config.base.extras import command_for

from .arrays import LENGTHS, PlainSource, arrays_of
from .frameworks import framework_module


def tensorflow_dataset(source: PlainSource, minibatch_size: int, partitions: int, partition: int) -> Any:
    """Return the minibatches of a source from its position on; see `MinibatchSource.tensorflow_dataset`."""
    tf = framework_module("tensorflow", command_for(["tensorflow"]))
    infos = source.stream_infos()
    types = {
        info.name: tf.SparseTensorSpec((None, info.dim), info.dtype)
        if info.sparse
        else tf.TensorSpec((None, *info.sample_shape), info.dtype)
        for info in infos
    }
    if not source.has_single_samples:
        types |= {info.name + LENGTHS: tf.TensorSpec((None,), tf.int64) for info in infos}

    def minibatches() -> Iterator[dict[str, Any]]:
        return arrays_of(source, minibatch_size, "tensorflow", partitions, partition)

    return tf.data.Dataset.from_generator(minibatches, output_signature=types)
