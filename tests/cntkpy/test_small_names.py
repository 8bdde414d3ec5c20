"""Names of CNTK 2's package that are small: options, devices, schedules, the native module's functions."""

import os
import subprocess
import sys

import numpy as np
import pytest

import cntkpy.compat.cntk as C
from cntkpy.cntk_config import UserError
from cntkpy.compat.cntk.default_options import get_global_option, set_global_option
from cntkpy.compat.cntk.device import get_gpu_properties, set_default_device, set_excluded_devices
from cntkpy.compat.cntk.layers.typing import SequenceOver, SequenceOverMeta
from cntkpy.compat.cntk.variables import Record, VariableMixin
from cntkpy.networks.arrays.lazy import jax
from cntkpy.readers.errors import ArgumentError

DATA = np.array([[1.4, -0.6]], np.float32)


# ------------------------------------------------------------------------------------------------ arguments by name


def test_operators_take_their_operands_by_cntks_names() -> None:
    x, flags = C.input_variable(2), C.input_variable(2)
    ones = np.array([[1, 0]], np.float32)
    found = {
        C.floor(arg=x): [1, -1],
        C.ceil(arg=x): [2, 0],
        C.round(arg=x): [1, -1],
        C.stop_gradient(input=x): DATA[0],
        C.transpose(C.reshape(x, (1, 2)), (1, 0), "turned"): DATA.T,
    }
    for function, wanted in found.items():
        assert np.allclose(function.eval(DATA)[0], wanted)
    assert C.transpose(C.reshape(x, (1, 2)), (1, 0), "turned").name == "turned"
    assert C.transpose(C.reshape(x, (1, 2)), 0, 1).shape == (2, 1)
    logic = {C.element_and: [0, 0], C.element_or: [1, 1], C.element_xor: [1, 1]}
    for make, wanted in logic.items():
        function = make(x=flags, y=C.constant([0, 1]))
        assert function.eval(ones)[0].tolist() == wanted
    assert C.placeholder((2,), None, "later").name == "later"


def test_values_take_their_arguments_by_place() -> None:
    x = C.input_variable(2)
    z = 3 * x
    assert isinstance(z.eval({x: DATA}, z.outputs, C.cpu(), False), C.Value)
    assert isinstance(z.grad({x: DATA}, [x], None, C.cpu(), False), C.Value)
    loss = C.reduce_sum(x * C.parameter(2, init=1))
    done = loss.train((np.ones((8, 2), np.float32),), 4, None, None, [C.sgd(loss.parameters, 0.1)], (), None, 2)
    assert done.updates == 4
    assert loss.test((np.ones((8, 2), np.float32),), 4).samples == 8


def test_a_session_takes_its_frequency_before_its_samples() -> None:
    x = C.input_variable(2)
    loss = C.reduce_sum(x * C.parameter(2, init=1))
    source = C.io.MinibatchSourceFromData({"x": np.ones((8, 2), np.float32)}, max_samples=C.io.INFINITELY_REPEAT)
    trainer = C.Trainer(None, loss, C.sgd(loss.parameters, 0.0))
    C.train.training_session(trainer, source, 4, {x: source.streams.x}, 8, 12).train()
    assert trainer.total_number_of_samples_seen == 12


def test_sizes_of_minibatches_change_after_samples() -> None:
    sizes = C.train.minibatch_size_schedule([(100, 8), (1, 16)])
    assert [sizes[samples] for samples in (0, 99, 100, 1000)] == [8, 8, 16, 16]
    sizes = C.minibatch_size_schedule([8, 16], epoch_size=50)
    assert [sizes[samples] for samples in (49, 50)] == [8, 16]


def test_an_axis_to_be_inferred_is_minus_one() -> None:
    assert C.InferredDimension == C.cntk_py.InferredDimension == -1
    w = C.parameter((C.InferredDimension, 3), init=1.0)
    assert w.shape == (-1, 3)
    assert C.times(C.input_variable(2), w).eval(DATA).shape == (1, 3)
    assert w.shape == (2, 3)


