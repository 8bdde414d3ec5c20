"""Names of CNTK 2's package that are thin: arrays, axes, devices, signatures, the profiler."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import cntkpy.compat.cntk as C
from cntkpy.cntk_config import UserError


def test_views_of_arrays() -> None:
    data = np.arange(6, dtype=np.float64).reshape(2, 3)
    view = C.NDArrayView.from_dense(data)
    data[0, 0] = 9
    assert (view.shape, view.dtype, view.is_sparse, view.is_read_only) == ((2, 3), np.float64, False, False)
    assert view.asarray()[0, 0] == 0 and str(view.device) == "CPU"
    part = view.slice_view((0, 1), (2,))  # the row 0, of it the elements 1 and 2
    assert part.is_read_only and part.asarray().tolist() == [1, 2]
    assert view.slice_view((0, 1), (2, 1)).asarray().tolist() == [[1], [4]]
    assert C.NDArrayView.from_dense(data, borrow=True).asarray() is data
    sparse = C.NDArrayView.from_data(sp.csr_matrix(data))
    assert sparse.is_sparse and np.array_equal(np.asarray(sparse), data)
    with pytest.raises(UserError, match=r"shape is \(3, 2\), the matrix has \(2, 3\)"):
        C.NDArrayView.from_csr(sp.csr_matrix(data), shape=(3, 2))
    assert C.NDArrayView((2, 1), np.float32).asarray().tolist() == [[0], [0]]
    assert C.asarray(view).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert C.asarray(C.Value(np.ones((2, 1), np.float32)), np.float64).dtype == np.float64


def test_axes() -> None:
    static, batch, sequence = C.Axis(-1), C.Axis.default_batch_axis(), C.Axis("words")
    kinds = [
        (one.is_static_axis, one.is_batch_axis, one.is_sequence_axis, one.is_ordered)
        for one in (static, batch, sequence)
    ]
    assert kinds == [(True, False, False, True), (False, True, False, False), (False, False, True, True)]
    assert (static.static_axis_index(), batch.static_axis_index(checked=False)) == (-1, -1)
    with pytest.raises(UserError, match=r"Axis\('words'\) is not a static axis"):
        sequence.static_axis_index()
    assert C.Axis.default_input_variable_dynamic_axes() == (batch,)


def test_devices() -> None:
    assert C.cpu().type() == C.DeviceKind.CPU == 0 and C.gpu(1).type() == C.DeviceKind.GPU
    assert not C.cpu().is_locked()


def test_signatures() -> None:
    x, y = C.input_variable(2, name="x"), C.input_variable(2, name="y")
    f = x + 2 * y
    assert f.signature == (x, y)
    assert f.argument_map(1, y=2) == {x: 1, y: 2}
    with pytest.raises(UserError, match="the function has no input 'z'"):
        f.argument_map(z=1)
    with pytest.raises(UserError, match="3 arguments for a function of 2 inputs"):
        f.argument_map(1, 2, 3)
    with pytest.raises(UserError, match="is not a placeholder"):
        f.update_signature(3)


@pytest.mark.parametrize(
    "kind", [3, (3,), C.layers.Tensor[3], C.layers.Sequence[C.layers.Tensor[3]], C.input_variable(3)]
)
def test_a_signature_that_is_given_later(kind) -> None:
    f = C.layers.Dense(2, init=1, bias=False)(C.placeholder())
    f.update_signature(kind)
    (w,) = f.parameters
    assert w.shape == (3, 2)
    w.value = np.arange(6).reshape(3, 2)
    data = np.array([[1, 2, 3]], np.float32)
    assert f(C.input_variable(3)).eval(data).tolist() == (data @ w.value).tolist()


def test_a_layer_has_parameters_with_its_signature() -> None:
    model = C.layers.Sequential([C.layers.Dense(4, activation=C.relu), C.layers.Dense(2)])
    model.update_signature(3)
    assert sorted(one.shape for one in model.parameters) == [(2,), (3, 4), (4,), (4, 2)]
    assert model(C.input_variable(3)).parameters[0] in model.parameters


def test_find_by_uid() -> None:
    x = C.input_variable(1)
    z = C.sin(x) + C.cos(x)
    (part,) = [one for one in C.logging.graph.get_node_outputs(z) if one.op_name == "Sin"]
    assert C.logging.graph.find_by_uid(z, part.uid) == part
    assert C.logging.graph.find_by_uid(z, "nothing") is None


@pytest.mark.parametrize("method", ["clone", "freeze", "share"])
def test_what_a_copy_does_not_share_has_another_uid(method: str) -> None:
    x = C.input_variable(2)
    z = C.layers.Dense(3, activation=C.tanh)(x)
    copies = z.clone(method, {x: C.input_variable(2)}), z.clone(method, {x: C.input_variable(2)})
    parts = [{*C.logging.graph.depth_first_search(one, lambda part: True)} for one in (z, *copies)]
    assert len({part.uid for part in set().union(*parts)}) == len(set().union(*parts))
    shared = {one.uid for one in z.parameters} & {one.uid for one in copies[0].parameters + copies[0].constants}
    assert len(shared) == (2 if method == "share" else 0)


@pytest.mark.parametrize("format", [C.ModelFormat.CNTKv2, C.ModelFormat.ONNX])
def test_a_file_keeps_the_order_of_the_arguments(format: object, tmp_path: Path) -> None:
    """Values that are given by position get to the same inputs."""
    a, b, c = (C.input_variable(2, name=name) for name in "abc")
    data = [np.array([values], np.float32) for values in ([1, 2], [3, 5], [7, 11])]
    for z, names in ((a - b / c, "abc"), (c - b * a, "cba"), (C.splice(c, a, b), "cab")):
        z.save(str(tmp_path / "m"), format)
        again = C.Function.load(str(tmp_path / "m"), format=format)
        assert [one.name for one in again.arguments] == [one.name for one in z.arguments] == list(names)
        assert np.allclose(again(*data), z(*data))


def test_the_profiler_writes_a_trace(tmp_path: Path) -> None:
    from cntkpy.compat.cntk.debugging import disable_profiler, enable_profiler, start_profiler, stop_profiler

    enable_profiler()  # none was started
    start_profiler(str(tmp_path / "profile"))
    C.input_variable(1).eval(np.ones((1, 1), np.float32))
    disable_profiler()
    disable_profiler()
    stop_profiler()
    assert list((tmp_path / "profile").rglob("*.pb"))
    enable_profiler()


def test_older_models_are_not_written() -> None:
    with pytest.raises(UserError, match="models of CNTK 1 are not written"):
        C.debugging.debug.save_as_legacy_model(C.input_variable(1), "a.dnn")
