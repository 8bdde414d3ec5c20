"""The mean picture of a data set, for the transform Mean."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from cntkpy.cntk_config.parameters import ConfigParameters
from cntkpy.readers.common.corpus import Corpus
from cntkpy.readers.common.threads import threads_for
from cntkpy.readers.formats.composite.parameters import CompositeParameters
from cntkpy.readers.parameters import DeserializerParameters, ReaderParameters
from cntkpy.readers.registry import Setting

from .decode import PictureError
from .deserializer import Pictures
from .options import ImageReaderParameters, create_base64_images, create_images, old_pictures

IMAGES_PER_BLOCK = 32
MAKERS = {"imagedeserializer": create_images, "base64imagedeserializer": create_base64_images}


def pictures_before_mean(section: ConfigParameters, precision: str = "float") -> tuple[Pictures, int]:
    """Return the pictures of a reader section as they reach Mean (or Transpose, if there is none), and its
    maxErrors.
    """
    if ReaderParameters.deserializers.find(section):
        p = CompositeParameters(section)
        for deserializer in p.deserializers:
            make = MAKERS.get(DeserializerParameters(deserializer).type.lower())
            if make is not None:
                setting = Setting(precision, corpus=Corpus(p.numeric_keys, p.hash_keys))
                return make(deserializer, setting, until_mean=True), p.max_errors
    elif ReaderParameters.reader_type.read(section).lower() == "imagereader":
        old = ImageReaderParameters(section)
        return old_pictures(old, precision, until_mean=True), old.max_errors
    raise section.error(
        "deserializers", "no pictures are read here", "name a reader section with an ImageDeserializer", "NoPictures"
    )


def mean_picture(
    pictures: Pictures, *, max_errors: int = 0, threads: int | None = None, progress: Callable[[int], Any] | None = None
) -> np.ndarray:
    """Return the mean of all samples, float32 (height, width, channels), summed in double precision.

    max_errors: pictures that cannot be read to leave out; progress: called with the number of pictures done. Raises
    DataError if pictures differ in size.
    """
    total, count, failed = np.zeros(pictures.shape), 0, 0
    for part, good, errors in _sums(pictures, threads or threads_for(True)):
        total += part
        count += good
        failed += len(errors)
        if failed > max_errors:
            raise errors[-1]
        if progress is not None:
            progress(count + failed)
    return (total / max(count, 1)).astype(np.float32)


def _sums(pictures: Pictures, threads: int) -> Iterator[tuple[np.ndarray, int, list[PictureError]]]:
    """Sums of blocks of pictures, in order; a few blocks are under way at the same time."""
    waiting: deque[Future[tuple[np.ndarray, int, list[PictureError]]]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for begin in range(0, pictures.table.num_sequences, IMAGES_PER_BLOCK):
                waiting.append(pool.submit(_sum, pictures, begin))
                if len(waiting) > 2 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def _sum(pictures: Pictures, begin: int) -> tuple[np.ndarray, int, list[PictureError]]:
    total, sample = np.zeros(pictures.shape), np.empty(pictures.shape, pictures.dtype)
    count = 0
    errors: list[PictureError] = []
    for sequence in range(begin, min(begin + IMAGES_PER_BLOCK, pictures.table.num_sequences)):
        try:
            pictures.sample(sequence, 0, sequence, sample)
        except PictureError as error:
            errors.append(error)
            continue
        total += sample
        count += 1
    return total, count, errors