# ------------------------------------------------------------------------------------------------ options of layers


def test_a_layer_of_a_program_has_defaults() -> None:
    two, no = C.default_override_or(2.0), C.default_override_or(False)

    def Scaled(factor=two, bias=no):
        factor = C.get_default_override(Scaled, factor=factor)
        shift = 1.0 if C.get_default_override(Scaled, bias=bias) else 0.0
        return lambda x: factor * x + shift

    def value(layer) -> float:
        x = C.input_variable(1)
        return float(layer(x).eval(np.ones((1, 1), np.float32)).item())

    assert value(Scaled()) == 2
    assert value(Scaled(5.0)) == 5
    with C.default_options(bias=True):
        assert value(Scaled()) == 3
        assert value(Scaled(bias=False)) == 2
    with C.default_options_for(Scaled, factor=7.0):
        assert value(Scaled()) == 7
        assert C.layers.Dense(1)(C.input_variable(1)).parameters
    with (
        pytest.raises(UserError, match=r"Scaled has no default 'faktor'.*\n.*factor"),
        C.default_options_for(Scaled, faktor=7.0),
    ):
        pass
    with pytest.raises(UserError, match="takes one argument of a layer by its name, not 2"):
        C.get_default_override(Scaled, a=1, b=2)
    assert C.is_default_override(C.default_override_or(3)) and not C.is_default_override(3)


def test_a_layer_takes_a_default_that_may_be_overridden() -> None:
    given = C.default_override_or(False)
    assert len(C.layers.Dense(1, bias=given)(C.input_variable(1)).parameters) == 1
    with C.default_options(bias=True):
        assert len(C.layers.Dense(1, bias=given)(C.input_variable(1)).parameters) == 2
    assert C.input_variable(1, dtype=C.default_override_or(np.float64)).dtype == np.float64


def test_options_of_the_process() -> None:
    assert get_global_option("mine", 3) == 3
    set_global_option("mine", 4)
    assert get_global_option("mine", 3) == C.get_global_option("mine", 0) == 4
    x, w = C.input_variable((2, 3)), C.constant(1, (2, 3))
    assert x[1:].shape == (1, 3)
    C.set_global_option("align_axis", 1)  # axes of samples are counted as before, an index has a key for the batch
    try:
        assert C.reduce_sum(x, axis=0).shape == (1, 3)
        assert x[:, 1:].shape == (2 * x)[:, 1:].shape == w[1:].shape == (w + w)[1:].shape == (1, 3)
        data = np.arange(12, dtype="f").reshape(2, 2, 3)
        assert np.array_equal((2 * x)[:, :, 1:].eval({x: data}), 2 * data[:, :, 1:])
        steps = C.sequence.input_variable((2, 3))
        assert steps[:, :, 1:].shape == (1, 3)
        with C.default_options(axis_offset=1):  # a key for the batch only
            assert (2 * steps)[:, 1:].shape == (1, 3)
    finally:
        C.set_global_option("align_axis", 0)


# ------------------------------------------------------------------------------------------------ devices and values


def test_devices_are_chosen_and_excluded() -> None:
    assert isinstance(C.cpu(), C.DeviceDescriptor) and isinstance(C.use_default_device(), C.DeviceDescriptor)
    assert C.DeviceDescriptor.cpu_device() == C.cpu() == C.DeviceDescriptor("cpu")
    assert C.DeviceDescriptor.gpu_device(1) == C.gpu(1)
    assert C.cpu() in C.DeviceDescriptor.all_devices()
    assert C.try_set_default_device(C.cpu()) and not C.try_set_default_device(C.gpu(99))
    set_default_device(C.cpu())
    with pytest.raises(UserError, match=r"the device GPU\[99\] cannot be computed on\n.*there are: .*CPU"):
        set_default_device(C.gpu(99))
    with pytest.raises(UserError, match=r"get_gpu_properties: CPU is not a GPU of this machine"):
        get_gpu_properties(C.cpu())
    set_excluded_devices(excluded_devices=[C.gpu(99)])
    try:
        assert not C.try_set_default_device(C.gpu(99)) and C.try_set_default_device(C.cpu())
        with pytest.raises(UserError, match="set_excluded_devices excludes all devices"):
            set_excluded_devices(C.all_devices())
        assert C.try_set_default_device(C.cpu())
    finally:
        set_excluded_devices([])


