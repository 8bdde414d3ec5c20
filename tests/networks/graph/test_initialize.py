"""Start values: the check values of CNTK's generator, kinds of init, files, seeds."""

import numpy as np
import pytest

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.graph import initialize
from cntkpy.networks.graph.initialize import Initializer, MinStdRand0, SeedCounter, read_matrix
from cntkpy.networks.graph.network import Network
from cntkpy.networks.nodes import create

FLOAT, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


def _matrix(kind, shape, seed, scale=1.0, dtype=FLOAT):
    return Initializer(kind, scale, seed=seed).create(shape, dtype).T


def test_engine_is_minstd_rand0():
    state, expected = 1, []
    for _ in range(200_000):
        state = state * 16807 % 2147483647
        expected.append(state)
    engine = MinStdRand0(1)
    got = np.concatenate([engine.draws(1), engine.draws(70_000), engine.draws(129_999)])
    assert got[0] == 16807
    assert np.array_equal(got, np.array(expected, np.uint64))
    assert MinStdRand0(0).state == MinStdRand0(2147483647).state == 1
    assert len(engine.draws(0)) == 0


def test_uniform_check_values():
    first = [-0.09999844, -0.07369244, 0.051121064, -0.008269973]
    second = [0.006553449, -0.056208163, -0.09059108, 0.035772942]
    third = [0.035859294, 0.08693858, -0.02329959, 0.00388328]
    got = _matrix("uniform", (4, 3), 1, 2.0).T
    assert np.abs(got - np.array([first, second, third])).max() < 5e-9  # the check values have 8 digits
    row = np.array([-0.049997654, -0.023318404, 0.009830169, -0.035886616, -0.04621108], np.float32)
    assert np.array_equal(_matrix("uniform", (2, 5), 3)[0], row)


def test_gaussian_check_values():
    row = np.array([0.08492612, -0.0732312, -0.050680775, -0.024260676], np.float32)
    assert np.array_equal(_matrix("gaussian", (5, 4), 2)[0], row)


def test_double_uses_two_draws():
    """The range is the constant in single precision."""
    low, high = (int(v) for v in MinStdRand0(1).draws(2))
    wide = 2147483646
    canonical = ((low - 1) + float(high - 1) * wide) / (float(wide) * wide)
    single = np.float64(np.float32(0.05))
    expected = canonical * (single + single) - single
    assert _matrix("uniform", (1, 1), 1, dtype=DOUBLE)[0, 0] == expected


def test_double_check_values():
    """Of CNTK, from the golden start_values/kinds, to the last place."""
    row = [0.028922673307068436, -0.042681170545021546]
    assert _matrix("uniform", (3, 2), 6, dtype=DOUBLE)[0].tolist() == row


def test_big_matrices_in_blocks_equal_small_ones():
    whole = Initializer("uniform", seed=5).create((70_001, 3), FLOAT).reshape(-1)
    draws = MinStdRand0(5).canonical(210_003, FLOAT) * np.float32(0.1) + np.float32(-0.05)
    assert np.array_equal(whole, draws)
    normal = Initializer("gaussian", seed=5).create((50_001, 3), DOUBLE)
    assert abs(normal.std() - 0.2 / np.sqrt(3)) < 1e-3
    assert abs(normal.mean()) < 2e-3
    prefix = Initializer("gaussian", seed=5).create((1000, 3), DOUBLE).reshape(-1)
    assert np.array_equal(prefix, normal.reshape(-1)[:3000])


def test_ranges_of_the_other_kinds():
    shape, fan_in, fan_out = (400, 30), 30, 400
    for kind, limit in {
        "xavier": np.sqrt(3 / fan_in),
        "glorotUniform": np.sqrt(6 / (fan_in + fan_out)),
        "heUniform": np.sqrt(6 / fan_in),
    }.items():
        values = _matrix(kind, shape, 4)
        assert np.abs(values).max() <= limit
        assert np.abs(values).max() > 0.99 * limit
    for kind, deviation in {
        "heNormal": np.sqrt(2 / fan_in),
        "glorotNormal": np.sqrt(2 / (fan_in + fan_out)),
        "normal": 1.0,
    }.items():
        assert abs(_matrix(kind, shape, 4).std() / deviation - 1) < 0.03
    assert (Initializer("fixedValue", value=0.25).create((2, 3), FLOAT) == 0.25).all()
    assert (Initializer("zero", value=7).create((2, 3), FLOAT) == 0).all()


def test_bilinear_is_a_diagonal_of_outer_products():
    value = Initializer("bilinear", kernel=(3, 3)).create((2, 18), DOUBLE).reshape(2, 2, 3, 3)
    profile = np.array([0.5, 1, 0.5])
    for out in range(2):
        for inner in range(2):
            assert np.array_equal(value[out, inner], np.outer(profile, profile) * (out == inner))
    filters = Initializer("bilinear").create((3, 3, 2, 2), DOUBLE)
    assert np.array_equal(filters.reshape(-1), value.reshape(-1))
    with pytest.raises(UserError, match="bilinear"):
        Initializer("bilinear").create((3, 3, 2, 4), DOUBLE)
    with pytest.raises(UserError, match="bilinear"):
        Initializer("bilinear", kernel=(3, 2)).create((2, 12), DOUBLE)


