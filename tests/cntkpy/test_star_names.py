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

TABLE = Path(__file__).with_name("star_names.txt").read_text(encoding="utf-8")
STARS = {part.partition("]")[0]: part.partition("]")[2].split() for part in TABLE.split("[")[1:]}
"""By module, the names of the table."""


@pytest.mark.parametrize("module", STARS)
def test_a_star_gives_what_programs_use(module: str) -> None:
    path = f"cntkpy.compat.{module}"
    star: dict[str, Any] = {}
    exec(f"from {path} import *", star)
    names = vars(importlib.import_module(path))
    assert [name for name in STARS[module] if name not in (names if name.startswith("_") else star)] == []


def test_a_star_gives_the_same_objects() -> None:
    """What a module has imported in CNTK is what it is elsewhere."""
    star: dict[str, Any] = {}
    exec("from cntkpy.compat.cntk.layers.layers import *", star)
    assert star["np"] is np and star["Parameter"] is C.Parameter and star["times"] is C.times
    assert star["sequence"] is C.ops.sequence and C.layers.sequence is not C.ops.sequence
    assert C.layers.blocks.cntk is C and C.learners.C is C


def test_the_native_module_has_operators() -> None:
    native = C.cntk_py
    assert native.plus is C.plus and native.sequence_first is C.sequence.first
    assert native.cross_entropy_with_softmax is C.cross_entropy_with_softmax
    with pytest.raises(AttributeError, match=r"cntk\.cntk_py\.nothing"):
        native.nothing  # noqa: B018


def test_learners_of_the_native_module() -> None:
    native, steps = C.cntk_py, {}
    options = native.AdditionalLearningOptions(l2_regularization_weight=0.5)
    for name, make in {
        "sgd": lambda p: native.sgd_learner(p, C.learning_parameter_schedule_per_sample(0.5), options),
        "momentum": lambda p: native.momentum_sgd_learner(p, C.learning_parameter_schedule_per_sample(0.5), 0.5, True),
        "nesterov": lambda p: native.nesterov_learner(p, C.learning_parameter_schedule_per_sample(0.5), 0.5, False),
    }.items():
        parameter = C.parameter((), init=2.0)
        make([parameter]).update({parameter: np.float32(1)}, 1)
        steps[name] = float(parameter.value)
    assert steps == pytest.approx({"sgd": 2 - 0.5 * (1 + 0.5 * 2), "momentum": 1.75, "nesterov": 2 - 0.5 * 1.5})


def test_shapes_of_the_native_module() -> None:
    shape = C.cntk_py.NDShape((2, -1, 3))
    assert shape.dimensions() == shape == (2, -1, 3) and shape.rank() == 3 and shape.has_inferred_dimension()
    assert C.cntk_py.NDShape([2, 3]).total_size() == 6 and not shape.has_free_dimension()
    assert shape.sub_shape(1) == (-1, 3) and shape.append_shape((4,)) == (2, -1, 3, 4)
    assert C.input_variable(C.cntk_py.NDShape((2, 3))).shape == (2, 3)


def test_a_trainer_of_the_native_module() -> None:
    x = C.input_variable(2)
    loss = C.reduce_sum(C.layers.Dense(1)(x))
    trainer = C.cntk_py.create_trainer(None, loss, None, [C.sgd(loss.parameters, 0.1)])
    trainer.train_minibatch({x: [[1, 2]]})
    assert trainer.previous_minibatch_sample_count == 1