def test_values_say_what_they_are() -> None:
    x = C.sequence.input_variable(3, is_sparse=True)
    value = C.Value.one_hot([[1, 2], [0]], 3)
    assert (value.device, value.is_sparse, value.is_valid, value.is_read_only) == (C.cpu(), True, True, False)
    assert C.Value.create(x, value, read_only=True).is_read_only
    frozen = np.ones((2, 3), np.float32)
    frozen.flags.writeable = False
    assert C.Value(frozen).is_read_only
    value.erase()
    assert not value.is_valid
    result = (2 * C.input_variable(2)).eval(DATA, as_numpy=False)
    assert result.is_valid and result.device == C.cpu() and result.data.device == C.cpu()


def test_records() -> None:
    record = Record(a=1, b=2)
    assert (record.a, record.updated_with(b=3), record.b) == (1, Record(a=1, b=3), 2)
    with pytest.raises(AttributeError, match="immutable"):
        record.a = 2


def test_kinds_of_variables() -> None:
    x, w, c = C.variables.Variable(3, name="x"), C.parameter(3), C.constant(3)
    assert x.is_input and len(x.dynamic_axes) == 2 and x.name == "x"
    for one in (x, w, c, x + w):
        assert isinstance(one, C.variables.Variable) and isinstance(one, VariableMixin)
    assert not isinstance(3, C.variables.Variable)
    assert w.as_parameter() is w and c.as_constant() is c
    with pytest.raises(UserError, match="is not a parameter"):
        x.as_parameter()
    with pytest.raises(UserError, match="is not a constant"):
        w.as_constant()


def test_types_of_functions() -> None:
    x = C.sequence.input_variable(3, dtype=np.float64)
    kind = (2 * x).type
    assert (kind.shape, kind.dtype, kind.is_sparse, len(kind.dynamic_axes)) == ((3,), np.float64, False, 2)
    same = C.input_variable(**kind)
    assert (same.shape, same.dtype, same.is_sequence) == ((3,), np.float64, True)
    assert type(SequenceOver) is SequenceOverMeta
    assert SequenceOver[C.Axis("words")][C.layers.Tensor[3]].axis == "words"
    f = C.layers.Dense(2)(C.placeholder())
    f.declare_args(kind)
    assert f.parameters[-1].shape in ((3, 2), (2,))


def test_a_function_is_named_once(tmp_path) -> None:
    x = C.input_variable(2)
    z = C.sin(x)
    z.name = "wave"
    z.name = "wave"
    assert (2 * z).find_by_name("wave") == z and (2 * z).wave == z
    with pytest.raises(UserError, match=r"Sin\('wave'\) has a name, which cannot be changed to 'other'"):
        z.name = "other"
    z.save(tmp_path / "a.model")
    assert C.load_model(tmp_path / "a.model").name == "wave"


def test_attributes_of_a_program_are_kept(tmp_path) -> None:
    x = C.input_variable(2)
    z = C.sin(x, name="z")
    assert z.custom_attributes == {}
    z.custom_attributes = {"words": [1, 2], "of": "us"}
    z.save(tmp_path / "a.model")
    again = C.load_model(tmp_path / "a.model")
    assert again.custom_attributes == {"words": [1, 2], "of": "us"} and again.attributes == {}
    with pytest.raises(UserError, match=r"custom attributes are kept as JSON.*\n.*tolist"):
        z.custom_attributes = {"array": DATA}
    with pytest.raises(UserError, match="is no operation"):
        x.custom_attributes = {"a": 1}


