"""Minibatches as tensors of TensorFlow and as a `tf.data.Dataset`; skipped where TensorFlow is not installed."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.extras import command_for
from cntkpy.readers.data_api.frameworks import ALIGNED, to_tensorflow

from .small_source import source, write_files

INSTALLED = importlib.util.find_spec("tensorflow") is not None
PAGE = Path(__file__).parents[3] / "docs/python-data-api.md"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)


@pytest.mark.skipif(INSTALLED, reason="TensorFlow is installed")
def test_without_tensorflow_the_message_names_it() -> None:
    for ask in (lambda: source().tensorflow_dataset(16), lambda: next(source().arrays(16, "tensorflow"))):
        with pytest.raises(UserError, match="tensorflow is not installed") as caught:
            ask()
        assert caught.value.hint == command_for(["tensorflow"])


needs_tensorflow = pytest.mark.skipif(not INSTALLED, reason="TensorFlow is not installed")


@pytest.fixture
def tf() -> Any:
    return importlib.import_module("tensorflow")


@needs_tensorflow
@pytest.mark.parametrize("file", ["samples.ctf", "sequences.ctf"])
def test_the_same_as_numpy(tf: Any, file: str) -> None:
    for order in (False, True):
        given = {"randomize": order}
        expected = list(source(file, **given).arrays(16))
        for found in (
            list(source(file, **given).tensorflow_dataset(16)),
            list(source(file, **given).arrays(16, "tensorflow")),
        ):
            assert len(found) == len(expected)
            for one, other in zip(found, expected, strict=True):
                assert set(one) == set(other)
                for name, value in other.items():
                    sparse = scipy.sparse.issparse(value)
                    tensor = tf.sparse.to_dense(one[name]) if sparse else one[name]
                    assert np.array_equal(tensor.numpy(), value.toarray() if sparse else value)
                    assert tensor.dtype.as_numpy_dtype == value.dtype


@needs_tensorflow
def test_an_iteration_begins_where_the_source_is(tf: Any) -> None:
    one = source(max_sweeps=2)
    next(one.arrays(10))
    found = one.tensorflow_dataset(10)
    assert next(iter(found))["x"][:, 0].numpy().tolist() == list(range(10, 20))
    parts = [
        [
            row
            for m in source().tensorflow_dataset(10, num_data_partitions=2, partition_index=i)
            for row in m["x"][:, 0].numpy()
        ]
        for i in range(2)
    ]
    assert sorted(parts[0] + parts[1]) == list(range(50))


@needs_tensorflow
def test_what_begins_at_a_multiple_of_64_bytes_is_shared(tf: Any) -> None:
    """Others are copied: operations on them would end the process."""
    memory = np.zeros(64 * 64 + ALIGNED, np.float32)
    first = -memory.ctypes.data % ALIGNED // 4
    for offset in range(ALIGNED // 4):
        array = memory[first + offset :][: 64 * 63].reshape(63, 64)
        array[:] = 1
        tensor = to_tensorflow(array)
        array[0, 0] = 5
        assert (float(tensor[0, 0]) == 5) == (offset == 0)
        assert float(tf.reduce_sum(tf.nn.relu(tensor) + tensor)) == 2 * (63 * 64 + 4 * (offset == 0))
    frozen = np.ones((4, 16), np.float32)
    frozen.flags.writeable = False
    assert to_tensorflow(frozen).numpy().tolist() == frozen.tolist()
    assert to_tensorflow(np.zeros((0, 3), np.float32)).shape == (0, 3)


@needs_tensorflow
def test_the_program_of_the_page(tf: Any) -> None:
    (program,) = re.findall(r"```py\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(program, names)
    assert names["minibatch"]["x"].shape == (1, 2)


@needs_tensorflow
def test_a_training_by_keras(tf: Any) -> None:
    made = source(max_sweeps=2, randomize=True)
    pairs = made.tensorflow_dataset(10).map(lambda m: (m["x"], tf.sparse.to_dense(m["y"])))
    model = tf.keras.Sequential([tf.keras.layers.Dense(4)])
    model.compile(optimizer="sgd", loss="mse")
    assert len(model.fit(pairs, verbose=0, shuffle=False, steps_per_epoch=10).history["loss"]) == 1