def test_seeds():
    counter = SeedCounter()
    assert [counter.next(), counter.next(), counter.given(7), counter.next()] == [1, 2, 7, 3]
    shifted = SeedCounter(offset=10)
    assert [shifted.next(), shifted.given(7), shifted.next()] == [11, 17, 12]
    constant = SeedCounter(constant=True)
    assert [constant.next(), constant.given(7), constant.next()] == [1, 1, 1]


def test_only_random_parameters_take_seeds():
    network, seeds = Network("float"), SeedCounter()
    for name, options in {
        "a": {"init": "uniform"},
        "b": {"init": "fixedValue", "value": 2.0},
        "c": {"init": "gaussian"},
        "d": {"init": "uniform", "randomSeed": 9},
        "e": {"init": "uniform"},
    }.items():
        network.initialize(create(network, "Parameter", name, (), {"dims": (2, 2), **options}), seeds)
    taken = {name: network[name].init.seed for name in "abcde"}
    assert taken == {"a": 1, "b": None, "c": 2, "d": 9, "e": 3}


def test_from_file(tmp_path):
    path = tmp_path / "m.txt"
    path.write_text("\ufeff1 2 3\n\n 4\t5  6\r\n")
    assert read_matrix(str(path)) == [[1, 2, 3], [4, 5, 6]]
    initializer = Initializer("fromFile", path=str(path))
    for given, full in {(2, 3): (2, 3), (0, 3): (2, 3), (2, 0): (2, 3), (0,): (2, 3), (2, 0, 3): (2, 1, 3)}.items():
        assert initializer.complete_shape(given) == full
    assert initializer.create((2, 3), FLOAT).T.tolist() == [[1, 2, 3], [4, 5, 6]]
    with pytest.raises(UserError, match="2 rows and 3 columns"):
        initializer.complete_shape((3, 2))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2\n3\n", ":2: row 2 has 1 numbers"),
        ("1 2\n\n3 x\n", ":3: row 2: 'x' is not a number"),
        ("1 2_0\n", ":1: row 1: '2_0' is not a number"),
        ("\n", "no numbers"),
    ],
)
def test_bad_files_are_located(tmp_path, text, message):
    path = tmp_path / "m.txt"
    path.write_text(text)
    with pytest.raises(UserError, match=message):
        read_matrix(str(path))
    with pytest.raises(UserError, match="cannot read"):
        read_matrix(str(tmp_path / "none"))


def test_numbers_that_all_elements_are(tmp_path):
    path = tmp_path / "m.txt"
    path.write_text("2 2\n2 2\n")
    assert Initializer("fixedValue", value=0.25).same() == 0.25
    assert Initializer("zero", value=7).same() == 0
    assert Initializer("fromFile", path=str(path)).same() == 2
    assert Initializer("fromLiteral", literal="1 2").same() is None
    assert Initializer("uniform", seed=1).same() is None


@pytest.mark.parametrize(
    ("initializer", "shape", "message"),
    [
        (Initializer("uniform", 1e38), (2, 3), "are not finite"),
        (Initializer("gaussian", float("nan")), (2, 3), "are not finite"),
        (Initializer("gaussian"), (), "need 1 axes"),
        (Initializer("bilinear"), (3, 3, 2, 4), "bilinear"),
    ],
)
def test_a_check_refuses_what_a_value_would(initializer, shape, message):
    """Without a value, and before there is a seed."""
    with pytest.raises(UserError, match=message):
        initializer.check(shape, "float")
    initializer.seed = 1
    with pytest.raises(UserError, match=message):
        initializer.create(shape, FLOAT)


def test_the_largest_scale():
    """The border at which single precision has no number any more, as NumPy rounds."""
    for factor, fits in ((1 - 1e-9, True), (1 + 1e-9, False)):
        scale = factor * initialize.OVERFLOW_SINGLE / 10
        with np.errstate(over="ignore"):
            assert bool(np.isfinite(np.float32(10 * scale))) == fits
        if fits:
            Initializer("uniform", scale).check((2, 3), "float")
        else:
            Initializer("uniform", scale).check((2, 3), "double")
            with pytest.raises(UserError, match="not finite"):
                Initializer("uniform", scale).check((2, 3), "float")
    assert np.float32(0.05) == initialize.UNIFORM


def test_a_network_without_values_has_shapes():
    network = Network("float", values=False)
    node = create(network, "Parameter", "W", (), {"dims": (2, 0), "init": "gaussian"})
    product = create(network, "Times", "z", (node, create(network, "InputValue", "x", (), {"dims": (3,)})))
    network.initialize(node, SeedCounter())
    network.validate()
    assert (node.shape, node.value, product.shape) == ((2, 3), None, (2,))