# ------------------------------------------------------------------------------------------------ learners


def test_learners_take_their_options_by_place() -> None:
    w = C.parameter(2, init=np.array([1.0, -1.0], np.float32))
    learner = C.sgd([w], C.learning_parameter_schedule_per_sample(1.0), 0.1, 0.0, 0.0, 0.5, True, None, 4, 8)
    learner.update({w: np.array([10.0, -0.2], np.float32)}, 1)
    # clipped to 0.5, then shrunk by 0.1
    assert np.allclose(w.value, [1.0 - 0.5 - 0.1, -1.0 + 0.2 + 0.1])
    adam = C.adam([w], 0.1, 0.9, True, 0.99, 0.0, 0.0, 0.0, np.inf, True, None, 1e-3, True)
    assert adam.name == "adamax"
    with pytest.raises(TypeError, match="unexpected keyword argument 'l3'"):
        C.sgd([w], 0.1, l3=1)  # pyright: ignore
    with pytest.raises(ArgumentError, match="gradient_clipping_threshold_per_sample is a number above 0"):
        C.sgd([w], 0.1, gradient_clipping_threshold_per_sample=0)


def test_epsilon_and_the_mean_multiplier() -> None:
    """One step of AdaGrad and AdaDelta against their formulas."""
    g = np.array([0.5, -2.0])

    def stepped(make) -> np.ndarray:
        w = C.parameter(2, init=np.zeros(2), dtype=np.float64)
        make([w]).update({w: 2 * g}, 2)
        return w.value

    epsilon = 0.25
    x = 2 * g * np.sqrt(epsilon) / np.sqrt(0.4 * g * g + epsilon)  # of the sum of gradients
    found = stepped(lambda w: C.adadelta(w, C.learning_parameter_schedule(0.5), 0.9, epsilon))
    assert np.allclose(found, -0.25 * x)
    ignored = stepped(lambda w: C.adadelta(w, 0.5, 0.9, epsilon, minibatch_size=C.learners.IGNORE))
    assert np.allclose(ignored, -0.5 * g * np.sqrt(epsilon) / np.sqrt(0.1 * g * g + epsilon))  # of the mean
    default = stepped(lambda w: C.adadelta(w, rho=0.9, epsilon=epsilon))
    assert np.allclose(default, -x)
    plain = stepped(lambda w: C.adagrad(w, C.learning_parameter_schedule(0.1), need_ave_multiplier=False))
    assert np.allclose(plain, -0.1 / 2 * np.sign(g), rtol=1e-5)
    scale = 1 / np.abs(2 * g)
    mean = stepped(lambda w: C.adagrad(w, C.learning_parameter_schedule_per_sample(0.1)))
    assert np.allclose(mean, -0.1 / scale.mean() * np.sign(g), rtol=1e-5)


@pytest.mark.parametrize(
    ("make", "wanted", "instead"),
    [
        (lambda: C.learning_rate_schedule([0.1, 0.2], C.UnitType.sample, 10), (1, 0.2), "learning_parameter_schedule"),
        (lambda: C.learning_rate_schedule([0.1, 0.2], C.UnitType.minibatch, 10), (None, 0.2), "learning_parameter"),
        (lambda: C.training_parameter_schedule([0.1, 0.2], epoch_size=10), (None, 0.2), "learning_parameter_schedule"),
        (lambda: C.momentum_as_time_constant_schedule(100), (1, np.exp(-0.01)), "momentum_schedule_per_sample"),
    ],
)
def test_deprecated_schedules_warn(make, wanted, instead) -> None:
    with pytest.warns(DeprecationWarning, match=f"is deprecated since CNTK 2.2: use {instead}") as seen:
        schedule = make()
    assert seen[0].filename == __file__
    assert (schedule.size, schedule[10]) == (wanted[0], pytest.approx(wanted[1]))


