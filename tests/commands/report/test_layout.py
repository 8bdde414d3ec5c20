"""Places of nodes, ticks of axes, points of lines: nothing overlaps, edges go down, extremes stay."""

import itertools
import math

import hypothesis.strategies as st
import pytest
from hypothesis import given

from cntkpy.commands.report.layout import GAP, place
from cntkpy.commands.report.scales import Axis, number, thinned

NAMES = [f"n{i}" for i in range(9)]


@given(
    st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=25),
    st.lists(st.tuples(st.floats(10, 300), st.floats(10, 90)), min_size=9, max_size=9),
)
def test_nothing_overlaps_and_edges_go_down(edges: list[tuple[str, str]], sizes: list[tuple[float, float]]) -> None:
    given_sizes = dict(zip(NAMES, sizes, strict=True))
    placed = place(given_sizes, edges)
    assert placed.boxes.keys() == set(NAMES)
    frames = [
        (x - given_sizes[n][0] / 2, x + given_sizes[n][0] / 2, y, y + given_sizes[n][1])
        for n, (x, y) in placed.boxes.items()
    ]
    for index, (left, right, top, bottom) in enumerate(frames):
        assert left >= -1e-6 and right <= placed.width + 1e-6 and top >= 0 and bottom <= placed.height + 1e-6
        for other in frames[:index]:
            apart = right + GAP * 0.999 <= other[0] or other[1] + GAP * 0.999 <= left
            assert apart or bottom <= other[2] or other[3] <= top
    for (source, target), points in placed.paths.items():
        assert (source, target) in edges
        assert all(one[1] <= other[1] + 1e-6 for one, other in itertools.pairwise(points))


def test_an_edge_back_has_no_path() -> None:
    placed = place(dict.fromkeys("abc", (10.0, 10.0)), [("a", "b"), ("b", "c"), ("c", "a"), ("b", "b")])
    assert set(placed.paths) == {("a", "b"), ("b", "c")}
    assert [placed.boxes[name][1] for name in "abc"] == sorted(placed.boxes[name][1] for name in "abc")


def test_a_deep_network() -> None:
    names = [str(number) for number in range(5000)]
    placed = place(dict.fromkeys(names, (10.0, 10.0)), list(itertools.pairwise(names)))
    assert len({x for x, _ in placed.boxes.values()}) == 1


def test_parallel_branches_do_not_cross() -> None:
    """Two chains from one node to another stay on their sides."""
    edges = [("s", "a1"), ("s", "b1"), ("a1", "a2"), ("b1", "b2"), ("a2", "t"), ("b2", "t")]
    placed = place(dict.fromkeys(["s", "b1", "a1", "a2", "b2", "t"], (40.0, 10.0)), edges)
    sides = [placed.boxes[f"a{i}"][0] < placed.boxes[f"b{i}"][0] for i in (1, 2)]
    assert sides[0] == sides[1]


@pytest.mark.parametrize(
    ("values", "log", "ticks"),
    [
        ([0.0, 1.0], False, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        ([1, 1000], True, [1, 10, 100, 1000]),
        ([0.5, 0.9], True, [0.5, 0.6, 0.7, 0.8, 0.9]),
        ([1e-9, 1e9], True, [1e-8, 1e-4, 1, 1e4, 1e8]),
        ([5.0], False, [4.8, 4.9, 5.0, 5.1, 5.2]),
    ],
)
def test_ticks(values: list[float], log: bool, ticks: list[float]) -> None:
    axis = Axis.around(values, log)
    assert axis is not None
    assert axis.ticks() == pytest.approx(ticks)


@given(st.lists(st.floats(-1e30, 1e30), min_size=1, max_size=50), st.booleans())
def test_every_value_has_a_place(values: list[float], log: bool) -> None:
    axis = Axis.around(values, log)
    assert (axis is None) == (log and not any(value > 0 for value in values))
    for value in values:
        place = axis.place(value) if axis else None
        assert place is None if log and value <= 0 else place is not None and 0 <= place <= 1
    assert all(number(tick) for tick in (axis.ticks() if axis else []))


def test_values_that_are_not_finite_have_no_place() -> None:
    axis = Axis.around([1.0, math.nan, math.inf, 2.0])
    assert axis is not None and axis.high < 3
    assert axis.place(math.inf) is None and axis.place(math.nan) is None


def test_thinned_points_keep_the_extremes() -> None:
    points = [(float(i), math.sin(i) * (100 if i == 777 else 1)) for i in range(10_000)]
    found = thinned(points, 400)
    assert len(found) <= 402
    assert found == sorted(found) and found[0] == points[0] and found[-1] == points[-1]
    assert max(found, key=lambda point: abs(point[1])) == points[777]
    assert thinned(points[:400], 400) == points[:400]