def test_helpers_of_the_internal_package() -> None:
    x = C.input_variable(2)
    assert _as_tuple(3) == (3,) and _as_tuple([1, 2]) == (1, 2) and C.typemap(len) is typemap(len) is len
    assert map_if_possible(x) is None
    assert sanitize.sanitize_input(x) is x and sanitize.sanitize_input([1.0, 2.0]).shape == (2,)
    assert sanitize.sanitize_shape(3) == (3,) and sanitize.sanitize_shape((3, 4)) == (3, 4)
    assert sanitize.sanitize_dtype_numpy("float") is np.float32 and sanitize.sanitize_dtype_cntk(np.float64) == 2
    assert sanitize.sanitize_dtype_numpy(int) is np.float32 and sanitize.sanitize_dtype_numpy(float) is np.float64
    assert sanitize.sanitize_dtype_cntk(C.cntk_py.DataType_Float) == C.cntk_py.DataType_Float
    assert [sanitize.sanitize_precision(p) for p in ("float", C.cntk_py.DataType_Double)] == [np.float32, np.float64]
    with pytest.raises((ValueError, TypeError)):
        sanitize.sanitize_precision("x")
    assert sanitize.sanitize_axis(None) == C.Axis.all_static_axes() and sanitize.sanitize_2d_number(2) == (2, 2)
    assert sanitize.sanitize_permutation((-1, 0)) == [1, 0]
    assert sanitize.sanitize_batch(x, [[1, 2]]).shape == (1, 1, 2)  # a list has an axis of steps
    assert utils.get_data_type(x, np.zeros(2, np.float64)) is np.float32  # variables decide
    assert utils.get_data_type(C.placeholder(), np.zeros(2, np.float64)) is np.float64
    assert utils.get_data_type(np.zeros(2, np.float32), np.zeros(2, np.float64)) is np.float64
    assert utils.get_data_type(C.placeholder(), C.placeholder()) is None
    assert utils.get_python_function_arguments(lambda a, b, c=3: None) == (["a", "b"], {})
    assert utils.map_function_arguments(["p", "q"], {"p": "p", "q": "q"}, 1, q=2) == {"p": 1, "q": 2}
    assert sanitize.sanitize_range(-2, 0, 5) == (3, 5) and sanitize.sanitize_range(1, -1, 5) == (1, 4)
    assert sanitize.sanitize_pooling_args(2, (1, 2), True) == ((2,), (1, 2), [True])
    assert utils.value_to_seq(C.Value([np.ones((2, 1)), np.ones((3, 1))]))[1].shape == (3, 1)
    assert utils._py_dict_to_cntk_dict({"a": {"b": [1]}}) == {"a": {"b": [1]}}
    double = x * 2
    values, slopes = utils.eval(double, {x: [[1, 2]]}, "float", C.cpu(), False, None)
    assert values[double.output].tolist() == [[2, 4]] and slopes is None
    assert utils.eval(double, {x: [[1, 2]]}, None, None, True, {x: 0})[1][x].tolist() == [[2, 2]]
    words = C.sequence.input_variable(1, needs_gradient=True)
    steps = utils.eval(words * 3, {words: [[[1], [2]], [[3]]]}, backward_pass=True)[1][words]
    assert [array.tolist() for array in steps] == [[[3], [3]], [[3]]]
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
    here = C.Communicator.current_worker()
    assert here.global_rank == 0 and C.train.distributed.mpi_communicator().workers() == [here]
    assert C.debugging.set_computation_network_track_gap_nans is C.cntk_py.set_computation_network_track_gap_nans
    loss, metric = C.reduce_sum(w), C.reduce_max(w)
    assert C.Trainer._get_loss_metric((loss, metric)) == (loss, metric)
    assert C.Trainer._get_loss_metric(loss) == (loss, None)


BETAS = [
    ("learner", "sgd"), ("utils", "ProgressPrinter"), ("utils", "one_hot"), ("utils", "get_train_eval_criterion"),
    ("graph", "find_by_name"), ("persist", "load_model"), ("trainer", "Trainer"), ("blocks", "Placeholder"),
    ("blocks", "LSTM"), ("models", "Sequential"), ("minibatch_source", "MinibatchSource"), ("typing", "Tensor"),
    ("ops.variables", "Parameter"), ("utils.progress_print", "ProgressPrinter"), ("debug", "debug_model"),
    ("profiler", "start_profiler"),
]  # fmt: skip


@pytest.mark.parametrize(("module", "name"), BETAS)
def test_modules_of_the_betas_warn_once(module: str, name: str) -> None:
    for loaded in (module, module.partition(".")[0]):
        if loaded != "ops":
            sys.modules.pop(f"cntkpy.compat.cntk.{loaded}", None)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        names = [vars(importlib.import_module(f"cntkpy.compat.cntk.{module}")) for _ in range(2)]
    assert name in names[0] and names[0] is names[1]
    messages = [str(warning.message) for warning in seen if "betas of CNTK 2.0" in str(warning.message)]
    assert len(messages) == len(set(messages)) and any(f"cntk.{module} " in message for message in messages)


def test_modules_of_the_betas_are_attributes() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert C.blocks.Input is C.input_variable and C.learner.sgd is C.sgd
        importlib.import_module("cntkpy.compat.cntk.training_session")
    assert callable(C.training_session)  # the function, which hides the module
    with pytest.raises(ModuleNotFoundError, match=r"cntk\.nothing"):
        importlib.import_module("cntkpy.compat.cntk.nothing")


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
