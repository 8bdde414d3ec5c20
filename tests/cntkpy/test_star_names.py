"""Names that programs and libraries on top of CNTK 2 import besides the public ones (P27, P28, W9)."""

import importlib
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntkpy.compat.cntk as C
from cntkpy.compat.cntk.internal import _as_tuple, map_if_possible, sanitize, typemap, utils
from cntkpy.compat.cntk.layers.blocks import _get_initial_state_or_default, _initializer_for, _inject_name
from cntkpy.readers.errors import ArgumentError

STARS = {
    "layers": "Constant Parameter Record np placeholder SentinelValueForAutoSelectRandomSeed times splice LSTM Dense",
    "layers.blocks": "np Parameter Function placeholder LSTM glorot_uniform warnings",
    "layers.layers": "reduce_mean Dense SentinelValueForAutoSelectRandomSeed",
    "logging": "sys os ProgressPrinter TrainingSummaryProgressCallback",
    "train.training_session": "sys CheckpointConfig",
    "misc": "convert converter",
    "internal": "typemap sanitize_input sanitize_shape Record",
}


@pytest.mark.parametrize("module", STARS)
def test_a_star_gives_what_programs_use(module: str) -> None:
    found: dict[str, Any] = {}
    exec(f"from cntkpy.compat.cntk.{module} import *", found)
    assert set(STARS[module].split()) <= set(found)


@pytest.mark.parametrize("name", ["DataType_Float", "Dictionary", "ProgressWriter"])
def test_names_of_the_native_module(name: str) -> None:
    assert hasattr(C.cntk_py, name)


def test_helpers_of_the_internal_package() -> None:
    x = C.input_variable(2)
    assert _as_tuple(3) == (3,) and _as_tuple([1, 2]) == (1, 2) and C.typemap(len) is typemap(len) is len
    assert map_if_possible(x) is None
    assert sanitize.sanitize_input(x) is x and sanitize.sanitize_input([1.0, 2.0]).shape == (2,)
    assert sanitize.sanitize_shape(3) == (3,) and sanitize.sanitize_shape((3, 4)) == (3, 4)
    assert sanitize.sanitize_dtype_numpy("float") is np.float32 and sanitize.sanitize_dtype_cntk(np.float64) == 2
    assert sanitize.sanitize_axis(None) == C.Axis.all_static_axes() and sanitize.sanitize_2d_number(2) == (2, 2)
    assert sanitize.sanitize_permutation((-1, 0)) == [1, 0]
    assert sanitize.sanitize_batch(x, [[1, 2]]).shape == (1, 2)
    assert utils.get_data_type(x, np.zeros(2, np.float64)) is np.float64
    assert utils.get_python_function_arguments(lambda a, b, c=3: None) == (["a", "b"], {})
    assert utils.map_function_arguments(["p", "q"], {"p": "p", "q": "q"}, 1, q=2) == {"p": 1, "q": 2}
    for wrong in (lambda: sanitize.sanitize_shape("a"), lambda: sanitize.sanitize_permutation((0, 0))):
        with pytest.raises(ArgumentError):
            wrong()
    with pytest.raises(TypeError, match="takes 1 arguments, 2 were given"):
        utils.map_function_arguments(["p"], {"p": "p"}, 1, 2)


def test_helpers_of_layers() -> None:
    x = C.input_variable(2)
    z = _inject_name(x + 1, "sum")
    assert z.name == "sum" and _inject_name(z, "other").name == "other" and _inject_name(z, "") is z
    assert _inject_name(C.layers.Dense(2), "dense")(x).name == "dense"
    assert _initializer_for(C.glorot_uniform(), {"output_rank": 2}).output_rank == 2 and _initializer_for(3.0) == 3.0
    assert _get_initial_state_or_default(None).value == 0 and _get_initial_state_or_default(2.0).value == 2
    assert _get_initial_state_or_default(x) is x


def test_a_callback_of_epochs() -> None:
    x, seen = C.input_variable(2), []
    loss = C.reduce_sum(C.layers.Dense(1)(x))
    callback = C.logging.TrainingSummaryProgressCallback(4, lambda *given: seen.append(given))
    learner = C.sgd(loss.parameters, 0.0)
    loss.train((np.ones((4, 2), np.float32),), parameter_learners=[learner], callbacks=[callback], max_epochs=2)
    assert [(one[0], one[3]) for one in seen] == [(0, 4), (1, 4)]


def test_workers() -> None:
    w = C.parameter(1)
    learner = C.data_parallel_distributed_learner(C.sgd([w], 0.1))
    assert learner.communicator().rank() == 0 and isinstance(learner, C.train.distributed.DistributedLearner)
    assert C.train.distributed.WorkerDescriptor(1, "host").global_rank == 1
    loss, metric = C.reduce_sum(w), C.reduce_max(w)
    assert C.Trainer._get_loss_metric((loss, metric)) == (loss, metric)
    assert C.Trainer._get_loss_metric(loss) == (loss, None)


@pytest.mark.parametrize(
    ("module", "name"),
    [("learner", "sgd"), ("utils", "ProgressPrinter"), ("utils", "one_hot"), ("graph", "find_by_name"),
     ("persist", "load_model"), ("trainer", "Trainer")],
)  # fmt: skip
def test_modules_of_the_betas_warn(module: str, name: str) -> None:
    sys.modules.pop(f"cntkpy.compat.cntk.{module}", None)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        found = importlib.import_module(f"cntkpy.compat.cntk.{module}")
    assert hasattr(found, name)
    assert any("betas of CNTK 2.0" in str(one.message) for one in seen)


def test_text_format_of_the_betas(tmp_path: Path) -> None:
    """W15: `from cntk import text_format_minibatch_source`; the values of an epoch, and the alias in the file."""
    path = tmp_path / "d.ctf"
    path.write_text("|a 1 2 |y 1:1\n|a 3 4 |y 0:1\n")
    streams = [C.StreamConfiguration("x", 2, stream_alias="a"), C.StreamConfiguration("y", 2, is_sparse=True)]
    with pytest.warns(DeprecationWarning, match="betas of CNTK 2.0"):
        source = C.text_format_minibatch_source(str(path), streams, epoch_size=2, randomize=False)
    minibatch = source.next_minibatch(10)
    assert minibatch[source.streams.x].asarray().tolist() == [[[1, 2]], [[3, 4]]]
    assert minibatch[source.streams.y].asarray().tolist() == [[[0, 1]], [[1, 0]]]
    assert not source.next_minibatch(10)


def test_a_source_of_a_configuration(tmp_path) -> None:
    (tmp_path / "d.txt").write_text("|x 1 2\n|x 3 4\n")
    streams = C.io.StreamDefs(x=C.io.StreamDef(field="x", shape=2))
    config = C.cntk_py.MinibatchSourceConfig([C.io.CTFDeserializer(str(tmp_path / "d.txt"), streams)], False)
    assert config.max_samples == C.io.INFINITELY_REPEAT and config.randomization_window_in_chunks == 0
    config.max_sweeps = 1
    source = C.cntk_py.create_composite_minibatch_source(config)
    assert source.next_minibatch(10)[source.streams.x].num_samples == 2 and not source.next_minibatch(10)
