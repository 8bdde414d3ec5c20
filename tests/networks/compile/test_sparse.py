"""Sparse inputs: same values and gradients as dense ones, work that does not grow with the width."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse import random as random_csr

from cntkpy.networks.arrays.sparse import RowGradient, Sparse
from cntkpy.networks.compile.evaluate import compile_gradient, network_parameters, network_state

LENGTHS = [3, 1, 2]


def _csr(mask, width, seed, density=0.3):
    csr = random_csr(mask.size, width, density, "csr", random_state=seed, dtype=np.float64)
    csr = csr.multiply(mask.reshape(-1, 1)).tocsr()
    csr.eliminate_zeros()
    return csr


def _both(helpers, make, width=9, sparse_labels=False):
    """The same network on dense and on sparse data: [(total, gradients, batch)]."""
    results = []
    mask, start, end = helpers.grid(LENGTHS, extra=1)
    x = _csr(mask, width, 1)
    y = np.eye(4)[np.random.default_rng(0).integers(0, 4, mask.shape)] * mask[..., None]
    for sparse in (False, True):
        s = helpers.Sketch()
        inputs = s.input("x", width, sparse=sparse)
        labels = s.input("y", 4, sparse=sparse and sparse_labels)
        s("CrossEntropyWithSoftmax", labels, make(s, inputs), name="ce")
        T, S = mask.shape
        data = {"x": x.toarray().reshape(T, S, width), "y": y}
        if sparse:
            data["x"] = Sparse.from_csr(x, T, S, np.float64)
            if sparse_labels:
                data["y"] = Sparse.from_csr(csr_matrix(y.reshape(T * S, 4)), T, S, np.float64)
        batch = helpers.Batch(data, mask, start, end)
        results.append((*helpers.gradients(s.network, "ce", batch), s, batch))
    return results


MAKERS = {
    "product": lambda s, x: s("Plus", s("Times", s.parameter("w", 4, 9), x), s.parameter("b", 4)),
    "two_products": lambda s, x: s(
        "Plus", s("Times", s.parameter("w", 4, 9), x), s("Times", s.parameter("v", 4, 9), x)
    ),
    "shared_twice": lambda s, x: s("Times", s.parameter("u", 4, 4), s("Times", s.parameter("w", 4, 9), x)),
    "table": lambda s, x: s("LookupTable", s.parameter("w", 4, 9), x),
    "table_of_blocks": lambda s, x: s("Times", s.parameter("u", 4, 6), s("LookupTable", s.parameter("w", 2, 3), x)),
    "dense_use": lambda s, x: s("Times", s.parameter("w", 4, 9), s("Sigmoid", x)),
    "past": lambda s, x: s("Times", s.parameter("w", 4, 9), s("PastValue", x, rows=9)),
}


@pytest.mark.thorough
@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_sparse_equals_dense(helpers, make, labels):
    (total, found, *_), (sparse_total, sparse_found, s, batch) = _both(helpers, make, sparse_labels=labels)
    np.testing.assert_allclose(sparse_total, total, rtol=1e-12)
    for name, gradient in found.items():
        np.testing.assert_allclose(sparse_found[name], gradient, rtol=1e-10, atol=1e-12, err_msg=name)
    for name, (chosen, slopes) in helpers.central_differences(s.network, "ce", batch).items():
        np.testing.assert_allclose(sparse_found[name].reshape(-1)[chosen], slopes, rtol=1e-6, atol=1e-8)


@pytest.mark.thorough
@pytest.mark.optimised
def test_gradient_by_rows(helpers):
    *_, (_, _, s, batch) = _both(helpers, MAKERS["product"])
    gradients, _, _ = compile_gradient(s.network.validate(), "ce")(
        network_parameters(s.network), network_state(s.network), batch
    )
    assert isinstance(gradients["w"], RowGradient) and not isinstance(gradients["b"], RowGradient)
    rows = np.asarray(gradients["w"].rows)
    real = rows[rows < 9]
    assert len(set(real)) == len(real) and (np.asarray(gradients["w"].values)[rows == 9] == 0).all()


def test_from_csr_pads_to_powers_of_two():
    csr = _csr(np.ones((2, 3), bool), 50, 3, density=0.1)
    sparse = Sparse.from_csr(csr, 2, 3, np.float64)
    K, U = sparse.index.shape[2], len(sparse.rows)
    assert K & (K - 1) == 0 and U & (U - 1) == 0
    np.testing.assert_allclose(np.asarray(sparse.dense((50,))).reshape(6, 50), csr.toarray())

    exact = Sparse.from_csr(csr, 2, 3, np.float64, exact=True)
    assert len(exact.rows) == len(np.unique(csr.indices))
    empty = Sparse.from_csr(csr_matrix((6, 50)), 2, 3)
    assert np.asarray(empty.dense((50,))).sum() == 0


def test_classification_error_with_sparse_labels(helpers):
    """A frame without label has the label 0, as it has when the labels are dense."""
    s = helpers.Sketch()
    y, z = s.input("y", 4, sparse=True), s.input("z", 4)
    s("ErrorPrediction", y, z, name="err")
    labels = csr_matrix(np.eye(5)[[1, 2, 3, 4, 4], :4])
    scores = np.eye(4)[[1, 0, 3, 0, 1]][None]
    value = helpers.run(
        s.network, ["err"], helpers.Batch({"y": Sparse.from_csr(labels, 1, 5, np.float64), "z": scores})
    )
    assert value["err"].item() == 2