def test_a_session_tells_a_subclass_of_evaluations() -> None:
    seen = []

    class Session(C.train.TrainingSession):
        def on_cross_validation_end(self, index, average_error, num_samples, num_minibatches):
            seen.append((index, average_error, num_samples, num_minibatches))
            return super().on_cross_validation_end(index, average_error, num_samples, num_minibatches)

    x = C.input_variable(1)
    loss = C.reduce_sum(x * C.parameter(1, init=1))
    data = {"x": np.full((8, 1), 2, np.float32)}
    source, other = (C.io.MinibatchSourceFromData(data, max_samples=most) for most in (80, 8))
    called = []

    def callback(*result):
        called.append(result)
        return len(called) < 2

    config = C.train.CrossValidationConfig(other, 16, 4, callback)
    trainer = C.Trainer(None, loss, C.sgd(loss.parameters, 0.0))
    Session(trainer, source, 8, {x: source.streams.x}, 80, cv_config=config).train()
    assert seen == called == [(0, 2.0, 8, 2), (1, 2.0, 8, 2)]
    assert trainer.total_number_of_samples_seen == 32  # False ends training


# ------------------------------------------------------------------------------------------------ modules


def test_seeds_of_the_native_module() -> None:
    C.cntk_py.set_fixed_random_seed(7)
    assert (C.cntk_py.get_random_seed(), C.cntk_py.is_random_seed_fixed()) == (7, True)

    first = C.times(C.input_variable(2), w := C.parameter((2, 2), init=C.glorot_uniform()))
    assert first.parameters == (w,)
    assert C.cntk_py.get_random_seed() == 8
    C.cntk_py.reset_random_seed(7)
    again = C.times(C.input_variable(2), v := C.parameter((2, 2), init=C.glorot_uniform()))
    assert again.parameters == (v,) and np.array_equal(v.value, w.value)


def test_values_that_stand_for_nothing_given() -> None:
    native = C.cntk_py
    start = C.glorot_uniform(
        scale=native.DefaultParamInitScale,
        output_rank=native.SentinelValueForInferParamInitRank,
        filter_rank=native.SentinelValueForInferParamInitRank,
        seed=native.SentinelValueForAutoSelectRandomSeed,
    )
    x = C.input_variable(2)
    native.set_fixed_random_seed(3)
    z = C.times(x, w := C.parameter((2, 3), init=start), infer_input_rank_to_map=C.ops.TIMES_NO_INFERRED_INPUT_RANK)
    assert z.parameters == (w,)
    native.set_fixed_random_seed(3)
    y = C.times(x, v := C.parameter((2, 3), init=C.glorot_uniform()))
    assert y.parameters == (v,) and np.array_equal(w.value, v.value)
    dropped = C.dropout(x, 0.5, native.SentinelValueForAutoSelectRandomSeed)
    assert dropped.attributes["rngSeed"] == C.dropout(x, 0.5).attributes["rngSeed"]


@pytest.mark.thorough
def test_determinism_is_asked_for_before_jax_is_used() -> None:
    code = (
        "import os, sys, numpy as np, cntkpy.compat.cntk as C\n"
        "from cntkpy.compat.cntk.cntk_py import *\n"
        "print(should_force_deterministic_algorithms())\n"
        "C.debugging.force_deterministic(3)\n"
        "print(os.environ['XLA_FLAGS'], 'jax' in sys.modules, should_force_deterministic_algorithms())\n"
        "print(C.exp(C.input_variable(1)).eval(np.zeros((1, 1), np.float32)), get_random_seed())\n"
        "force_deterministic_algorithms()\n"
        "print(os.environ['XLA_FLAGS'])"
    )
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    flag = "--xla_gpu_deterministic_ops=true"
    assert done.stdout.splitlines() == ["False", f"{flag} False True", "[[1.]] 3", flag]


