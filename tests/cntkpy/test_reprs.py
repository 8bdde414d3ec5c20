"""What objects of the Python interfaces say of themselves, and which name is offered for a misspelt one (F18)."""

import inspect
import typing
from pathlib import Path

import numpy as np
import pytest

import cntkpy.compat.cntk as C
from cntkpy.training import layers, learners


def test_layers() -> None:
    assert repr(layers.Dense(3)) == "Dense(3)"
    assert repr(layers.Dense((2, 3), name="d")) == "Dense(2 x 3, name='d')"
    made = layers.Sequential([layers.Embedding(4), layers.Dropout(0.5), layers.Dense(3, name="out")])
    assert repr(made) == "Sequential(Embedding(4), Dropout(), Dense(3, name='out'))"
    assert "object at" not in repr(layers.Recurrence(layers.LSTM(3)))


def test_sources(tmp_path: Path) -> None:
    (tmp_path / "t.ctf").write_text("|x 1 2 |y 2:1\n|x 3 4 |y 0:1\n")
    streams = C.io.StreamDefs(x=C.io.StreamDef("x", 2), y=C.io.StreamDef("y", 3, is_sparse=True))
    source = C.io.MinibatchSource(C.io.CTFDeserializer(str(tmp_path / "t.ctf"), streams), max_sweeps=1)
    assert repr(source) == "MinibatchSource(x: 2 dense float32, y: 3 sparse float32)"
    data = source.next_minibatch(2)
    assert repr(data[source.streams.x]) == "MinibatchData(2 sequences, 2 samples, end_of_sweep=True)"


@pytest.mark.parametrize(("name", "near"), [("Acos", "acos"), ("COS", "cos"), ("Relu", "relu"), ("sigmiod", "sigmoid")])
def test_the_nearest_name_differs_in_case_only(name: str, near: str) -> None:
    with pytest.raises(AttributeError, match=f"did you mean '{near}'"):
        getattr(C, name)


@pytest.mark.parametrize("module", [learners, C.learners])
def test_learners_are_typed(module: object) -> None:
    """No argument of a learner is of any type, and every option is declared."""
    for name in ("sgd", "momentum_sgd", "nesterov", "adagrad", "rmsprop", "fsadagrad", "adam", "adadelta"):
        make = getattr(module, name)
        hints = typing.get_type_hints(make)
        assert set(inspect.signature(make).parameters) <= set(hints)
        assert typing.Any not in hints.values(), name
        if module is learners:
            (declared,) = typing.get_args(hints["options"])
            hints = typing.get_type_hints(declared)
        assert "l2_regularization_weight" in hints
        assert ("minibatch_size" in hints) is (module is C.learners)


def test_evaluating_an_output_asks_for_its_own_inputs() -> None:
    x, y = C.input_variable(2), C.input_variable(3)
    z = layers.Dense(3)(x)
    both = C.combine([z, C.cross_entropy_with_softmax(z, y)])
    found = both.eval({x: np.ones((1, 2), np.float32)}, outputs=[z.output])
    assert np.asarray(next(iter(found.values())) if isinstance(found, dict) else found).size == 3


def test_trainers() -> None:
    x, y = C.input_variable(2), C.input_variable(3)
    z = layers.Dense(3)(x)
    loss, metric = C.cross_entropy_with_softmax(z, y), C.classification_error(z, y)
    trainer = C.Trainer(z, (loss, metric), C.sgd(z.parameters, 0.1))
    assert repr(trainer) == f"Trainer(loss={loss!r}, metric={metric!r}, sgd(2 parameters, Schedule([(1, 0.1)])))"
    assert "metric" not in repr(C.Trainer(z, loss, C.sgd(z.parameters, 0.1)))


def test_variables_without_a_name_are_written_with_their_uid() -> None:
    x = C.input_variable((2, 3))
    z = x + 1
    number = z.uid.removeprefix("Plus")
    assert number.isdecimal()
    assert str(z.output) == f"Output('Plus{number}_Output_0', [#], [2 x 3])"
    assert z.output.uid == f"Plus{number}_Output_0" and z.root_function.uid == z.output.owner.uid == f"Plus{number}"
    assert str(x) == f"Input('{x.uid}', [#], [2 x 3])" and x.uid.removeprefix("Input").isdecimal()
    assert str(C.plus(x, 1, name="n").output) == "Output('n', [#], [2 x 3])"
    assert C.layers.Dense(2)(x).uid.startswith("Block")
    words = C.sequence.input_variable(3, sequence_axis=C.Axis("words"), name="w")
    assert repr([words, C.parameter(2, name="p")]) == "[Input('w', [#, words], [3]), Parameter('p', [], [2])]"
    assert repr(z.outputs) == f"({z.output},)"
    assert str(C.plus(C.placeholder(name="p"), 1).output).endswith("[???], [???])")


def test_an_untyped_function_is_written_with_types_that_are_not_known() -> None:
    square = C.Function(lambda x: x * x)
    assert str(square) == "ElementTimes(x: Sequence[tensor]) -> Sequence[tensor]"
    square.update_signature(C.layers.Tensor[2])
    assert str(square) == "ElementTimes(x: Tensor[2]) -> Tensor[2]"
