"""`eval` of sequences that resume where the call before has ended, and names that programs take from cntk.layers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntkpy.compat.cntk as C
from cntkpy.cntk_config import UserError

DATA = np.random.default_rng(0).normal(size=(2, 6, 2)).astype(np.float32)


def _recurrence() -> tuple[Any, Any]:
    x = C.sequence.input_variable(2)
    return x, C.layers.Recurrence(C.layers.LSTM(3))(x)


def test_pieces_have_the_values_of_the_whole() -> None:
    x, z = _recurrence()
    whole = z.eval({x: list(DATA)})
    first = z.eval({x: (list(DATA[:, :2]), [True, True])})
    second = z.eval({x: C.Value.create(x, list(DATA[:, 2:]), [False, False])})
    for row in range(2):
        np.testing.assert_array_equal(np.concatenate([first[row], second[row]]), whole[row])


def test_one_sequence_may_begin_while_another_resumes() -> None:
    x, z = _recurrence()
    whole = z.eval({x: list(DATA)})
    z.eval({x: (list(DATA[:, :2]), [True, True])})
    mixed = z.eval({x: ([DATA[0, :2], DATA[1, 2:4]], [True, False])})
    np.testing.assert_array_equal(mixed[0], whole[0][:2])
    np.testing.assert_array_equal(mixed[1], whole[1][2:4])


def test_a_call_that_says_nothing_begins_and_ends_all_sequences() -> None:
    x, z = _recurrence()
    whole = z.eval({x: list(DATA)})
    z.eval({x: (list(DATA[:, :2]), [True, True])})
    np.testing.assert_array_equal(z.eval({x: list(DATA)})[0], whole[0])
    with pytest.raises(UserError, match="2 sequences cannot resume from a minibatch of 0"):
        z.eval({x: (list(DATA[:, 2:]), [False, False])})


def test_forward_and_grad_do_not_resume() -> None:
    x, z = _recurrence()
    with pytest.raises(UserError, match="in training and in eval only"):
        z.grad({x: (list(DATA), [False, False])})


def test_layers_have_the_names_that_programs_import() -> None:
    names: dict[str, Any] = {}
    exec("from cntkpy.compat.cntk import *\nfrom cntkpy.compat.cntk.layers import *", names)
    assert names["sequence"].slice is C.sequence.slice
    assert C.layers.Parameter is C.Parameter and C.layers.sequence.last is C.sequence.last