def test_determinism_that_comes_too_late_on_a_gpu_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(C.cntk_py, "_forced", [])
    C.exp(C.input_variable(1)).eval(np.zeros((1, 1), np.float32))
    C.cntk_py.force_deterministic_algorithms()  # on a CPU nothing is late
    monkeypatch.setattr(C.cntk_py, "use_default_device", lambda: C.gpu(0))
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    with pytest.warns(RuntimeWarning, match="comes before the first eval, or set XLA_FLAGS=--xla_gpu"):
        C.cntk_py.force_deterministic_algorithms()


def test_the_native_module_has_switches_and_classes() -> None:
    native = C.cntk_py
    for name in native.__all__:
        assert getattr(native, name) is None or getattr(native, name).__doc__, name
    assert native.DeviceKind_GPU == C.gpu(0).type()
    assert isinstance(C.sgd(C.parameter(2), 0.1), native.Learner)
    native.disable_cpueval_optimization()
    native.set_computation_network_trace_level(level=1000)
    with pytest.raises(AttributeError, match=r"cntk\.cntk_py\.Minibatch of CNTK does not exist"):
        _ = native.Minibatch


def test_a_star_import_gives_the_names_of_the_package() -> None:
    names: dict[str, object] = {}
    exec("from cntkpy.compat.cntk import *", names)
    own = {one for one in names if not one.startswith("__")}
    assert own == set(C.__all__)
    modules = (C.core, C.device, C.eval, C.initializer, C.learners, C.losses, C.metrics, C.ops, C.train, C.variables)
    missing = {f"{module.__name__}.{one}" for module in modules for one in module.__all__ if one not in own} - {
        f"{C.eval.__name__}.evaluator",
        f"{C.train.__name__}.distributed",
        f"{C.train.__name__}.trainer",
    }
    assert not missing
    assert callable(names["default_options"]) and names["set_global_option"] is C.set_global_option


def test_importing_a_module_under_cntks_name_leaves_the_function_of_its_name() -> None:
    code = (
        "import cntkpy.compat; cntkpy.compat.install()\n"
        "import cntk as C\n"
        "import cntk.default_options, cntk.train.training_session, cntk.eval.evaluator\n"
        "from cntk.misc.converter import convert\n"
        "assert callable(C.default_options) and callable(C.train.training_session)\n"
        "with C.default_options(bias=False): print(C.Evaluator is cntk.eval.evaluator.Evaluator)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "True", done.stderr


def test_properties_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    class Chip:
        compute_capability, core_count, device_kind, platform, id = "9.0", 132, "NVIDIA H100", "gpu", 0

        def memory_stats(self):
            return {"bytes_limit": 1 << 36}

    monkeypatch.setattr(jax, "devices", lambda kind=None: [Chip()])
    found = get_gpu_properties(C.gpu(0))
    assert (found.version_major, found.version_minor, found.cores, found.name) == (9, 0, 132, "NVIDIA H100")
    assert (found.device_id, found.total_memory) == (0, 1 << 36)
    assert C.all_devices() == [C.gpu(0), C.cpu()]


def test_a_unit_of_an_old_schedule_is_one_of_two() -> None:
    with (
        pytest.warns(DeprecationWarning, match="training_parameter_schedule"),
        pytest.raises(ValueError, match=r"a unit is UnitType\.sample or UnitType\.minibatch, not 'sample'"),
    ):
        C.training_parameter_schedule(0.1, "sample")  # pyright: ignore


def test_default_options_of_names_of_a_program() -> None:
    own = C.default_override_or(2.0)

    def Scaled(factor=own):
        factor = C.get_default_override(Scaled, factor=factor)
        return lambda x: x * factor

    with C.default_options(factor=7.0):
        assert Scaled()(C.constant(1.0)).eval() == 7
        with C.default_options_for(Scaled, factor=3.0):
            assert Scaled()(C.constant(1.0)).eval() == 3
    assert Scaled()(C.constant(1.0)).eval() == 2
    with pytest.warns(UserWarning, match=r"no default 'activaton' .*activation"), C.default_options(activaton=None):
        pass
