"""CNTK's Python names: what programs call is there; what is not says what to use instead."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import cntkpy.compat.cntk as C
import cntkpy.compat.cntk.tests.test_utils
from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.compat.cntk.io.transforms import crop
from cntkpy.compat.cntk.layers import Dense

MODULES = ["io", "layers", "learners", "logging", "ops", "sequence", "device", "distributed", "train", "initializer",
           "losses", "metrics", "axis", "cntk_py", "tests"]  # fmt: skip


def test_every_offered_name_exists() -> None:
    assert [name for name in C.__all__ if not hasattr(C, name)] == []
    for name in MODULES:
        module = getattr(C, name)
        assert [one for one in getattr(module, "__all__", []) if not hasattr(module, one)] == []
    assert C.layers.Dense is Dense
    assert C.io.transforms.crop is crop
    assert C.logging.progress_print.ProgressPrinter is C.ProgressPrinter
    assert C.MAX_UNPOOLING == C.ops.MAX_UNPOOLING
    assert cntkpy.compat.cntk is C
    with pytest.raises(AttributeError, match=r"'input_variable'; CNTK's names for Python are in cntkpy.compat.cntk"):
        _ = cntkpy.input_variable


def test_the_calls_of_the_manual() -> None:
    C.tests.test_utils.set_device_from_pytest_env()
    C.cntk_py.set_fixed_random_seed(1)
    assert C.device.cpu().type() == 0
    assert int(C.logging.TraceLevel.Warning) == 1
    info = C.io.StreamInformation("x", 0, "dense", np.float32, (3,))
    assert info.m_name == "x"
    value = C.Value.one_hot(batch=[[1, 2], [0]], num_classes=3, device=C.device.cpu())
    assert value.shape == (2, 2, 3)
    assert C.Value(batch=np.zeros((2, 3), np.float32), device=None).shape == (2, 3)
    assert C.distributed.Communicator.rank() == 0
    assert C.distributed.Communicator.num_workers() == 1


def test_what_schedules_do_not_say_follows_the_learner() -> None:
    w = [C.parameter(2)]
    time, open_ = C.momentum_schedule_per_sample(float(np.exp(-0.01))), C.learning_parameter_schedule(0.5)
    sizes = {
        (None, None): C.momentum_sgd(w, open_, C.momentum_schedule(0.9)),
        (8, 8): C.momentum_sgd(w, open_, C.momentum_schedule(0.9), minibatch_size=8),
        (8, 1): C.momentum_sgd(w, 0.5, time, minibatch_size=8),
        (2, None): C.momentum_sgd(w, C.learning_parameter_schedule(0.5, 2), 0.9, minibatch_size=C.learners.IGNORE),
        (None, 4): C.momentum_sgd(w, C.learning_parameter_schedule(0.5, C.learners.IGNORE), 0.9, minibatch_size=4),
        (None, 1): C.momentum_sgd(w, C.learning_parameter_schedule_per_sample(0.5), time, use_mean_gradient=True),
        (2, 3): C.momentum_sgd(
            w, C.learning_parameter_schedule(0.5, 2), C.momentum_schedule(0.9, minibatch_size=3), use_mean_gradient=True
        ),
    }
    assert [(one.rate.size, one.momentum.size) for one in sizes.values()] == list(sizes)
    learner = C.data_parallel_distributed_learner(C.sgd(w, C.learning_parameter_schedule(0.5, 16)))
    learner.reset_learning_rate(C.learning_parameter_schedule([0.2, 0.1]))
    assert (learner.rate.minibatch_size, learner.learning_rate()) == (16, 0.2)


ADAPTIVE = {
    "adam": lambda w, rate, **more: C.adam(w, rate, 0.0, epsilon=1e-12, **more),
    "adamax": lambda w, rate, **more: C.adam(w, rate, 0.0, epsilon=1e-12, adamax=True, **more),
    "adagrad": lambda w, rate, **more: C.adagrad(w, rate, need_ave_multiplier=False, **more),
}


@pytest.mark.parametrize("rule", ADAPTIVE)
@pytest.mark.parametrize(
    ("rate", "size", "step"),
    [
        (C.learning_parameter_schedule_per_sample(0.5), None, 0.5),  # of the sum of gradients
        (C.learning_parameter_schedule(0.5, 4), None, 0.5 / 4),
        (C.learning_parameter_schedule(0.5), 4, 0.5 / 4),
        (C.learning_parameter_schedule(0.5), None, 0.5 / 8),  # that of a minibatch, of 8 samples
        (C.learning_parameter_schedule(0.5), C.learners.IGNORE, 0.5),  # of the mean gradient
    ],
)
def test_the_first_step_of_adaptive_rules_is_the_rate(rule: str, rate: Any, size: int | None, step: float) -> None:
    w = C.parameter(1, init=0.0)
    ADAPTIVE[rule]([w], rate, minibatch_size=size).update({w: np.array([40.0])}, 8)
    assert w.value == pytest.approx([-step], rel=1e-4)


def test_learners_have_cntks_defaults() -> None:
    x = C.input_variable(3)
    z = C.layers.Dense(2)(x)
    rate = C.learning_parameter_schedule_per_sample([0.1, 0.2], epoch_size=10)
    assert (rate.minibatch_size, rate[0], rate[10]) == (1, 0.1, 0.2)
    momentum = C.momentum_schedule_per_sample(float(np.exp(-0.01)))
    for learner in (
        C.sgd(z.parameters, C.learning_parameter_schedule_per_sample(0.5)),
        C.momentum_sgd(z.parameters, C.learning_parameter_schedule(0.5, minibatch_size=32), momentum),
        C.nesterov(z.parameters, lr=rate, momentum=C.momentum_schedule(0.9)),
        C.adam(z.parameters, rate, momentum, variance_momentum=C.momentum_schedule(0.99)),
        C.adam(z.parameters, rate, momentum, adamax=True),
        C.fsadagrad(z.parameters, rate, momentum),
        C.adagrad(z.parameters, rate),
        C.rmsprop(z.parameters, rate, 0.9, 1.2, 0.7, 10, 0.1),
        C.adadelta(z.parameters),
    ):
        assert isinstance(learner, C.learners.Learner)
        assert learner.learning_rate() > 0


MISSING = {
    "lattice_sequence_with_softmax": r"cntkpy: there are no lattices here: .* forward_backward \(CTC\)",
    "crosstalk": "use numpy arrays",
    "mat_mul": "use times",
    "squarederror": "did you mean 'squared_error'",
    "zzz": r"dir\(cntkpy.compat.cntk\) lists what there is",
}


@pytest.mark.parametrize("name", MISSING)
def test_a_name_that_is_missing_says_what_there_is(name: str) -> None:
    with pytest.raises(AttributeError, match=MISSING[name]):
        getattr(C, name)
    with pytest.raises(
        AttributeError, match=r"cntk\.layers\.Dens of CNTK does not exist in cntkpy: did you mean 'Dense'"
    ):
        _ = C.layers.Dens


IMPORTS = {
    "from cntkpy.compat.cntk import cumsum": "cntk.cumsum of CNTK does not exist in cntkpy: use layers.Recurrence",
    "from cntkpy.compat.cntk.layers import Dens": "cntk.layers.Dens of CNTK does not exist .* mean 'Dense'",
    "from cntkpy.compat.cntk.ops.functions import native_user_function": "native_user_function .* use user_function",
    "import cntkpy.compat.cntk.contrib.netopt.quantization": "there are no convolutions of bits here, which are native",
    "from cntkpy.compat.cntk.contrib.netopt.factorization import a": "there are: dense_factored, factor_dense, svd",
    "from cntkpy.compat.cntk.contrib.deeprl.agent.qlearning import QLearning": "use agent.shared for networks",
    "from cntkpy.compat.cntk.contrib import crosstalkcaffe": "use ONNX: convert the Caffe model to ONNX",
    "from cntkpy.compat.cntk.contrib import crosstalk": "cntk.contrib.crosstalk .* docs/python-functions.md, 'The same",
    "from cntkpy.compat.cntk.contrib.crosstalk.crosstalk_cntk import instance": "cntk.contrib.crosstalk .* arrays",
    "import cntkpy.compat.cntk.contrib.zzz": "cntk.contrib.zzz of CNTK .*: there are: deeprl, netopt",
    "import cntkpy.compat.cntk.progress_print": "not a module .*: write `import cntk.logging.progress_print`",
    "import cntkpy.compat.cntk.layers.Dense": "not a module of CNTK 2.7: write `from cntk.layers import Dense`",
    "import cntkpy.compat.cntk.learners.adams": "cntk.learners.adams of CNTK does not exist .* did you mean 'adam'",
}


@pytest.mark.parametrize("line", IMPORTS)
def test_an_import_of_a_missing_name_says_what_there_is(line: str) -> None:
    with pytest.raises(ImportError, match=IMPORTS[line]):
        exec(line, {})
    assert not hasattr(C.learners, "adams")
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'cntkpy\.nothing'"):
        exec("import cntkpy.nothing", {})


def test_importing_it_computes_nothing() -> None:
    code = "import sys, cntkpy.compat.cntk; print([m for m in ('jax', 'numba') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_face_has_modules() -> None:
    import cntkpy
    import cntkpy.testing
    import cntkpy.training

    assert cntkpy.training.Trainer is not None
    assert cntkpy.testing.check_reader is not None
    assert set(cntkpy.training.__all__) <= set(dir(cntkpy.training))


def test_a_constant_along_a_sequence() -> None:
    x = C.sequence.input_variable(2)
    data = [np.arange(6, dtype=np.float32).reshape(3, 2), np.ones((1, 2), np.float32)]
    p = C.parameter((2,), init=2)
    for one in (C.sequence.broadcast_as(C.constant([3.0, 4]), x), C.reconcile_dynamic_axes(C.constant([3.0, 4]), x)):
        found = one.eval({x: data})
        assert [f.tolist() for f in found] == [[[3, 4]] * 3, [[3, 4]]]
        last = np.asarray(C.sequence.last(one * x).eval({x: data}))
        assert last.reshape(2, 2).tolist() == [[12, 20], [3, 4]]
    (gradient,) = np.atleast_2d(C.sequence.broadcast_as(p, x).grad({x: data}, wrt=[p]))
    assert gradient.tolist() == [4, 4]
    middle = C.sequence.slice(C.sequence.broadcast_as(C.constant([3.0, 4]), x) * x, 1, 2).eval({x: data[:1]})
    assert np.asarray(middle).reshape(-1).tolist() == [6, 12]
    for refused in (C.sequence.last, C.sequence.first, lambda c: C.sequence.slice(c, 0, 1), C.sequence.past_value):
        with pytest.raises(UserError, match="of a sequence or of a recurrence that depends on no input") as caught:
            refused(C.constant([3.0, 4])).eval()
        assert "sequence.broadcast_as(c, x)" in str(caught.value.hint)
