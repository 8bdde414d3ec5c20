"""Arguments of distributed learners that change nothing, and those that are refused."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import cntkpy.compat.cntk as C
from cntkpy.cntk_config import UserError
from cntkpy.compat.cntk.distributed import data_parallel_distributed_learner


@pytest.fixture
def learner() -> C.learners.Learner:
    z = C.layers.Dense(1)(C.input_variable(2))
    return C.sgd(z.parameters, C.learning_parameter_schedule(0.1))


def test_quantised_gradients_are_exchanged_in_full_precision(learner: C.learners.Learner) -> None:
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("default")
        for _ in range(2):
            data_parallel_distributed_learner(learner, num_quantization_bits=1)
    assert [str(one.message) for one in given] == [
        "gradients are exchanged in full precision: num_quantization_bits has no effect"
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data_parallel_distributed_learner(learner, num_quantization_bits=32)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_quantization_bits": 0}, "num_quantization_bits"),
        ({"num_quantization_bits": 65}, "1 to 64, not 65"),
        ({"use_async_buffered_parameter_update": True}, "not asynchronously"),
    ],
)
def test_what_is_refused(learner: C.learners.Learner, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        data_parallel_distributed_learner(learner, **arguments)
